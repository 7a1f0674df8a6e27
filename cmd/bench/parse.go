package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httputil"
	"strings"

	"reprise/replay/protocol"
	"reprise/replay/transport"
	"reprise/trace/results"
)

// event is what vLLM sends for a token, and framed one chunk of the body with it.
const event = `data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1767225600,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" hello"},"logprobs":null,"finish_reason":null}]}` + "\n\n"

func framed(event string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(event), event) }

const responseHead = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"

// chunksAtOnce is how many chunks one round parses.
const chunksAtOnce = 2000

func parseMeasures() []measure {
	return []measure{{
		name: "parse a chunk", unit: "chunk",
		ours: arm{"reprise", parseOurs},
		refs: []reference{
			{arm{"count newlines", parseNewlines}, 15, cpuPerUnit, "CPU against counting the newlines"},
			{arm{"Scanner and encoding/json", parseNaive}, 1.0 / 60, cpuPerUnit, "CPU against bufio.Scanner and encoding/json"},
		},
		bounds: []bound{{"allocations per chunk", "", 0.001, func(s Sample) float64 { return s.Extra["allocs"] }}},
	}}
}

// parseOurs takes a response from the bytes of the socket to the ledger: chunked
// framing, events, JSON, booking.
func parseOurs(w *work) error {
	chunk := []byte(framed(event))
	head := []byte(responseHead)
	slab := make([]results.Entry, 0, chunksAtOnce)
	response := protocol.NewResponse(protocol.Chat{}, true, 0)
	var parser transport.Parser
	var failed error
	feed := func(body []byte) error { return response.Feed(body, 1) }
	once := func() int {
		parser.Reset()
		response.Start(slab)
		response.Head(200, "text/event-stream")
		if _, err := parser.Feed(head, feed); err != nil {
			failed = err
		}
		for range chunksAtOnce {
			if _, err := parser.Feed(chunk, feed); err != nil {
				failed = err
			}
		}
		if n := len(response.Account.Entries()); n != chunksAtOnce {
			failed = fmt.Errorf("%d of %d chunks are booked", n, chunksAtOnce)
		}
		return chunksAtOnce
	}
	before := mallocs()
	w.repeat(once)
	w.extra("allocs", float64(mallocs()-before)/w.Units)
	return failed
}

func parseNewlines(w *work) error {
	chunk := []byte(framed(event))
	n := 0
	w.repeat(func() int {
		for range chunksAtOnce {
			n += bytes.Count(chunk, []byte("\n"))
		}
		return chunksAtOnce
	})
	if n == 0 {
		return fmt.Errorf("no newlines")
	}
	return nil
}

// naiveChunk is what a plain client decodes into.
type naiveChunk struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
}

// parseNaive is how a plain client reads the same bytes.
func parseNaive(w *work) error {
	text := strings.Repeat(framed(event), 200) + "0\r\n\r\n"
	booked, want := 0, 0
	w.repeat(func() int {
		booked += scanEvents(httputil.NewChunkedReader(strings.NewReader(text)))
		want += 200
		return 200
	})
	if booked != want {
		return fmt.Errorf("%d of %d chunks are booked", booked, want)
	}
	return nil
}

// scanEvents reads an event stream line by line and decodes each event.
func scanEvents(r io.Reader) (tokens int) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var c naiveChunk
		if json.Unmarshal(data, &c) != nil {
			continue
		}
		if len(c.Choices) > 0 && c.Choices[0].Delta.Content != "" {
			tokens++
		}
	}
	return tokens
}
