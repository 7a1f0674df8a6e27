package protocol

import (
	"strings"
	"testing"

	"reprise/trace/results"
)

const (
	benchPlain = `data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1767225600,"model":"llama-70b","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	benchUsage = `data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1767225600,"model":"llama-70b","choices":[{"index":0,"delta":{"content":" token\n"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}` + "\n\n"
)

// Time per chunk, from bytes to the ledger. Allocations must be 0.
func BenchmarkResponse(b *testing.B) {
	for _, c := range []struct{ name, event string }{{"plain", benchPlain}, {"running usage", strings.Replace(benchUsage, `\n`, "", 1)}, {"escaped", benchUsage}} {
		b.Run(c.name, func(b *testing.B) {
			slab := make([]results.Entry, 0, 1024)
			r := NewResponse(Chat{}, true, 0)
			event := []byte(c.event)
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				if i%1000 == 0 {
					r.Start(slab)
					r.Head(200, "text/event-stream")
				}
				if err := r.Feed(event, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
