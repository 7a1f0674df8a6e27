package aiperf

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"reprise/formats/peers"
	"reprise/trace"
)

// An Exporter writes what AIPerf's mooncake_trace loader replays (aiperf 0.13,
// dataset/loader/models.py): a row has one of input_length, text_input, messages and
// payload. Rows of a session follow one another there, and prompts made from lengths
// add up over a session; so a session is kept for messages and payloads, which are
// sent as they are, and for rows without blocks, as the tokens that are new. Rows
// with blocks and literal prompts are complete, and stand alone. Turns that hold only
// what is new get the messages before them.
type Exporter struct {
	blocks peers.Renamer
}

type line struct {
	Session   string          `json:"session_id,omitempty"`
	Timestamp json.Number     `json:"timestamp,omitempty"` // ms
	Delay     json.Number     `json:"delay,omitempty"`     // ms
	Input     *int64          `json:"input_length,omitempty"`
	Text      *string         `json:"text_input,omitempty"`
	Messages  json.RawMessage `json:"messages,omitempty"`
	Tools     json.RawMessage `json:"tools,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Output    *int64          `json:"output_length,omitempty"`
	Blocks    []uint64        `json:"hash_ids,omitempty"`
	Extra     json.RawMessage `json:"extra,omitempty"`
}

type export struct {
	*Exporter
	lost     peers.Losses
	timed    bool
	sessions map[string]*session

	histories map[string]history // of sessions whose rows hold only what is new
	current   string             // the session whose rows come, where they follow one another
}

// A session is what the rows so far were like.
type session struct {
	kind    string
	context int64 // tokens of the last prompt and its answer, if known
	known   bool
}

// Export implements formats.Exporter. Its memory grows with the number of sessions
// and blocks, and with the messages of sessions on one clock that hold only what is
// new.
func (e *Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) ([]string, error) {
	x := &export{Exporter: e, lost: peers.Losses{}, timed: meta.Clock == trace.ClockTrace, sessions: map[string]*session{}, histories: map[string]history{}}
	e.blocks = peers.Renamer{}
	if _, err := peers.Lines(ctx, rows, w, x.line); err != nil {
		return nil, err
	}
	if e.blocks.Split > 0 {
		x.lost["prefix shared with a short last block (given an id of its own)"] = e.blocks.Split
	}
	return x.lost.List(), nil
}

// Advice says how AIPerf is told to replay the file.
func (e *Exporter) Advice() []string {
	flags := []string{"--custom-dataset-type mooncake_trace", "--fixed-schedule"}
	if e.blocks.Size > 0 {
		flags = append(flags, fmt.Sprintf("--isl-block-size %d", e.blocks.Size))
	}
	return []string{"aiperf profile --input-file FILE " + strings.Join(flags, " ")}
}

// line returns the row as AIPerf has it, or nil.
func (x *export) line(r *trace.Request) any {
	l := &line{}
	carried := []peers.Part{peers.Text, peers.Extra}
	messages, whole := x.messages(r)
	switch {
	case r.Body.Known:
		l.Payload, l.Session = json.RawMessage(r.Body.Value), x.session(r, "payload")
	case whole:
		l.Messages, l.Session = messages, x.session(r, "messages")
		if t := r.Tools.Value; r.Tools.Known && t != "[]" {
			l.Tools = json.RawMessage(t)
		}
		carried = append(carried, peers.Tools)
	case r.Prompt.Known:
		l.Text = &r.Prompt.Value
	default:
		if !x.lengths(l, r) {
			x.lost.Add("whole row (neither content nor a count of prompt tokens)")
			return nil
		}
		if r.Messages.Known {
			x.lost.Add("messages whose turns before are not there (written as lengths)")
		}
	}
	if l.Session != "" {
		carried = append(carried, peers.Sessions)
	}
	if l.Blocks != nil {
		carried = append(carried, peers.Blocks)
	}
	x.times(l, r)
	x.output(l, r)
	if r.Extra.Known {
		l.Extra = json.RawMessage(r.Extra.Value)
	}
	if l.Delay != "" {
		carried = append(carried, peers.Delays)
	}
	if l.Input == nil && r.InputTokens.Known {
		x.lost.Add("token counts of literal content")
	}
	x.lost.Row(r, carried...)
	return l
}

// session names the session of a row whose content is complete. AIPerf refuses a
// session of several kinds, so each kind has one of its own.
func (x *export) session(r *trace.Request, kind string) string {
	id, ok := r.Session.Get()
	if !ok {
		return ""
	}
	s := x.sessions[id]
	if s == nil {
		s = &session{kind: kind}
		x.sessions[id] = s
	}
	if s.kind != kind {
		return id + "/" + kind
	}
	return id
}

// messages returns all messages of a row: of one that holds only what is new, those
// of the turns before it too. ok is false if there are none, or a turn is missing.
func (x *export) messages(r *trace.Request) (all json.RawMessage, ok bool) {
	own, ok := r.Messages.Get()
	if !ok || r.MessagesMode.Value != trace.MessagesDelta {
		return json.RawMessage(own), ok
	}
	id := r.Session.Value
	if !x.timed && id != x.current { // the rows of a session follow one another
		clear(x.histories)
		x.current = id
	}
	h := x.histories[id]
	turn := r.Turn.Or(0)
	if turn != h.turns {
		return nil, false
	}
	if all = json.RawMessage(own); turn > 0 {
		all = joined(h.messages, all)
	}
	if r.Session.Known {
		x.histories[id] = history{all, turn + 1}
	}
	return all, true
}

// A history is what was said in a session so far.
type history struct {
	messages json.RawMessage
	turns    int32
}

// joined makes one JSON array of two.
func joined(a, b json.RawMessage) json.RawMessage {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	inner := bytes.TrimSpace(b[1:])
	if len(bytes.TrimSpace(a[1:])) == 1 {
		return b
	}
	if len(inner) == 1 {
		return a
	}
	return append(append(bytes.Clone(a[:len(a)-1]), ','), inner...)
}

// lengths writes a row without content.
func (x *export) lengths(l *line, r *trace.Request) bool {
	in, ok := r.InputTokens.Get()
	if !ok {
		in, ok = r.NewInputTokens.Get()
	}
	if !ok {
		return false
	}
	if in < 1 {
		x.lost.Add("prompts of 0 tokens (written as 1)")
		in = 1
	}
	l.Input = &in
	if ids, ok := x.blocks.Row(r, in); ok {
		l.Blocks = ids
		return true
	}
	if len(r.Blocks) == 0 && r.Session.Known {
		x.turn(l, r, in)
	}
	return true
}

// turn writes a row of a session as what is new in it, if that is known and more
// than nothing.
func (x *export) turn(l *line, r *trace.Request, in int64) {
	s := x.sessions[r.Session.Value]
	first := s == nil
	if first {
		s = &session{kind: "lengths"}
		x.sessions[r.Session.Value] = s
	}
	fresh, ok := r.NewInputTokens.Get()
	switch {
	case first:
		fresh, ok = in, true
	case !ok && s.known:
		fresh, ok = in-s.context, true
	}
	s.context, s.known = in+r.OutputTokens.Value, r.InputTokens.Known && r.OutputTokens.Known
	if ok && fresh > 0 && s.kind == "lengths" {
		l.Session, l.Input = r.Session.Value, &fresh
	}
}

// times writes when a row is sent: a session clock has no times for all rows.
func (x *export) times(l *line, r *trace.Request) {
	at, ok := r.Arrival.Get()
	switch {
	case ok && x.timed:
		l.Timestamp = peers.Decimal(at, 3)
	case ok:
		x.lost.Add("arrivals on a clock of the session")
	}
	if d, ok := r.Delay.Get(); ok && l.Session != "" {
		l.Delay = peers.Decimal(max(0, d), 3)
	}
}

func (x *export) output(l *line, r *trace.Request) {
	out, ok := r.OutputTokens.Get()
	if !ok {
		out, ok = r.MaxOutputTokens.Get()
	}
	switch {
	case ok && out > 0:
		l.Output = &out
	case ok:
		x.lost.Add("answers of 0 tokens (written without a limit)")
	}
}
