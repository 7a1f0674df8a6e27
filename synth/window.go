package synth

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"reprise/trace"
)

// A held is a batch of the source whose rows still have copies to come.
type held struct {
	b    *trace.Batch
	rows []picked
	refs int // copies to come, and one while rows are being added
}

// An entry is one copy of a row, and where it goes.
type entry struct {
	at   int64
	of   *held
	row  int32 // index in of.rows
	play int32
	wrap bool
}

// window puts copies in order of arrival while the source goes by: none moves
// by more than the jitter, so that what lies further back than that is complete.
// What wraps is taken from the ends of the source: the last rows are known from
// the survey, copies of the first ones wait for the end. Its memory is that of
// the rows within two jitters.
type window struct {
	p       *plan
	width   int64 // of a bucket
	buckets map[int64][]entry
	next    int64 // first bucket that was not flushed
	out     *trace.Batch
	emit    func(*trace.Batch) error
	free    []*held
}

// minBucket bounds how many buckets there are.
const minBucket = int64(100 * time.Millisecond)

func (p *plan) window(ctx context.Context, open Open, emit func(*trace.Batch) error) error {
	w := &window{p: p, width: max(minBucket, p.jitter/8), buckets: map[int64][]entry{}, out: trace.NewBatch(), emit: emit}
	if p.s.Extend == 0 {
		for _, h := range p.v.tail.batches {
			w.wrapTail(h)
		}
		p.v.tail.batches = nil
	}
	for pass := range p.passes {
		if err := w.pass(ctx, open, pass); err != nil {
			return err
		}
	}
	if err := w.flush(1 << 62); err != nil {
		return err
	}
	return w.drain()
}

// wrapTail adds what comes over the end to the beginning.
func (w *window) wrapTail(h *held) {
	p := w.p
	for k := range h.rows {
		r := &h.rows[k]
		factor := p.factor(h.b, int(r.row))
		for play := 1; play < p.most; play++ {
			if at, wrapped, _ := p.place(r, play, 0); wrapped && at <= p.jitter && p.keeps(factor, play, h.b, r) && !p.isDropped(h.b, r) {
				w.add(entry{at, h, int32(k), int32(play), true})
			}
		}
	}
}

func (w *window) pass(ctx context.Context, open Open, pass int) error {
	p := w.p
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	sel := newSelector(p.s)
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		h := w.take()
		err := r.Read(h.b, trace.BatchRows)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		h.rows = sel.pick(h.b)
		h.refs = 1
		for k := range h.rows {
			w.row(h, int32(k), pass)
		}
		w.drop(h)
		if n := len(h.rows); n > 0 {
			if err := w.flush(h.rows[n-1].at + int64(pass)*p.period - p.jitter); err != nil {
				return err
			}
		}
	}
}

// row adds the copies of a row. Those that wrap from the end are there already.
func (w *window) row(h *held, k int32, pass int) {
	p, r := w.p, &h.rows[k]
	if p.isDropped(h.b, r) {
		return
	}
	factor := p.factor(h.b, int(r.row))
	for copy := range p.most {
		if !p.keeps(factor, copy, h.b, r) {
			continue
		}
		at, wrapped, inside := p.place(r, copy, pass)
		switch {
		case !inside:
			p.design.CutAtEnd++
		case wrapped && at <= p.jitter && p.s.Extend == 0:
		default:
			w.add(entry{at, h, k, int32(pass*p.most + copy), wrapped})
		}
	}
}

func (w *window) add(e entry) {
	e.of.refs++
	k := e.at / w.width
	w.buckets[k] = append(w.buckets[k], e)
}

// flush writes the buckets that end at or before until.
func (w *window) flush(until int64) error {
	for {
		if (w.next+1)*w.width > until {
			return nil
		}
		bucket, ok := w.buckets[w.next]
		if !ok {
			if len(w.buckets) == 0 {
				return nil
			}
			w.next = w.skip(until)
			continue
		}
		delete(w.buckets, w.next)
		w.next++
		slices.SortStableFunc(bucket, func(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.play, b.play)) })
		for i := range bucket {
			if err := w.write(&bucket[i]); err != nil {
				return err
			}
		}
	}
}

// skip returns the first bucket that has something, or the last complete one.
func (w *window) skip(until int64) int64 {
	next := until / w.width
	for k := range w.buckets {
		next = min(next, k)
	}
	return max(next, w.next+1)
}

func (w *window) write(e *entry) error {
	r := &e.of.rows[e.row]
	w.p.add(w.out, e.of.b, r, link{int(e.play), e.wrap, w.p.factor(e.of.b, int(r.row))})
	if r.timed {
		w.out.ArrivalNS.Values[w.out.Len()-1] = e.at
	}
	if e.wrap {
		w.p.design.Wrapped++
	}
	w.drop(e.of)
	if w.out.Len() < trace.BatchRows {
		return nil
	}
	return w.drain()
}

func (w *window) drain() error {
	err := w.p.emit(w.out, w.emit)
	w.out.Reset()
	return err
}

// take returns an empty batch.
func (w *window) take() *held {
	if n := len(w.free); n > 0 {
		h := w.free[n-1]
		w.free = w.free[:n-1]
		return h
	}
	return &held{b: trace.NewBatch()}
}

// drop lets go of a batch whose copies are all made.
func (w *window) drop(h *held) {
	if h.refs--; h.refs == 0 {
		h.b.Reset()
		w.free = append(w.free, h)
	}
}

// tail keeps the last rows of the selection, as far back as copies may wrap.
type tail struct {
	width   int64
	batches []*held
	rows    int64 // most that lay within the width
	count   int64
}

// keep takes the rows of a batch, which it copies.
func (t *tail) keep(b *trace.Batch, rows []picked) {
	if len(rows) == 0 {
		return
	}
	h := &held{b: trace.NewBatch(), rows: make([]picked, len(rows)), refs: 1}
	for i, r := range rows {
		h.b.AppendRow(b, int(r.row))
		h.rows[i] = r
		h.rows[i].row = int32(i)
	}
	t.batches = append(t.batches, h)
	t.count += int64(len(rows))
	last := rows[len(rows)-1].at
	for first := t.batches[0]; first.rows[len(first.rows)-1].at < last-t.width; first = t.batches[0] {
		t.count -= int64(len(first.rows))
		t.batches = t.batches[1:]
	}
	t.rows = max(t.rows, t.count)
}
