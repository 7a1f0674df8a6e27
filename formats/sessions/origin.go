package sessions

import "reprise/trace"

// An Origin lets each session begin at 0, for sources whose sessions have clocks of
// their own (formats.Sequencer). The zero value is ready to use; its memory grows
// with the number of sessions.
type Origin struct{ first map[string]int64 }

// Sequence implements formats.Sequencer.
func (o *Origin) Sequence(b *trace.Batch) {
	if o.first == nil {
		o.first = map[string]int64{}
	}
	for i := range b.Len() {
		at, timed := b.ArrivalNS.Get(i)
		if !timed {
			continue
		}
		first := at // of a row that stands alone
		if id, ok := b.SessionID.Get(i); ok {
			known := false
			if first, known = o.first[id]; !known {
				o.first[id], first = at, at
			}
		}
		b.ArrivalNS.Values[i] = at - first
	}
}
