package synth

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"

	"reprise/analysis/prefix"
	"reprise/analysis/stats"
	"reprise/trace"
)

// An Open opens a trace from its start. A synthesis reads its source more than
// once.
type Open func() (*trace.Reader, error)

// Purposes of random streams.
const (
	drawKeep uint64 = 1 + iota
	drawShift
	drawCopyShift
	drawPrivate
	drawShared
	drawSpread
)

// A picked is a row of the selection.
type picked struct {
	row     int32 // in its batch
	named   bool  // the source names its session
	first   bool  // of its session
	at      int64 // ns since the selection began; of a row without a time, that of the row before
	timed   bool
	session uint64 // key of the session, named or inferred, or of the row alone
	client  uint64 // key; of a row without a client, that of its session
}

// A selector picks rows and finds their sessions, in the order of the trace. One
// is good for one pass.
type selector struct {
	s      *Scaling
	linker prefix.Linker
	seen   map[uint64]struct{} // named sessions
	last   int64
	counts unitCounts
}

// unitCounts says how sessions were found.
type unitCounts struct{ named, inferred, alone int64 }

// unit names what is kept whole.
func (c unitCounts) unit() string {
	switch {
	case c.named > 0:
		return "session"
	case c.inferred > 0:
		return "inferred session"
	}
	return "request"
}

func newSelector(s *Scaling) *selector { return &selector{s: s, seen: map[uint64]struct{}{}} }

// each reads the trace and hands on batches with the rows of the selection.
func (s *selector) each(ctx context.Context, open Open, f func(b *trace.Batch, rows []picked) error) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	return trace.EachBatch(ctx, r, func(b *trace.Batch) error { return f(b, s.pick(b)) })
}

// pick returns the rows of b that belong to the selection.
func (s *selector) pick(b *trace.Batch) []picked {
	rows := make([]picked, 0, b.Len())
	for i := range b.Len() {
		at, timed := b.ArrivalNS.Get(i)
		if timed {
			s.last = at
		}
		if s.s.out(s.last) {
			continue
		}
		p := picked{row: int32(i), at: s.last - int64(s.s.From), timed: timed}
		s.session(b, i, &p)
		p.client = p.session
		if id, ok := b.ClientID.Get(i); ok {
			p.client = textKey(id)
		}
		rows = append(rows, p)
	}
	return rows
}

// out tells whether a time lies outside --from and --to.
func (s *Scaling) out(at int64) bool { return at < int64(s.From) || s.To != 0 && at >= int64(s.To) }

func (s *selector) session(b *trace.Batch, i int, p *picked) {
	if id, ok := b.SessionID.Get(i); ok {
		p.session, p.named = textKey(id), true
		if _, again := s.seen[p.session]; !again {
			s.seen[p.session], p.first = struct{}{}, true
		}
		s.counts.named++
		return
	}
	ids, _ := b.Blocks(i)
	if len(ids) == 0 {
		p.session, p.first = stats.Hash(uint64(b.ID.Values[i]), 1), true
		s.counts.alone++
		return
	}
	model, _ := b.Model.Get(i)
	size, _ := b.BlockTokens.Get(i)
	input, known := b.InputTokens.Get(i)
	if !known {
		input = -1
	}
	session, turn := s.linker.Link(model, ids, size, input)
	p.session, p.first = stats.Hash(uint64(session), 2), turn == 0
	s.counts.inferred++
}

// textKey makes a key of a name.
func textKey(name string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, name)
	return h.Sum64()
}

// clocked refuses what needs a clock over all rows where there is none.
func (s *Scaling) clocked(clock string) error {
	if clock == trace.ClockTrace {
		return nil
	}
	why := "each session of the trace has its own clock"
	if clock == trace.ClockNone {
		why = "the trace has no clock"
	}
	for _, f := range []struct {
		flag string
		set  bool
	}{{"from", s.From != 0}, {"to", s.To != 0}, {"extend", s.Extend != 0}, {"rate", s.Rate != 0}, {"grow rate", s.Grow == GrowRate}} {
		if f.set {
			return trace.WithFix(fmt.Errorf("--%s: %s", f.flag, why), "give it arrivals first, such as --arrivals poisson:4")
		}
	}
	return nil
}
