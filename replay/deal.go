package replay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"reprise/trace"
)

// dealMemory is what the sorting of rows by share holds before it goes to disk, bytes.
const dealMemory = 128 << 20

// sendColumns are those of a trace that a replay reads; the others are what came of the
// requests when they were recorded, and where they came from.
var sendColumns = []string{
	"id", "operation", "arrival_ns", "session_id", "turn", "after", "delay_ns", "agent", "model", "streaming", "choices",
	"input_tokens", "new_input_tokens", "output_tokens", "max_output_tokens", "block_ids", "block_tokens",
	"prompt", "messages", "messages_mode", "tools", "body", "extra", "recorded_ttft_ns", "recorded_e2e_ns", "cancel_ns",
}

// A ShareSink takes the share of a shard, counted as they were given: when its requests
// are sent, for a file that Config.Times names, and their rows, a canonical trace for
// Config.Trace, which is written to rows and then closed.
type ShareSink func(shard int, times []byte) (rows io.WriteCloser, err error)

// Deal makes the shares of shards in one way through the selected rows: a worker that has
// its share sends what it would send if it had the whole trace. A share has each row
// once, however often the trace begins again, and only the columns that sending needs.
// Only users do not go through the trace in its order: their share has a row as often as
// it is sent.
//
// Rows are sorted by share, on disk if need be, so that shares are written one after the
// other, however many there are. In memory is when requests are due: some 6 bytes each.
func Deal(ctx context.Context, c *Config, s *Survey, shards []Shard, sink ShareSink) error {
	once := *c
	once.Shard = Shard{}
	if s.Endless {
		once.Selection.Recycle = false
	}
	r, err := c.open()
	if err != nil {
		return err
	}
	meta := r.Meta()
	r.Close()
	inOrder := once.Selection.Load.Kind != LoadUsers // of the trace, in each pass
	d := dealer{bySession: len(shards) > 0 && shards[0].Sessions, recycles: once.Selection.Recycle && inOrder, sorter: &trace.Sorter{Memory: dealMemory}, scratch: trace.NewBatch()}
	defer d.sorter.Close()
	for i := range shards {
		d.add(i, c, s, shards[i])
	}
	if err := once.each(ctx, d.row); err != nil {
		return err
	}
	return d.write(meta, sink)
}

// A dealer deals rows to shares.
type dealer struct {
	bySession bool
	recycles  bool
	owners    [Slots][]int // shares of a slot
	shares    []*dealing
	sorter    *trace.Sorter
	scratch   *trace.Batch
}

// A dealing is a share that is being made.
type dealing struct {
	sieve
	times timesWriter
	rows  int64
	seen  map[int64]uint64 // bits: ids that it has, where they come again
}

func (d *dealer) add(i int, c *Config, s *Survey, shard Shard) {
	if s.Endless {
		shard = Shard{Owns: shard.Owns, Sessions: shard.Sessions} // where it begins is in a later pass
	}
	share := &dealing{sieve: c.sieve(), times: newTimesWriter(s), seen: map[int64]uint64{}}
	share.sieve.Shard = &shard
	d.shares = append(d.shares, share)
	for slot := range uint16(Slots) {
		if shard.Owns == nil || shard.Owns(slot) {
			d.owners[slot] = append(d.owners[slot], i)
		}
	}
}

// row adds a request to the shares that have it.
func (d *dealer) row(b *trace.Batch, row int, s start) error {
	session, known := b.SessionID.Get(row)
	for _, i := range d.owners[Slot(b.ID.Values[row], session, known && d.bySession)] {
		share := d.shares[i]
		if !share.has(b, row, s) {
			continue
		}
		share.times.add(b.ID.Values[row], s)
		if d.recycles && share.again(b.ID.Values[row]) {
			continue
		}
		share.rows++
		if err := d.sorter.Add(b, row, trace.Key{Major: int64(i)}); err != nil {
			return err
		}
	}
	return nil
}

// again tells that a share has a row already.
func (d *dealing) again(id int64) bool {
	bit := uint64(1) << (id & 63)
	has := d.seen[id>>6]&bit != 0
	d.seen[id>>6] |= bit
	return has
}

// write hands the shares out, one after the other.
func (d *dealer) write(meta trace.Meta, sink ShareSink) error {
	out := shareWriter{meta: meta, sink: sink, shares: d.shares, at: -1}
	err := out.next()
	if err == nil {
		err = d.sorter.Sorted(out.batch)
	}
	for err == nil && out.at < len(d.shares) {
		err = out.next()
	}
	return err
}

// A shareWriter writes rows that are sorted by share.
type shareWriter struct {
	meta   trace.Meta
	sink   ShareSink
	shares []*dealing
	at     int   // share that is being written
	left   int64 // rows of it to come
	file   io.WriteCloser
	rows   *trace.Writer
	part   *trace.Batch
}

// next ends a share and begins the next.
func (w *shareWriter) next() error {
	if w.file != nil {
		if err := errors.Join(w.rows.Close(w.meta), w.file.Close()); err != nil {
			return err
		}
		w.file = nil
	}
	if w.at++; w.at >= len(w.shares) {
		return nil
	}
	share := w.shares[w.at]
	file, err := w.sink(w.at, share.times.bytes)
	if err != nil {
		return err
	}
	share.times.bytes, share.seen = nil, nil
	if w.rows == nil {
		w.rows = trace.NewWriter(file)
	} else {
		w.rows.Reset(file)
	}
	w.file, w.left = file, share.rows
	return nil
}

func (w *shareWriter) batch(b *trace.Batch) error {
	for from := 0; from < b.Len(); {
		for w.left == 0 {
			if err := w.next(); err != nil {
				return err
			}
			if w.at >= len(w.shares) {
				return fmt.Errorf("%s too many for the shares", trace.Plural(b.Len()-from, "row"))
			}
		}
		n := int(min(int64(b.Len()-from), w.left))
		part := b
		if n < b.Len() {
			if w.part == nil {
				w.part = trace.NewBatch()
			}
			w.part.Reset()
			w.part.AppendRows(b, from, from+n)
			part = w.part
		}
		if err := w.rows.Write(part); err != nil {
			return err
		}
		from, w.left = from+n, w.left-int64(n)
	}
	return nil
}
