package mooncake

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"reprise/trace"
)

// An Exporter writes Mooncake JSON lines: the four published fields, and those
// of AIPerf's dialect where a row has sessions or literal content.
type Exporter struct{}

// Export implements formats.Exporter.
func (Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) (lost []string, err error) {
	e := &export{out: bufio.NewWriterSize(w, 1<<16), origin: time.Duration(meta.OriginNS.Or(0)), ours: meta.Format == "mooncake", lost: map[string]int64{}}
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := e.row(&r); err != nil {
			return nil, err
		}
	}
	for _, what := range slices.Sorted(maps.Keys(e.lost)) {
		lost = append(lost, fmt.Sprintf("%s of %d rows", what, e.lost[what]))
	}
	return lost, e.out.Flush()
}

type export struct {
	out    *bufio.Writer
	origin time.Duration
	ours   bool // the trace came from this format, so its attributes are fields
	lost   map[string]int64
	buf    []byte
}

func (e *export) row(r *trace.Request) error {
	e.buf = append(e.buf[:0], '{')
	e.times(r)
	if in, ok := r.InputTokens.Get(); ok && !literal(r) {
		e.int("input_length", in)
	} else if in, ok := r.NewInputTokens.Get(); ok && !literal(r) {
		e.int("input_length", in)
	}
	if out, ok := r.OutputTokens.Get(); ok {
		e.int("output_length", out)
	}
	if r.Blocks != nil && !literal(r) {
		e.ids(r.Blocks)
	}
	e.content(r)
	if v, ok := r.Session.Get(); ok {
		e.text("session_id", v)
	}
	if e.ours {
		for _, k := range slices.Sorted(maps.Keys(r.Attributes)) {
			if k != attrTimestamp {
				e.raw(k, r.Attributes[k])
			}
		}
		if v, ok := r.Model.Get(); ok {
			e.text("model", v)
		}
	} else {
		e.losses(r)
	}
	e.buf = append(e.buf, '}', '\n')
	_, err := e.out.Write(e.buf)
	return err
}

func literal(r *trace.Request) bool { return r.Prompt.Known || r.Messages.Known || r.Body.Known }

func (e *export) times(r *trace.Request) {
	if exact, ok := r.Attributes[attrTimestamp]; ok && e.ours {
		e.raw("timestamp", exact)
	} else if at, ok := r.Arrival.Get(); ok {
		e.ms("timestamp", at+e.origin)
	}
	_, tool := r.Attributes["tool_wait_ms"]
	if d, ok := r.Delay.Get(); ok && !tool {
		e.ms("delay", d)
	}
}

func (e *export) content(r *trace.Request) {
	if v, ok := r.Prompt.Get(); ok {
		e.text("text_input", v)
	}
	if v, ok := r.Messages.Get(); ok {
		e.raw("messages", v)
		if _, said := r.Attributes[attrMode]; r.MessagesMode.Value == trace.MessagesDelta && !(said && e.ours) {
			e.text("message_mode", "delta")
		}
	}
	if v, ok := r.Tools.Get(); ok {
		e.raw("tools", v)
	}
	if v, ok := r.Body.Get(); ok {
		e.raw("payload", v)
	}
	if v, ok := r.Extra.Get(); ok {
		e.raw("extra", v)
	}
}

// losses counts what a row of another format has and this one cannot hold.
func (e *export) losses(r *trace.Request) {
	for what, has := range map[string]bool{
		"model": r.Model.Known, "client_id": r.ClientID.Known, "agent": r.Agent.Known, "streaming": r.Streaming.Known, "choices": r.Choices.Known,
		"status": r.Status.Known, "finish_reason": r.FinishReason.Known, "recorded latencies": r.RecordedTTFT.Known || r.RecordedE2E.Known,
		"recorded answer": r.OutputText.Known || r.OutputMessage.Known, "cached tokens": r.CachedTokens.Known || r.CacheWriteTokens.Known,
		"reasoning tokens": r.ReasoningTokens.Known, "max_output_tokens": r.MaxOutputTokens.Known, "attributes": len(r.Attributes) > 0,
		"media": len(r.Media) > 0, "spawn and join edges": hasEdges(r), "token counts of literal content": literal(r) && r.InputTokens.Known,
	} {
		if has {
			e.lost[what]++
		}
	}
}

func hasEdges(r *trace.Request) bool {
	return slices.ContainsFunc(r.After, func(d trace.Dependency) bool { return d.Kind != trace.AfterTurn })
}

func (e *export) key(k string) {
	if len(e.buf) > 1 {
		e.buf = append(e.buf, ',', ' ')
	}
	e.buf = append(append(append(e.buf, '"'), k...), '"', ':', ' ')
}

func (e *export) int(k string, v int64) {
	e.key(k)
	e.buf = strconv.AppendInt(e.buf, v, 10)
}

// ms writes milliseconds, as an integer where it is one.
func (e *export) ms(k string, d time.Duration) {
	e.key(k)
	if d%time.Millisecond == 0 {
		e.buf = strconv.AppendInt(e.buf, int64(d/time.Millisecond), 10)
		return
	}
	e.buf = strconv.AppendFloat(e.buf, float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

func (e *export) text(k, v string) {
	e.key(k)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(v) // a string always encodes
	e.buf = append(e.buf, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func (e *export) raw(k, json string) {
	e.key(k)
	e.buf = append(e.buf, json...)
}

func (e *export) ids(ids []uint64) {
	e.key("hash_ids")
	e.buf = append(e.buf, '[')
	for i, id := range ids {
		if i > 0 {
			e.buf = append(e.buf, ',', ' ')
		}
		e.buf = strconv.AppendUint(e.buf, id, 10)
	}
	e.buf = append(e.buf, ']')
}
