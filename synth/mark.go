package synth

import (
	"time"

	"reprise/analysis/stats"
	"reprise/trace"
	"reprise/trace/column"
)

// A link says which copy of a row is made.
type link struct {
	play    int // pass and copy in one number; 0 is the source in its place
	wrapped bool
	factor  float64 // of the row's session
}

// add appends the copy of a row to out: with ids, session, client and blocks of
// its own, and with dependencies within the copy. The source in its place stays
// as it is.
func (p *plan) add(out, b *trace.Batch, r *picked, l link) {
	i := int(r.row)
	if kept, cut := p.reachable(b, r, l); cut > 0 {
		row := b.Row(i)
		if row.After = kept; len(kept) == 0 {
			row.After, row.Delay = nil, trace.Optional[time.Duration]{}
		}
		out.Append(&row)
		p.design.CutAfter += int64(cut)
	} else {
		out.AppendRow(b, i)
	}
	i = out.Len() - 1
	if l.play > 0 {
		p.number(out, i, l)
	}
	p.renameBlocks(out, i, r, l)
}

// number renames row i: its id and those of its dependencies, session and client.
func (p *plan) number(out *trace.Batch, i int, l link) {
	set(&out.OriginID, i, out.ID.Values[i])
	set(&out.Copy, i, int32(l.play))
	offset := int64(l.play) * (p.v.maxID + 1)
	out.ID.Values[i] += offset
	from, to, _ := out.After.Range(i)
	after := out.After.Fields[0].(*column.Flat[int64]).Values
	for k := from; k < to; k++ {
		after[k] += offset
	}
	if id, ok := out.SessionID.Get(i); ok {
		out.SessionID.Values[i] = nameOf(id, l.play, l.wrapped)
	}
	if id, ok := out.ClientID.Get(i); ok && p.s.Grow != GrowRate {
		out.ClientID.Values[i] = nameOf(id, l.play, false)
	}
}

func set[T column.Scalar](c *column.Flat[T], i int, v T) { c.Values[i], c.Null[i] = v, false }

// renameBlocks gives the blocks of row i the ids of its copy, or ids of its own
// where the hit rate is to fall.
func (p *plan) renameBlocks(out *trace.Batch, i int, r *picked, l link) {
	ids, _ := out.Blocks(i)
	id := out.ID.Values[i]
	if origin, ok := out.OriginID.Get(i); ok && l.play > 0 {
		id = origin
	}
	p.renameIDs(ids, id, r, l)
}

// renameIDs renames the blocks of a copy of the row id.
func (p *plan) renameIDs(ids []uint64, id int64, r *picked, l link) {
	ns := uint64(2 * l.play)
	if l.wrapped {
		ns++
	}
	switch {
	case len(ids) == 0:
	case p.private > 0 && stats.Draw(p.s.Seed, drawPrivate, uint64(id)) < p.private:
		key := stats.Hash(p.s.Seed, drawPrivate, uint64(id), ns)
		for k := range ids {
			ids[k] = permute(ids[k] ^ key)
		}
	case l.play == 0:
	case p.shared > 0 && stats.Draw(p.s.Seed, drawShared, r.session, ns) < p.shared:
	default:
		p.rename.rename(ids, ns)
	}
}

// reachable returns the dependencies of a row that its copy keeps, and how many
// it does not: those to rows that are not there, or beyond a wrap, since a
// request cannot wait for what comes at the other end.
func (p *plan) reachable(b *trace.Batch, r *picked, l link) (kept []trace.Dependency, cut int) {
	from, to, known := b.After.Range(int(r.row))
	if !known || from == to {
		return nil, 0
	}
	for _, d := range b.AfterOf(int(r.row)) {
		if p.reaches(d.ID, r, l) {
			kept = append(kept, d)
		} else {
			cut++
		}
	}
	return kept, cut
}

func (p *plan) reaches(id int64, r *picked, l link) bool {
	if !p.v.picked.has(id) {
		return false
	}
	if whole := int(l.factor); p.s.Thin == ThinRequests && l.play%p.most == whole && stats.Draw(p.s.Seed, drawKeep, uint64(id)) >= l.factor-float64(whole) {
		return false
	}
	at, edge := p.edge.at(id)
	if !edge {
		return !l.wrapped
	}
	other := *r
	other.at = at
	_, wrapped, inside := p.place(&other, l.play%p.most, l.play/p.most)
	return inside && wrapped == l.wrapped
}

// edges remembers when the rows near the ends of the source arrive: only they
// can wrap. For GrowRate, where a copy moves by as much as a gap between two
// sessions, that is all rows.
type edges struct {
	width int64
	ids   map[int64]int64
}

func (e *edges) see(id, at int64) {
	if e.ids == nil {
		e.ids = map[int64]int64{}
	}
	e.ids[id] = at
}

func (e *edges) at(id int64) (int64, bool) { at, ok := e.ids[id]; return at, ok }
