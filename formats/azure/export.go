package azure

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/trace"
)

// An Exporter writes the table that Azure publishes: that of the year the trace
// came from, and that of 2024 for other traces. Arrivals of traces without Unix
// times count from 1970.
type Exporter struct{}

// Export implements formats.Exporter.
func (Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) (lost []string, err error) {
	e := &export{out: bufio.NewWriterSize(w, 1<<16), lost: map[string]int64{}, ours: meta.Format == "azure", form: form2024, end: "\n"}
	if e.ours {
		e.form, e.others = parseDialect(meta.Dialect)
	}
	if e.form == form2023 {
		e.end = "\r\n"
	}
	e.origin = time.Duration(meta.EpochNS.Or(meta.OriginNS.Or(0)))
	first := true
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if first {
			e.header(len(r.Media) > 0)
			first = false
		}
		e.row(&r)
		if _, err := e.out.Write(e.buf); err != nil {
			return nil, err
		}
		e.buf = e.buf[:0]
	}
	if e.form != form2023 {
		e.out.WriteString(e.end)
	}
	for _, what := range slices.Sorted(maps.Keys(e.lost)) {
		lost = append(lost, fmt.Sprintf("%s of %d rows", what, e.lost[what]))
	}
	return lost, e.out.Flush()
}

type export struct {
	out    *bufio.Writer
	buf    []byte
	origin time.Duration
	form   string
	end    string
	ours   bool
	others []string // columns beside the published ones
	lost   map[string]int64
}

func (e *export) header(media bool) {
	if media && !e.ours {
		e.form = formMedia
	}
	cols := []string{colTime, colIn, colOut}
	if e.form == formMedia {
		cols = []string{colTime, colImages, colIn, colOut}
	}
	for i, c := range append(cols, e.others...) {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = append(e.buf, cell(c)...)
	}
}

// row writes the line end before a row: the files of 2023 have none at their end.
func (e *export) row(r *trace.Request) {
	at, timed := r.Arrival.Get()
	in, okIn := r.InputTokens.Get()
	out, okOut := r.OutputTokens.Get()
	if !timed || !okIn || !okOut {
		e.lost["whole row (no arrival, or no count of tokens)"]++
		return
	}
	e.buf = append(e.buf, e.end...)
	e.buf = append(appendTime(e.buf, e.origin+at, e.form), ',')
	if e.form == formMedia {
		e.buf = append(strconv.AppendInt(e.buf, images(r.Media), 10), ',')
	}
	e.buf = append(strconv.AppendInt(e.buf, in, 10), ',')
	e.buf = strconv.AppendInt(e.buf, out, 10)
	for _, name := range e.others {
		var text string
		json.Unmarshal([]byte(r.Attributes[name]), &text) // "" if there is none
		e.buf = append(append(e.buf, ','), cell(text)...)
	}
	e.losses(r)
}

func images(media []trace.Media) (n int64) {
	for _, m := range media {
		if m.Kind == "image" {
			n += int64(m.Count.Value)
		}
	}
	return n
}

func (e *export) losses(r *trace.Request) {
	attributes := len(r.Attributes) > 0
	if e.ours {
		attributes = slices.ContainsFunc(slices.Collect(maps.Keys(r.Attributes)), func(k string) bool { return !slices.Contains(e.others, k) })
	}
	media := slices.ContainsFunc(r.Media, func(m trace.Media) bool { return m.Kind != "image" || !m.Count.Known || m.Tokens.Known }) || len(r.Media) > 0 && e.form != formMedia
	for what, has := range map[string]bool{
		"model": r.Model.Known, "client_id": r.ClientID.Known, "sessions and turns": r.Session.Known, "after and delay": r.After != nil || r.Delay.Known, "prefix blocks": r.Blocks != nil,
		"status": r.Status.Known, "finish_reason": r.FinishReason.Known, "recorded latencies": r.RecordedTTFT.Known || r.RecordedE2E.Known || r.Cancel.Known,
		"texts":         r.Prompt.Known || r.Messages.Known || r.Body.Known || r.Tools.Known || r.Extra.Known || r.OutputText.Known || r.OutputMessage.Known,
		"cached tokens": r.CachedTokens.Known || r.CacheWriteTokens.Known, "reasoning tokens": r.ReasoningTokens.Known, "max_output_tokens": r.MaxOutputTokens.Known,
		"media": media, "attributes": attributes, "source_id": r.SourceID.Known, "streaming": r.Streaming.Known, "choices": r.Choices.Known,
	} {
		if has {
			e.lost[what]++
		}
	}
}

// cell quotes a field where it needs that.
func cell(text string) string {
	if !strings.ContainsAny(text, "\",\r\n") && strings.TrimSpace(text) == text {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}
