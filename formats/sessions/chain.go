package sessions

import (
	"time"

	"reprise/trace"
	"reprise/trace/column"
)

// A Chain gives rows of sessions their turns once the order of rows is final: it
// is embedded in importers of formats whose sessions say no more than which rows
// belong together (formats.Sequencer). Agents within a session have chains of
// their own. The zero value is ready to use; its memory grows with the number of
// sessions.
type Chain struct {
	// Parallel says that rows of a session may run at the same time: a row then
	// comes after the last one that had ended when it began, and not after rows
	// still running.
	Parallel bool

	// KeepTurns says that turns which the source gave stay.
	KeepTurns bool

	turns map[[2]string]*chainState
}

// Reset forgets all sessions, for another import.
func (c *Chain) Reset(parallel bool) { *c = Chain{Parallel: parallel} }

type chainState struct {
	turn  int32
	last  int64 // id of the row to come after
	end   int64 // when it ended
	ended bool  // end is known
	any   bool
	open  []openRow // began and not seen to end, in order of arrival
}

type openRow struct{ id, end int64 }

// maxOpen bounds the rows of a session that are looked at as still running.
const maxOpen = 256

// Sequence implements formats.Sequencer: turns count in order of arrival, each row
// comes after the one before, and its wait is its start less the recorded end of
// that one, at least 0; unknown where the duration is. A delay that the source gave
// stays.
func (c *Chain) Sequence(b *trace.Batch) {
	if c.turns == nil {
		c.turns = map[[2]string]*chainState{}
	}
	ids, kinds := b.After.Fields[0].(*column.Flat[int64]), b.After.Fields[1].(*column.Flat[string])
	b.After.Reset() // no row has any yet
	for i := range b.Len() {
		session, ok := b.SessionID.Get(i)
		if !ok {
			b.After.EndRow(false)
			continue
		}
		agent, _ := b.Agent.Get(i)
		key := [2]string{session, agent}
		s := c.turns[key]
		if s == nil {
			s = &chainState{}
			c.turns[key] = s
		}
		at, timed := b.ArrivalNS.Get(i)
		took, known := b.RecordedE2ENS.Get(i)
		if c.Parallel && timed {
			s.close(at)
		}
		if s.any {
			ids.Append(s.last)
			kinds.Append(trace.AfterTurn)
			if b.DelayNS.Null[i] && s.ended && timed {
				b.DelayNS.Values[i], b.DelayNS.Null[i] = max(0, at-s.end), false
			}
		}
		b.After.EndRow(s.any)
		if !c.KeepTurns || b.Turn.Null[i] {
			b.Turn.Values[i], b.Turn.Null[i] = s.turn, false
		}
		s.turn++
		if c.Parallel && timed && known && len(s.open) < maxOpen {
			s.open = append(s.open, openRow{b.ID.Values[i], at + took})
			continue
		}
		s.last, s.end, s.ended, s.any = b.ID.Values[i], at+took, timed && known, true
	}
}

// close lets go of the rows that had ended at at, and keeps the one that ended
// last as the one to come after.
func (s *chainState) close(at int64) {
	running := s.open[:0]
	for _, o := range s.open {
		if o.end > at {
			running = append(running, o)
			continue
		}
		if !s.any || !s.ended || o.end >= s.end {
			s.last, s.end, s.ended, s.any = o.id, o.end, true, true
		}
	}
	s.open = running
}

// End returns when a request ended, where both are known.
func End(at, took trace.Optional[time.Duration]) (end time.Duration, ok bool) {
	return at.Value + took.Value, at.Known && took.Known
}
