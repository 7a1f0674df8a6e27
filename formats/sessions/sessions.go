// Package sessions brings the rows of each session together, for formats whose
// record is a session.
package sessions

import (
	"iter"

	"reprise/trace"
)

// Each calls add for every row such that the rows of a session follow one
// another, in the order in which sessions begin and, within one, in the order
// given. A row without a session stands alone. Only a trace with one clock for
// all rows mixes its sessions; its rows are sorted, from disk beyond a bound.
func Each(clock string, rows iter.Seq2[trace.Request, error], add func(*trace.Request) error) error {
	if clock == trace.ClockTrace {
		return sorted(rows, add)
	}
	for r, err := range rows {
		if err != nil {
			return err
		}
		if err := add(&r); err != nil {
			return err
		}
	}
	return nil
}

func sorted(rows iter.Seq2[trace.Request, error], add func(*trace.Request) error) error {
	s := &trace.Sorter{}
	defer s.Close()
	ordinals := map[string]int64{}
	b := trace.NewBatch()
	n := int64(0)
	for r, err := range rows {
		if err != nil {
			return err
		}
		n++
		ordinal := n
		if id, ok := r.Session.Get(); ok {
			if ordinals[id] == 0 {
				ordinals[id] = n
			}
			ordinal = ordinals[id]
		}
		b.Reset()
		b.Append(&r)
		if err := s.Add(b, 0, trace.Key{Major: ordinal}); err != nil {
			return err
		}
	}
	return s.Sorted(func(b *trace.Batch) error {
		for i := range b.Len() {
			r := b.Row(i)
			if err := add(&r); err != nil {
				return err
			}
		}
		return nil
	})
}
