package sharegpt

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
	"strings"

	"reprise/formats/jsonx"
	"reprise/formats/sessions"
	"reprise/trace"
)

// An Exporter writes conversations: as one array, or as JSON lines if the trace
// came from such. Conversations of a trace imported from ShareGPT come out as
// they were read.
type Exporter struct{}

// Export implements formats.Exporter. It holds one conversation at a time.
func (Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) (lost []string, err error) {
	e := &export{out: bufio.NewWriterSize(w, 1<<16), ours: meta.Format == "sharegpt", lost: map[string]int64{}}
	e.lines = e.ours && strings.HasPrefix(meta.Dialect, "JSON lines")
	if !e.lines {
		e.out.WriteString("[")
	}
	err = sessions.Each(meta.Clock, rows, func(r *trace.Request) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return e.add(r)
	})
	if err == nil {
		err = e.end()
	}
	if err != nil {
		return nil, err
	}
	if !e.lines {
		e.out.WriteString("\n]\n")
	}
	for _, what := range slices.Sorted(maps.Keys(e.lost)) {
		lost = append(lost, fmt.Sprintf("%s of %d rows", what, e.lost[what]))
	}
	return lost, e.out.Flush()
}

type export struct {
	out     *bufio.Writer
	ours    bool
	lines   bool
	lost    map[string]int64
	written int64

	open     bool
	session  trace.Optional[string]
	style    *style
	list     []json.RawMessage // messages, in the style
	history  []json.RawMessage // of a foreign conversation, as they were
	parts    int               // which foreign conversation of this session, from 1
	answered bool              // the row before had a recorded answer
}

func (e *export) add(r *trace.Request) error {
	next := !e.open || !r.Session.Known || e.session != r.Session
	if next {
		if err := e.end(); err != nil {
			return err
		}
		e.open, e.session, e.style, e.parts = true, r.Session, &style{}, 1
	}
	if !e.ours {
		return e.foreign(r)
	}
	if text, ok := r.Attributes[attrConversation]; ok && next {
		if err := json.Unmarshal([]byte(text), e.style); err != nil {
			return fmt.Errorf("row %d: attribute %s: %w", r.ID, attrConversation, err)
		}
	}
	if text, ok := r.Attributes[attrMessages]; ok {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return fmt.Errorf("row %d: attribute %s: %w", r.ID, attrMessages, err)
		}
		e.list = append(e.list, list...)
		return nil
	}
	e.list = append(e.list, e.style.messages(r, len(e.list) == 0)...)
	return nil
}

// foreign adds a row of another format: a delta to the conversation, or, where
// each row tells all, what is new in it. A row that does not go on from the one
// before begins a conversation of its own.
func (e *export) foreign(r *trace.Request) error {
	e.losses(r)
	all, delta := e.literal(r)
	if all == nil {
		e.lost["whole row (no text)"]++
		return nil
	}
	if !delta {
		if len(e.history) > 0 && !extends(all, e.history) {
			if err := e.end(); err != nil {
				return err
			}
			e.open, e.parts = true, e.parts+1
		}
		all = all[len(e.history):]
	}
	for delta && e.answered && len(all) > 0 && role(all[0]) == roleAssistant {
		all = all[1:] // the recorded answer, which is written already
	}
	e.history = append(e.history, all...)
	e.answered = r.OutputMessage.Known || r.OutputText.Known
	for _, raw := range all {
		e.message(raw)
	}
	if text, ok := r.OutputMessage.Get(); ok {
		e.answer(json.RawMessage(text))
	} else if text, ok := r.OutputText.Get(); ok {
		e.answer(object(roleAssistant, jsonx.Row{"content": encode(text)}))
	}
	return nil
}

// literal returns the messages of a row; nil if it has no text.
func (e *export) literal(r *trace.Request) (list []json.RawMessage, delta bool) {
	text := r.Messages.Value
	if body, ok := r.Body.Get(); ok && !r.Messages.Known {
		var b struct {
			Messages json.RawMessage `json:"messages"`
			Prompt   *string         `json:"prompt"`
		}
		if json.Unmarshal([]byte(body), &b) == nil && b.Prompt != nil {
			return []json.RawMessage{object(roleUser, jsonx.Row{"content": encode(*b.Prompt)})}, false
		}
		text = string(b.Messages)
	}
	if prompt, ok := r.Prompt.Get(); ok {
		return []json.RawMessage{object(roleUser, jsonx.Row{"content": encode(prompt)})}, false
	}
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil, false
	}
	return list, r.MessagesMode.Value == trace.MessagesDelta
}

// extends tells whether all begins with history, answers aside: those may be
// told in other words.
func extends(all, history []json.RawMessage) bool {
	if len(all) < len(history) {
		return false
	}
	for i := range history {
		if !equal(all[i], history[i]) && role(all[i]) != roleAssistant {
			return false
		}
	}
	return true
}

func role(raw json.RawMessage) string {
	var m chat
	json.Unmarshal(raw, &m)
	return m.Role
}

// answer adds a recorded answer, which later rows of a full history repeat.
func (e *export) answer(raw json.RawMessage) {
	e.history = append(e.history, raw)
	e.message(raw)
}

// message adds a foreign message in the dump's style; text parts are joined.
func (e *export) message(raw json.RawMessage) {
	var m chat
	if json.Unmarshal(raw, &m) != nil {
		e.lost["messages that are no objects"]++
		return
	}
	if len(m.Content) > 0 && m.Content[0] == '[' {
		m.Content = e.joined(m.Content)
	}
	if _, ok := defaultNames[m.Role]; !ok {
		e.lost["roles without a name in ShareGPT (written as human)"]++
		m.Role = roleUser
	}
	if len(m.Content) == 0 && len(m.Calls) == 0 {
		m.Content = json.RawMessage(`""`)
	}
	e.list = append(e.list, e.style.write(raw, &m)...)
}

func (e *export) joined(content json.RawMessage) json.RawMessage {
	var parts []struct {
		Text *string `json:"text"`
	}
	json.Unmarshal(content, &parts)
	var b strings.Builder
	for _, p := range parts {
		if p.Text == nil {
			e.lost["parts other than text"]++
			continue
		}
		b.WriteString(*p.Text)
	}
	return encode(b.String())
}

// losses counts what a row of another format has and this one cannot hold.
func (e *export) losses(r *trace.Request) {
	for what, has := range map[string]bool{
		"arrival": r.Arrival.Known, "delay": r.Delay.Known, "token counts": r.InputTokens.Known || r.OutputTokens.Known, "block ids": r.Blocks != nil,
		"model": r.Model.Known, "client_id": r.ClientID.Known, "agent": r.Agent.Known, "streaming": r.Streaming.Known, "choices": r.Choices.Known,
		"status": r.Status.Known, "finish_reason": r.FinishReason.Known, "recorded latencies": r.RecordedTTFT.Known || r.RecordedE2E.Known,
		"tools": r.Tools.Known, "extra": r.Extra.Known, "media": len(r.Media) > 0, "attributes": len(r.Attributes) > 0,
	} {
		if has {
			e.lost[what]++
		}
	}
}

// end writes the conversation at hand.
func (e *export) end() error {
	list, s := e.list, e.style
	e.open, e.list, e.history, e.answered = false, nil, nil, false
	if len(list) == 0 {
		return nil
	}
	f := s.Fields
	if f == nil {
		f = jsonx.Row{}
	}
	if id, ok := e.session.Get(); ok && id != s.Session {
		if e.parts > 1 {
			id = fmt.Sprintf("%s#%d", id, e.parts)
		}
		f["id"] = encode(id)
	}
	key := s.Key
	if key == "" {
		key = "conversations"
	}
	f[key] = json.RawMessage(array(list))
	if e.written++; !e.lines {
		if e.written > 1 {
			e.out.WriteByte(',')
		}
		e.out.WriteByte('\n')
	}
	_, err := e.out.Write(idFirst(f))
	if e.lines {
		e.out.WriteByte('\n')
	}
	return err
}

// idFirst encodes fields by name, the id before all.
func idFirst(f jsonx.Row) []byte {
	keys := slices.Sorted(maps.Keys(f))
	if i := slices.Index(keys, "id"); i > 0 {
		keys = slices.Insert(slices.Delete(keys, i, i+1), 0, "id")
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(k))
		b.WriteByte(':')
		json.Compact(&b, f[k])
	}
	b.WriteByte('}')
	return b.Bytes()
}
