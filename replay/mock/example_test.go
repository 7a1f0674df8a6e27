package mock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"reprise/replay/mock"
	"reprise/replay/mock/pipe"
)

// A server in the process, without a socket, and what it has to say about the
// request afterwards.
func Example() {
	server, listener := mock.New(mock.Config{}), pipe.Listen()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Serve(ctx, listener) }()

	client := &http.Client{Transport: &http.Transport{DialContext: listener.DialContext}}
	resp, err := client.Post("http://mock/v1/completions", "application/json",
		strings.NewReader(`{"prompt": "one two three", "stream": true, "max_tokens": 4, "ignore_eos": true}`))
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	cancel()
	if err := <-done; err != nil {
		panic(err)
	}
	records, _ := server.Account()
	r := records[0]
	fmt.Println(r.Outcome, "prompt", r.PromptTokens, "output", r.SentTokens, "chunks", len(r.Chunks))
	// Output: completed prompt 3 output 4 chunks 4
}
