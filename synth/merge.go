package synth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"reprise/trace"
	"reprise/trace/column"
)

// A Merging puts several traces on one clock.
type Merging struct {
	Align    string // "" or AlignEpoch where all traces know their date, else AlignStart
	Sessions bool   // names of sessions mean the same in all traces; else those of later traces get names of their own
	Clients  bool   // likewise for clients
	Blocks   bool   // likewise for block ids
}

// Ways to align clocks.
const (
	AlignEpoch = "epoch" // by date and time
	AlignStart = "start" // all begin together
)

// A MergeInput is one trace of a Merging.
type MergeInput struct {
	Name string
	Open Open
}

// A Merge is what was done.
type Merge struct {
	Align string  `json:"align"`
	Rows  []int64 `json:"rows"`       // of each input
	Shift []int64 `json:"shift_ns"`   // what each input's times moved by
	First int64   `json:"namespaces"` // inputs whose names or blocks were changed
}

// merging is one input that is being read.
type merging struct {
	r       *trace.Reader
	b       *trace.Batch
	at      int
	last    int64 // arrival, of a row without one that of the row before
	index   int
	offset  int64 // of ids
	shift   int64
	rename  renamer
	changed bool
	rows    int64
}

// Run hands the rows of all inputs to emit, in order of arrival, ties in order of
// inputs; sessions with clocks of their own, or without one, follow one another.
// Its memory does not grow with the traces.
func (m Merging) Run(ctx context.Context, inputs []MergeInput, emit func(*trace.Batch) error) (trace.Meta, Merge, error) {
	if len(inputs) < 2 {
		return trace.Meta{}, Merge{}, trace.WithFix(errors.New("one trace alone is merged already"), "name two or more")
	}
	var list []*merging
	defer func() {
		for _, in := range list {
			in.r.Close()
		}
	}()
	var metas []trace.Meta
	for i, in := range inputs {
		r, err := in.Open()
		if err != nil {
			return trace.Meta{}, Merge{}, err
		}
		list = append(list, &merging{r: r, b: trace.NewBatch(), index: i})
		metas = append(metas, r.Meta())
		if a, b := metas[0].Clock, r.Meta().Clock; a != b {
			return trace.Meta{}, Merge{}, trace.WithFix(fmt.Errorf("%s has clock %q, %s has %q", inputs[0].Name, a, in.Name, b), "give both arrivals first, with: reprise synth TRACE --arrivals")
		}
	}
	meta, done, err := m.align(inputs, metas, list)
	if err != nil {
		return meta, done, err
	}
	if err := m.number(ctx, inputs, list); err != nil {
		return meta, done, err
	}
	if err := merge(ctx, list, m, meta.Clock, emit); err != nil {
		return meta, done, err
	}
	for _, in := range list {
		done.Rows = append(done.Rows, in.rows)
		if in.changed {
			done.First++
		}
		meta.Counts.Read += in.rows
	}
	return meta, done, nil
}

// align finds what each input's times move by, and the metadata of the result.
func (m Merging) align(inputs []MergeInput, metas []trace.Meta, list []*merging) (trace.Meta, Merge, error) {
	done := Merge{Align: m.Align}
	out := trace.Meta{Clock: metas[0].Clock, Format: metas[0].Format, Dialect: metas[0].Dialect, Zone: metas[0].Zone, TickNS: metas[0].TickNS}
	dated := true
	for _, meta := range metas {
		dated = dated && meta.EpochNS.Known
		if meta.Format != out.Format {
			out.Format, out.Dialect = "", ""
		}
		if meta.Dialect != out.Dialect {
			out.Dialect = ""
		}
		if meta.TickNS != out.TickNS {
			out.TickNS = trace.Optional[int64]{}
		}
	}
	if done.Align == "" {
		done.Align = AlignStart
		if dated && out.Clock == trace.ClockTrace {
			done.Align = AlignEpoch
		}
	}
	switch done.Align {
	case AlignEpoch:
		if out.Clock != trace.ClockTrace {
			return out, done, trace.WithFix(errors.New("--align epoch: the traces have no clock over all rows"), "leave it out")
		}
		for i, meta := range metas {
			if !meta.EpochNS.Known {
				return out, done, trace.WithFix(fmt.Errorf("--align epoch: %s does not know its date", inputs[i].Name), "use --align start")
			}
		}
		least := metas[0].EpochNS.Value
		for _, meta := range metas {
			least = min(least, meta.EpochNS.Value)
		}
		for i, meta := range metas {
			list[i].shift = meta.EpochNS.Value - least
		}
		out.EpochNS = trace.Some(least)
	case AlignStart:
	default:
		return out, done, trace.WithFix(fmt.Errorf("--align %q", m.Align), "use epoch or start")
	}
	for i := range list {
		done.Shift = append(done.Shift, list[i].shift)
	}
	return out, done, nil
}

// number finds the ids that each input uses, so that no two share any.
func (m Merging) number(ctx context.Context, inputs []MergeInput, list []*merging) error {
	var maxBlock uint64
	var offset int64
	for i, in := range list {
		in.offset = offset
		most := int64(-1)
		err := eachRow(ctx, inputs[i].Open, func(b *trace.Batch, row int) error {
			most = max(most, b.ID.Values[row])
			ids, _ := b.Blocks(row)
			for _, id := range ids {
				maxBlock = max(maxBlock, id)
			}
			return nil
		})
		if err != nil {
			return err
		}
		offset += most + 1
	}
	for _, in := range list {
		in.rename = newRenamer(nil, maxBlock, len(list))
	}
	return nil
}

// merge takes the earliest row each time.
func merge(ctx context.Context, list []*merging, m Merging, clock string, emit func(*trace.Batch) error) error {
	out := trace.NewBatch()
	for _, in := range list {
		if err := in.next(); err != nil {
			return err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var first *merging
		for _, in := range list {
			if in.b.Len() > 0 && (first == nil || clock == trace.ClockTrace && in.last < first.last) {
				first = in
			}
		}
		if first == nil {
			break
		}
		first.copyTo(out, m)
		if err := first.advance(); err != nil {
			return err
		}
		if out.Len() == trace.BatchRows {
			if err := emit(out); err != nil {
				return err
			}
			out.Reset()
		}
	}
	if out.Len() == 0 {
		return nil
	}
	return emit(out)
}

// next reads a batch; it is empty at the end.
func (in *merging) next() error {
	in.at = 0
	in.b.Reset()
	if err := in.r.Read(in.b, trace.BatchRows); err != nil && err != io.EOF {
		return err
	}
	in.see()
	return nil
}

func (in *merging) advance() error {
	in.rows++
	if in.at++; in.at == in.b.Len() {
		return in.next()
	}
	in.see()
	return nil
}

func (in *merging) see() {
	if in.at < in.b.Len() {
		if at, ok := in.b.ArrivalNS.Get(in.at); ok {
			in.last = at + in.shift
		}
	}
}

// copyTo appends the row that is next, with ids, and where they are not common
// to all inputs names and blocks, of its own.
func (in *merging) copyTo(out *trace.Batch, m Merging) {
	out.AppendRow(in.b, in.at)
	i := out.Len() - 1
	if at, ok := out.ArrivalNS.Get(i); ok {
		out.ArrivalNS.Values[i] = at + in.shift
	}
	if in.index == 0 {
		return
	}
	out.ID.Values[i] += in.offset
	if origin, ok := out.OriginID.Get(i); ok {
		out.OriginID.Values[i] = origin + in.offset
	}
	from, to, _ := out.After.Range(i)
	after := out.After.Fields[0].(*column.Flat[int64]).Values
	for k := from; k < to; k++ {
		after[k] += in.offset
	}
	name := func(c *column.Flat[string], common bool) {
		if v, ok := c.Get(i); ok && !common {
			c.Values[i] = nameOf(v, in.index, false)
			in.changed = true
		}
	}
	name(&out.SessionID, m.Sessions)
	name(&out.ClientID, m.Clients)
	if ids, _ := out.Blocks(i); len(ids) > 0 && !m.Blocks {
		in.rename.rename(ids, uint64(in.index))
		in.changed = true
	}
}

// ParseCommon reads which names mean the same in all traces: sessions, clients,
// blocks, separated by commas.
func (m *Merging) ParseCommon(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		switch strings.TrimSpace(name) {
		case "":
		case "sessions":
			m.Sessions = true
		case "clients":
			m.Clients = true
		case "blocks":
			m.Blocks = true
		default:
			return trace.WithFix(fmt.Errorf("%q", name), "use sessions, clients or blocks, or several: sessions,blocks")
		}
	}
	return nil
}
