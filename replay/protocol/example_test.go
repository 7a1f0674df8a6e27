package protocol_test

import (
	"fmt"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/protocol"
	"reprise/trace"
	"reprise/trace/results"
)

// A response is fed as the network delivers it, and closed with how the
// transport ended.
func ExampleResponse() {
	r := protocol.NewResponse(protocol.Chat{}, true, 0)
	r.Start(nil)
	r.Head(200, "text/event-stream")
	for _, read := range []struct {
		ms   int
		body string
	}{
		{5, `data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}` + "\n\n"},
		{100, `data: {"choices":[{"index":0,"delta":{"content":"A"}}],"usage":{"completion_tokens":1}}` + "\n\n"},
		{120, `data: {"choices":[{"index":0,"delta":{"content":" B C"}}],"usage":{"completion_tokens":3}}` + "\n\n"},
		{121, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"},
	} {
		if err := r.Feed([]byte(read.body), time.Duration(read.ms)*time.Millisecond); err != nil {
			fmt.Println(err)
		}
	}
	summary := r.Close(ledger.Ending{At: 121 * time.Millisecond})

	row := results.Result{Sent: trace.Some(time.Duration(0))}
	summary.Fill(&row)
	ttft, _ := results.TTFT(&row)
	fmt.Println(row.Outcome, row.OutputTokens.Value, "tokens, TTFT", ttft)
	for d, n := range results.ITL(&row) {
		fmt.Println("ITL", d, "of", n, "tokens")
	}
	// Output:
	// ok 3 tokens, TTFT 100ms
	// ITL 10ms of 2 tokens
}

func ExampleChat_AppendBody() {
	body, err := protocol.Chat{}.AppendBody(nil, &protocol.Request{
		Model:     "llama-70b",
		Stream:    true,
		Prompt:    [][]byte{protocol.EscapeText(nil, "Say \"hi\"."), []byte(" Now.")},
		MaxTokens: trace.Some[int64](16),
	})
	fmt.Println(string(body), err)
	// Output:
	// {"model":"llama-70b","messages":[{"role":"user","content":"Say \"hi\". Now."}],"max_tokens":16,"stream":true,"stream_options":{"include_usage":true}} <nil>
}
