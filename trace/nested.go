package trace

import (
	"maps"
	"slices"

	"reprise/trace/column"
)

// The nested columns of a batch, field by field.

func (b *Batch) appendAfter(after []Dependency) {
	ids, kinds := b.After.Fields[0].(*column.Flat[int64]), b.After.Fields[1].(*column.Flat[string])
	for _, d := range after {
		ids.Append(d.ID)
		kinds.Append(d.Kind)
	}
	b.After.EndRow(after != nil)
}

// AfterOf returns the dependencies of a row; nil if they are not known.
func (b *Batch) AfterOf(i int) []Dependency {
	from, to, known := b.After.Range(i)
	if !known {
		return nil
	}
	ids, kinds := b.After.Fields[0].(*column.Flat[int64]), b.After.Fields[1].(*column.Flat[string])
	out := make([]Dependency, 0, to-from)
	for e := from; e < to; e++ {
		out = append(out, Dependency{ID: ids.Values[e], Kind: kinds.Values[e]})
	}
	return out
}

func (b *Batch) blocks(i int) []uint64 {
	ids, known := b.Blocks(i)
	if !known {
		return nil
	}
	return append(make([]uint64, 0, len(ids)), ids...)
}

func (b *Batch) appendMedia(media []Media) {
	kinds, counts, tokens := b.Media.Fields[0].(*column.Flat[string]), b.Media.Fields[1].(*column.Flat[int32]), b.Media.Fields[2].(*column.Flat[int64])
	for _, m := range media {
		kinds.Append(m.Kind)
		put(counts, m.Count)
		put(tokens, m.Tokens)
	}
	b.Media.EndRow(media != nil)
}

func (b *Batch) media(i int) []Media {
	from, to, known := b.Media.Range(i)
	if !known {
		return nil
	}
	kinds, counts, tokens := b.Media.Fields[0].(*column.Flat[string]), b.Media.Fields[1].(*column.Flat[int32]), b.Media.Fields[2].(*column.Flat[int64])
	out := make([]Media, 0, to-from)
	for e := from; e < to; e++ {
		out = append(out, Media{Kind: kinds.Values[e], Count: get(counts, e), Tokens: get(tokens, e)})
	}
	return out
}

// appendAttributes writes keys in order, so that equal rows give equal bytes.
func (b *Batch) appendAttributes(attributes map[string]string) {
	keys, values := b.Attributes.Fields[0].(*column.Flat[string]), b.Attributes.Fields[1].(*column.Flat[string])
	for _, k := range slices.Sorted(maps.Keys(attributes)) {
		keys.Append(k)
		values.Append(attributes[k])
	}
	b.Attributes.EndRow(attributes != nil)
}

func (b *Batch) attributes(i int) map[string]string {
	from, to, known := b.Attributes.Range(i)
	if !known {
		return nil
	}
	keys, values := b.Attributes.Fields[0].(*column.Flat[string]), b.Attributes.Fields[1].(*column.Flat[string])
	out := make(map[string]string, to-from)
	for e := from; e < to; e++ {
		out[keys.Values[e]] = values.Values[e]
	}
	return out
}

// ClearAttributes takes the attributes of row i away.
func (b *Batch) ClearAttributes(i int) { b.Attributes.Null[i] = true }
