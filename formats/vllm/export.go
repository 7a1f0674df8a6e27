package vllm

import (
	"context"
	"fmt"
	"io"
	"iter"

	"reprise/formats/peers"
	"reprise/trace"
)

// An Exporter writes the custom dataset of vLLM's benchmark client
// (vllm/benchmarks/datasets, --dataset-name custom): JSON lines of prompt and
// output_tokens. The client sends them at a rate of its own, and counts their tokens
// itself.
type Exporter struct{}

type line struct {
	Prompt string `json:"prompt"`
	Output *int64 `json:"output_tokens,omitempty"`
}

// Export implements formats.Exporter. A row is written if its prompt is a text: a
// completion prompt, or messages that are one text of a user.
func (Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) ([]string, error) {
	lost := peers.Losses{}
	all := int64(0)
	n, err := peers.Lines(ctx, rows, w, func(r *trace.Request) any {
		all++
		prompt, ok := r.Prompt.Get()
		if !ok {
			prompt, ok = single(r)
		}
		if !ok {
			lost.Add("whole row (no prompt that is one text)")
			return nil
		}
		l := &line{Prompt: prompt}
		if out, ok := r.OutputTokens.Get(); ok {
			l.Output = &out
		}
		if r.Arrival.Known {
			lost.Add("arrivals")
		}
		if r.InputTokens.Known {
			lost.Add("prompt token counts")
		}
		lost.Row(r, peers.Text)
		return l
	})
	if err != nil {
		return nil, err
	}
	if n == 0 && all > 0 {
		return nil, trace.WithFix(fmt.Errorf("none of %d rows has a prompt that is one text, which is all that vLLM's custom dataset holds", all), "export aiperf, guidellm or inference-perf, which make prompts from lengths")
	}
	return lost.List(), nil
}

// single returns the text of messages that are one text of a user, and all of the
// prompt.
func single(r *trace.Request) (string, bool) {
	if r.MessagesMode.Value == trace.MessagesDelta && r.Turn.Or(1) > 0 {
		return "", false
	}
	return peers.UserText(r)
}

// Advice says how the client is told to take the file as it is.
func (Exporter) Advice() []string {
	return []string{"vllm bench serve --dataset-name custom --dataset-path FILE --custom-output-len -1 --disable-shuffle (and --skip-chat-template with completions); FILE must end in .jsonl"}
}
