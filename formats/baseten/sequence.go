package baseten

import (
	"reprise/trace"
	"reprise/trace/column"
)

// turnState is the last row of a session so far.
type turnState struct {
	id      int64
	turn    int32
	end     int64 // arrival plus recorded duration, ns
	endSeen bool
}

// Sequence implements formats.Sequencer: turns count in order of arrival, each
// follows the one before, and the wait is its start less the recorded end of
// that one, at least 0; unknown where the duration is.
func (im *Importer) Sequence(b *trace.Batch) {
	if im.turns == nil {
		im.turns = map[string]turnState{}
	}
	ids, kinds := b.After.Fields[0].(*column.Flat[int64]), b.After.Fields[1].(*column.Flat[string])
	b.After.Reset() // no row has any yet
	for i := range b.Len() {
		session, ok := b.SessionID.Get(i)
		if !ok {
			b.After.EndRow(false)
			continue
		}
		at := b.ArrivalNS.Values[i]
		now := turnState{id: b.ID.Values[i]}
		if took, known := b.RecordedE2ENS.Get(i); known {
			now.end, now.endSeen = at+took, true
		}
		last, later := im.turns[session]
		if later {
			now.turn = last.turn + 1
			ids.Append(last.id)
			kinds.Append(trace.AfterTurn)
			if last.endSeen {
				b.DelayNS.Values[i], b.DelayNS.Null[i] = max(0, at-last.end), false
			}
		}
		b.After.EndRow(later)
		b.Turn.Values[i], b.Turn.Null[i] = now.turn, false
		im.turns[session] = now
	}
}
