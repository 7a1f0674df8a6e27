package ledger

import (
	"reprise/trace"
	"reprise/trace/results"
)

// A Delta is what one event says about one choice. Its bytes are valid only
// during the call that books it.
type Delta struct {
	Choice int32

	Role      bool   // it names the role
	Reasoning []byte // text of thinking
	Content   []byte // text of the answer
	Refusal   []byte // text of a refusal
	Tools     []Tool // fragments of tool calls

	// Kind is what tokens without text belong to, if the event tells: an empty
	// content string is content. "" takes the kind of the text before.
	Kind results.Kind

	// Counts of this delta's tokens, other than the response's usage.
	IDs      trace.Optional[int32] // token ids in the event
	Logprobs trace.Optional[int32] // log-probability entries
	Format   trace.Optional[int32] // what the protocol's format implies

	Finish []byte // finish reason; empty if none
}

// A Tool is a fragment of a tool call: its name, its arguments or both.
type Tool struct {
	Index     int32 // of the call within the choice
	ID        []byte
	Name      []byte
	Arguments []byte // part of a JSON text
}

// size returns the bytes of text in d.
func (d *Delta) size() int {
	return len(d.Reasoning) + len(d.Content) + len(d.Refusal) + d.toolSize()
}

func (d *Delta) toolSize() (n int) {
	for i := range d.Tools {
		n += len(d.Tools[i].Name) + len(d.Tools[i].Arguments)
	}
	return n
}

// parts returns the kinds of text in d: reasoning first, so that the last part
// is output if there is any.
func (d *Delta) parts() (kinds [4]results.Kind, n int) {
	has := func(kind results.Kind, size int) {
		if size > 0 {
			kinds[n] = kind
			n++
		}
	}
	has(results.KindReasoning, len(d.Reasoning))
	has(results.KindContent, len(d.Content))
	has(results.KindRefusal, len(d.Refusal))
	has(results.KindTool, d.toolSize())
	return kinds, n
}

// A Usage is the server's count for the whole response so far.
type Usage struct {
	Input     trace.Optional[int64] // prompt tokens
	Cached    trace.Optional[int64] // of these, from the prefix cache
	Output    trace.Optional[int64] // tokens that came back, reasoning included
	Reasoning trace.Optional[int64] // of these, reasoning
}

// A Transcript is what the server said, one Speech per choice in the order of
// their first event.
type Transcript struct {
	Choices []Speech
}

// A Speech is what one choice said.
type Speech struct {
	Choice    int32
	Reasoning []byte
	Content   []byte
	Refusal   []byte
	Tools     []Tool // one per call, joined
}

func (t *Transcript) reset() { t.Choices = t.Choices[:0] }

func (t *Transcript) add(d *Delta) {
	s := t.speech(d.Choice)
	s.Reasoning = append(s.Reasoning, d.Reasoning...)
	s.Content = append(s.Content, d.Content...)
	s.Refusal = append(s.Refusal, d.Refusal...)
	for i := range d.Tools {
		s.addTool(&d.Tools[i])
	}
}

func (t *Transcript) speech(index int32) *Speech {
	for i := range t.Choices {
		if t.Choices[i].Choice == index {
			return &t.Choices[i]
		}
	}
	t.Choices = append(t.Choices, Speech{Choice: index})
	return &t.Choices[len(t.Choices)-1]
}

func (s *Speech) addTool(f *Tool) {
	for i := range s.Tools {
		if c := &s.Tools[i]; c.Index == f.Index {
			c.ID = append(c.ID, f.ID...)
			c.Name = append(c.Name, f.Name...)
			c.Arguments = append(c.Arguments, f.Arguments...)
			return
		}
	}
	s.Tools = append(s.Tools, Tool{
		Index: f.Index, ID: append([]byte(nil), f.ID...),
		Name: append([]byte(nil), f.Name...), Arguments: append([]byte(nil), f.Arguments...),
	})
}
