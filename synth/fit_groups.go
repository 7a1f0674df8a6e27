package synth

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"reprise/trace"
)

// maxGroupNames bounds the names that are counted to find the largest.
const maxGroupNames = 1 << 20

// othersStream pools the clients or models that have no stream of their own.
const othersStream = "others"

// fitGroups say which rows go to which stream.
type fitGroups struct {
	ordinals map[string]int32 // by client or model; "" where none is recorded
	names    []string
	others   bool // there are more of them
	bounded  bool
}

// groups finds the largest clients or models: by rows, then by name.
func (o *FitOptions) groups(ctx context.Context, open Open) (*fitGroups, error) {
	g := &fitGroups{ordinals: map[string]int32{}}
	if o.By == FitAll {
		return g, nil
	}
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rows := map[string]int64{}
	var floor int64 // rows that a forgotten name may have had
	err = trace.EachBatch(ctx, r, func(b *trace.Batch) error {
		for i := range b.Len() {
			name := o.group(b, i)
			n, seen := rows[name]
			if !seen {
				n = floor
			}
			rows[name] = n + 1
		}
		for len(rows) > maxGroupNames { // lossy counting (Manku and Motwani 2002)
			g.bounded = true
			floor++
			maps.DeleteFunc(rows, func(_ string, n int64) bool { return n <= floor })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	g.names = slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return cmp.Or(cmp.Compare(rows[b], rows[a]), cmp.Compare(a, b))
	})
	if len(g.names) > o.Streams {
		g.names, g.others = g.names[:o.Streams], true
	}
	g.others = g.others || g.bounded
	for i, name := range g.names {
		g.ordinals[name] = int32(i)
	}
	return g, nil
}

func (o *FitOptions) group(b *trace.Batch, i int) (name string) {
	switch o.By {
	case FitClient:
		name, _ = b.ClientID.Get(i)
	case FitModel:
		name, _ = b.Model.Get(i)
	}
	return name
}

// of returns the stream of a name.
func (g *fitGroups) of(name string) int32 {
	if len(g.names) == 0 {
		return 0
	}
	if o, ok := g.ordinals[name]; ok {
		return o
	}
	return int32(len(g.names))
}

// streams makes an empty stream for each group.
func (g *fitGroups) streams(o *FitOptions) []*fitStream {
	if len(g.names) == 0 {
		return []*fitStream{newFitStream(o, 0, FitAll)}
	}
	var out []*fitStream
	for _, name := range g.names {
		if name == "" {
			name = "(not recorded)"
		}
		out = append(out, newFitStream(o, len(out), name))
	}
	if g.others {
		out = append(out, newFitStream(o, len(out), othersStream))
	}
	return out
}
