package analysis

import (
	"cmp"
	"maps"
	"slices"
)

// A Count is how many things have a name.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// A counter counts by name.
type counter map[string]int64

// longestCounter bounds the names of a counter, since servers can make up as
// many causes as there are requests; what comes later counts under
// nameBeyond.
const (
	longestCounter = 4096
	nameBeyond     = "(others)"
)

func (c counter) add(name string) {
	if _, ok := c[name]; !ok && len(c) >= longestCounter {
		name = nameBeyond
	}
	c[name]++
}

// list returns the counts, the largest first, then by name; never nil.
func (c counter) list() []Count {
	list := make([]Count, 0, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		list = append(list, Count{name, c[name]})
	}
	slices.SortStableFunc(list, func(a, b Count) int { return cmp.Compare(b.N, a.N) })
	return list
}

// Top is the most frequent of many names.
type Top struct {
	First []Count `json:"first"` // the largest first
	Names int64   `json:"names"` // different names beside First
	Rest  int64   `json:"rest"`  // counts of these, summed
}

func (c counter) top(n int) Top {
	list := c.list()
	t := Top{First: list[:min(n, len(list))]}
	for _, rest := range list[len(t.First):] {
		t.Names++
		t.Rest += rest.N
	}
	return t
}

// share returns part / whole, nil if there is no whole.
func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	s := float64(part) / float64(whole)
	return &s
}
