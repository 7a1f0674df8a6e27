package column

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A column that has been reset, again and again, holds what a new one holds.
func TestReusedNulls(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	reused, source := new(Flat[int64]), new(Flat[int64])
	lists := NewList(new(Flat[string]))
	for round := range 3000 {
		reused.Reset()
		lists.Reset()
		fresh, freshLists := new(Flat[int64]), NewList(new(Flat[string]))
		known := r.IntN(3) // of rounds, some have nothing but nulls
		for range r.IntN(4) {
			n := r.IntN(90)
			if r.IntN(40) == 0 {
				n *= 40
			}
			switch r.IntN(3 + known) {
			case 0:
				reused.AppendNulls(n)
				fresh.AppendNulls(n)
				lists.AppendNulls(n)
				freshLists.AppendNulls(n)
			case 1:
				reused.AppendNull()
				fresh.AppendNull()
				lists.EndRow(false)
				freshLists.EndRow(false)
			case 2:
				from := r.IntN(source.Len() + 1)
				reused.AppendRows(source, from, source.Len())
				fresh.AppendRows(source, from, source.Len())
			case 3:
				reused.Append(int64(round))
				fresh.Append(int64(round))
				for _, l := range []*List{lists, freshLists} {
					l.Fields[0].(*Flat[string]).Append("x")
					l.EndRow(true)
				}
			case 4:
				for _, c := range []*Flat[int64]{reused, fresh} {
					if at := c.Len() - 1; at >= 0 { // as who sets a turn
						c.Values[at], c.Null[at] = 7, false
					}
				}
			}
		}
		if !slices.Equal(reused.Values, fresh.Values) || !slices.Equal(reused.Null, fresh.Null) {
			t.Fatalf("round %d: %v %v, want %v %v", round, reused.Values, reused.Null, fresh.Values, fresh.Null)
		}
		if !slices.Equal(lists.Null, freshLists.Null) || lists.Len() > 0 && !slices.Equal(lists.Offsets, freshLists.Offsets) {
			t.Fatalf("round %d: lists %v %v, want %v %v", round, lists.Offsets, lists.Null, freshLists.Offsets, freshLists.Null)
		}
		source.Reset()
		source.AppendRows(reused, 0, reused.Len())
	}
}
