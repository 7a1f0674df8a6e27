package protocol_test

import (
	"fmt"

	"reprise/replay/protocol"
	"reprise/trace"
)

// The native API of llama.cpp, described instead of programmed.
func ExampleParseTemplate() {
	p, err := protocol.ParseTemplate([]byte(`{
		"path":   "/completion",
		"body":   "{\"prompt\": {{.Prompt}}, \"stream\": {{.Stream}}{{with .MaxTokens}}, \"n_predict\": {{.}}{{end}}}",
		"stream": "sse",
		"text":   "/content",
		"done":   "/stop",
		"error":  "/error",
		"finish": "/stop_type",
		"usage":  {"input": "/tokens_evaluated", "output": "/tokens_predicted"}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := p.AppendBody(nil, &protocol.Request{
		Stream: true, Prompt: [][]byte{protocol.EscapeText(nil, `Say "hi".`)}, MaxTokens: trace.Some[int64](16),
	})
	fmt.Println(p.Path(), string(body), err)

	_, err = protocol.ParseTemplate([]byte(`{"path": "/completion", "stream": "sse", "text": "content"}`))
	fmt.Println(err)
	// Output:
	// /completion {"prompt": "Say \"hi\".", "stream": true, "n_predict": 16} <nil>
	// protocol template: text: JSON pointer "content" does not begin with /
}
