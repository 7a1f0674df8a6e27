package otel

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// A node is a span as the first reading sees it. A call within another is the same
// call, seen once more (by the server below the client, say), unless there are
// several within one: then it is that one which is no call of its own.
type node struct {
	parent string // key
	order  int
	isCall bool
	seen   bool // by the second reading

	column, session string // attribute that names the session, and the name

	around *node // nearest call around it
	inner  int   // calls whose around this is
	wraps  bool  // several calls
	within int   // calls that are merged into this one
}

// top returns the call that n is merged into: itself, if none.
func (n *node) top() *node {
	for n.around != nil && !n.around.wraps {
		n = n.around
	}
	return n
}

// survey reads all spans for the first time and finds which call is within which.
func (s *state) survey(ctx context.Context, src []*source.Source) error {
	first := &state{Sink: rows.New(func(*trace.Batch) error { return nil }, func(*trace.RowError) error { return nil })}
	err := first.Records(ctx, src, func(r *rows.Record) error {
		return first.spans(r, func(sp *span, err error) error {
			if err != nil || s.nodes[sp.key()] != nil {
				return nil
			}
			n := &node{parent: sp.trace + "/" + sp.parent, order: len(s.nodes), isCall: isCall(sp)}
			for _, column := range sessionNames {
				if v, err := sp.attributes.String(column); err == nil && v.Value != "" && n.session == "" {
					n.column, n.session = column, v.Value
				}
			}
			s.nodes[sp.key()] = n
			return nil
		})
	})
	if err != nil {
		return err
	}
	ordered := slices.SortedFunc(maps.Values(s.nodes), func(a, b *node) int { return cmp.Compare(a.order, b.order) })
	for _, n := range ordered {
		if !n.isCall {
			continue
		}
		if n.around = s.callAround(n); n.around != nil {
			n.around.inner++
		}
	}
	for _, n := range ordered {
		n.wraps = n.inner > 1
	}
	for key, n := range s.nodes {
		if !n.isCall || n.wraps {
			continue
		}
		if top := n.top(); top != n {
			top.within++
			continue
		}
		id, _, _ := strings.Cut(key, "/")
		s.traces[id]++
	}
	return nil
}

// maxDepth ends the walk to the root, for spans whose parents go round.
const maxDepth = 10_000

// callAround returns the nearest call around n that is not within n.
func (s *state) callAround(n *node) *node {
	at := n
	for range maxDepth {
		at = s.nodes[at.parent]
		if at == nil || at == n {
			return nil
		}
		if at.isCall && !at.isWithin(n) {
			return at
		}
	}
	return nil
}

// sessionAround returns the session that the nearest span around n names.
func (s *state) sessionAround(n *node) (column, session string) {
	at := n
	for range maxDepth {
		if at = s.nodes[at.parent]; at == nil || at == n {
			return "", ""
		}
		if at.session != "" {
			return at.column, at.session
		}
	}
	return "", ""
}

// isWithin tells whether n, or a call around it, is within o already.
func (n *node) isWithin(o *node) bool {
	for ; n != nil; n = n.around {
		if n == o {
			return true
		}
	}
	return false
}

// isCall tells calls to a model from the spans of agents, tools and transports.
func isCall(sp *span) bool {
	a := sp.attributes
	text := func(name string) string {
		var v string
		json.Unmarshal(a[name], &v) // "" if it is no string
		return strings.ToLower(v)
	}
	switch text("gen_ai.operation.name") {
	case "":
	case "chat", "text_completion", "generate_content", "embeddings", "completion", "responses":
		return true
	default: // invoke_agent, execute_tool, create_agent, retrieval, ...
		return false
	}
	switch text("openinference.span.kind") {
	case "":
	case "llm", "embedding":
		return true
	default:
		return false
	}
	switch text("llm.request.type") {
	case "chat", "completion", "embedding":
		return true
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := a[n]; return ok })
	}
	tokens := has(inputNames...) || has(outputNames...)
	return tokens && (has(modelNames...) || has("gen_ai.response.model", "gen_ai.latency.e2e", "gen_ai.request.id"))
}

// A call waits until all that is within it has been read.
type call struct {
	req   *trace.Request // of the outermost span; nil if it was refused
	inner []inner
	left  int
}

type inner struct {
	span *span
	req  *trace.Request
}

// finish adds a call with what the spans within it know more.
func (s *state) finish(c *call) error {
	if c.req == nil { // refused: the next one stands for it
		c.req, c.inner = c.inner[0].req, c.inner[1:]
	}
	for _, in := range c.inner {
		s.fill(c.req, in.req)
		if err := s.Merge(in.span.file, in.span.line, in.span.raw, "same call", "the same call as the span around it, which is kept"); err != nil {
			return err
		}
	}
	return s.Add(c.req)
}

// rest lets go of calls of which a part was refused.
func (s *state) rest() error {
	nodes := slices.SortedFunc(maps.Keys(s.open), func(a, b *node) int { return cmp.Compare(a.order, b.order) })
	for _, n := range nodes {
		c := s.open[n]
		if c.req == nil && len(c.inner) == 0 {
			continue
		}
		if err := s.finish(c); err != nil {
			return err
		}
	}
	return nil
}

// fill takes from in what r does not know, and keeps its attributes as inner.*.
func (s *state) fill(r, in *trace.Request) {
	for _, c := range [][2]*trace.Optional[int64]{
		{&r.InputTokens, &in.InputTokens}, {&r.OutputTokens, &in.OutputTokens}, {&r.CachedTokens, &in.CachedTokens}, {&r.CacheWriteTokens, &in.CacheWriteTokens},
		{&r.ReasoningTokens, &in.ReasoningTokens}, {&r.MaxOutputTokens, &in.MaxOutputTokens},
	} {
		take(c[0], c[1])
	}
	for _, c := range [][2]*trace.Optional[string]{
		{&r.Model, &in.Model}, {&r.Session, &in.Session}, {&r.FinishReason, &in.FinishReason}, {&r.Status, &in.Status}, {&r.Prompt, &in.Prompt},
		{&r.Messages, &in.Messages}, {&r.MessagesMode, &in.MessagesMode}, {&r.Tools, &in.Tools}, {&r.OutputText, &in.OutputText}, {&r.OutputMessage, &in.OutputMessage},
	} {
		take(c[0], c[1])
	}
	take(&r.RecordedTTFT, &in.RecordedTTFT)
	take(&r.RecordedE2E, &in.RecordedE2E)
	take(&r.Streaming, &in.Streaming)
	take(&r.Choices, &in.Choices)
	if r.ReasoningTokens.Value > r.OutputTokens.Value {
		r.ReasoningTokens.Known = false
	}
	if r.Media == nil {
		r.Media = in.Media
	}
	if r.Attributes == nil {
		r.Attributes = map[string]string{}
	}
	r.Attributes["inner.span_id"] = jsonx.Quote(in.SourceID.Value)
	for k, v := range in.Attributes {
		if have, ok := r.Attributes[k]; !ok || have != v {
			r.Attributes["inner."+k] = v
		}
	}
}

func take[T any](to, from *trace.Optional[T]) {
	if !to.Known {
		*to = *from
	}
}
