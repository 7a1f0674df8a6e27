package column

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"github.com/parquet-go/parquet-go/format"
)

// boundBytes is how much of a text its bounds keep; what they leave out makes
// them wider, never wrong.
const boundBytes = 64

// bounds are the smallest and the largest of some values.
type bounds[T Scalar] struct {
	known       bool
	least, most T
}

func (b *bounds[T]) add(v T) {
	switch {
	case !b.known:
		*b = bounds[T]{true, v, v}
	case v == b.least || v == b.most:
	case less(v, b.least):
		b.least = v
	case less(b.most, v):
		b.most = v
	}
}

func less[T Scalar](a, b T) bool {
	switch a := any(a).(type) {
	case int32:
		return a < any(b).(int32)
	case int64:
		return a < any(b).(int64)
	case uint64:
		return a < any(b).(uint64)
	case bool:
		return !a && any(b).(bool)
	default:
		return a.(string) < any(b).(string)
	}
}

func boundsOf[T Scalar](values []T) (b bounds[T]) {
	if len(values) == 0 {
		return b
	}
	b.known = true
	switch v := any(values).(type) {
	case []int32:
		b.least, b.most = ends[T](v)
	case []int64:
		b.least, b.most = ends[T](v)
	case []uint64:
		b.least, b.most = ends[T](v)
	case []bool:
		b.least, b.most = any(bytes.IndexByte(boolBytes(v), 0) < 0).(T), any(bytes.IndexByte(boolBytes(v), 1) >= 0).(T)
	case []string:
		b.least, b.most = ends[T](v)
	}
	return b
}

// ends returns the smallest and the largest of values, whose type is T.
func ends[T Scalar, V cmp.Ordered](values []V) (least, most T) {
	lo, hi := values[0], values[0]
	for _, v := range values[1:] {
		lo, hi = min(lo, v), max(hi, v)
	}
	return any(lo).(T), any(hi).(T)
}

// shortest returns a lower bound as Parquet writes it.
func shortest[T Scalar](v T) []byte {
	s, ok := any(v).(string)
	if !ok {
		return appendPlain(nil, []T{v})
	}
	return []byte(s[:min(len(s), boundBytes)])
}

// longest returns an upper bound: a text that is cut is raised, so that it
// still comes after all that begin like it.
func longest[T Scalar](v T) []byte {
	s, ok := any(v).(string)
	if !ok || len(s) <= boundBytes {
		if ok {
			return []byte(s)
		}
		return appendPlain(nil, []T{v})
	}
	b := []byte(s[:boundBytes])
	for i := len(b) - 1; i >= 0; i-- {
		// Below 0x7f, so that what was text stays text.
		if b[i] < 0x7f {
			b[i]++
			return b[:i+1]
		}
	}
	return []byte(s)
}

// compareBytes orders bounds of T as written.
func compareBytes[T Scalar](a, b []byte) int {
	var zero T
	switch any(zero).(type) {
	case int32:
		return cmp.Compare(int32(binary.LittleEndian.Uint32(a)), int32(binary.LittleEndian.Uint32(b)))
	case int64:
		return cmp.Compare(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
	case uint64:
		return cmp.Compare(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b))
	}
	return bytes.Compare(a, b)
}

// A chunkIndex says where the pages of a chunk are and what bounds they have.
type chunkIndex struct {
	bounded bool
	settled bool // the order of the bounds is known
	bounds  format.ColumnIndex
	places  format.OffsetIndex
	compare func(a, b []byte) int
}

// reset forgets the pages and keeps the memory.
func (c *chunkIndex) reset(bounded bool) {
	b, places := &c.bounds, c.places.PageLocations[:0]
	*c = chunkIndex{bounded: bounded, bounds: format.ColumnIndex{
		NullPages: b.NullPages[:0], NullCounts: b.NullCounts[:0], MinValues: b.MinValues[:0], MaxValues: b.MaxValues[:0],
	}}
	c.places.PageLocations = places
}

func (c *chunkIndex) note(known bool, nulls int64, least, most []byte) {
	if !known {
		least, most = []byte{}, []byte{}
	}
	c.bounds.NullPages = append(c.bounds.NullPages, !known)
	c.bounds.NullCounts = append(c.bounds.NullCounts, nulls)
	c.bounds.MinValues = append(c.bounds.MinValues, least)
	c.bounds.MaxValues = append(c.bounds.MaxValues, most)
}

// order says whether the bounds of the pages rise or fall.
func (c *chunkIndex) order() format.BoundaryOrder {
	rise, fall := true, true
	last := -1
	for i, null := range c.bounds.NullPages {
		if null {
			continue
		}
		if last >= 0 {
			least, most := c.compare(c.bounds.MinValues[last], c.bounds.MinValues[i]), c.compare(c.bounds.MaxValues[last], c.bounds.MaxValues[i])
			rise = rise && least <= 0 && most <= 0
			fall = fall && least >= 0 && most >= 0
		}
		last = i
	}
	switch {
	case rise:
		return format.Ascending
	case fall:
		return format.Descending
	}
	return format.Unordered
}
