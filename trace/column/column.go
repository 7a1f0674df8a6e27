// Package column holds typed columns of nullable values, flat or one list deep,
// and moves them to and from Parquet files column by column, without
// reflection. The canonical trace and the results of a run are built on it.
package column

import (
	"bytes"
	"slices"
	"strings"
)

// A Column is one column of a batch.
type Column interface {
	Len() int                      // rows
	AppendNulls(n int)             // appends unknown rows
	Reset()                        // forgets the rows, keeps the memory
	AppendRow(src Column, row int) // appends one row of a column of the same type
	AppendRows(src Column, from, to int)
	Leaves() int                        // Parquet leaf columns it is stored in
	RowBytes(row int) int               // rough size of a row before encoding
	RowsBytes(from, to int) int         // the sum of RowBytes
	write(w []leafWriter, from, to int) // adds rows to the leaf writers
	read(r []*leafReader, n int) error  // appends n rows
}

// A Scalar is what a leaf holds.
type Scalar interface {
	int32 | int64 | uint64 | bool | string
}

// A Flat is a column of single values. The zero value is an empty column.
type Flat[T Scalar] struct {
	Values []T
	Null   []bool // true where the value is unknown
	blank  int    // up to here, what lies beyond the rows is null already
}

// Append adds a known value.
func (c *Flat[T]) Append(v T) {
	c.Values = append(c.Values, v)
	c.Null = append(c.Null, false)
}

// Extend adds n known values and returns them to be set; those it returned
// before may have moved.
func (c *Flat[T]) Extend(n int) []T {
	at := len(c.Values)
	c.Values = room(c.Values, n)[:at+n]
	c.Null = appendKnown(c.Null, n)
	return c.Values[at:]
}

// AppendNull adds an unknown value.
func (c *Flat[T]) AppendNull() {
	var zero T
	c.Values = append(c.Values, zero)
	c.Null = append(c.Null, true)
}

// AppendIf adds v if known, else null.
func (c *Flat[T]) AppendIf(v T, known bool) {
	if known {
		c.Append(v)
	} else {
		c.AppendNull()
	}
}

// Get returns the value of a row and whether it is known.
func (c *Flat[T]) Get(row int) (v T, known bool) { return c.Values[row], !c.Null[row] }

// Unknown says whether no row has a value.
func (c *Flat[T]) Unknown() bool { return allNull(c.Null) }

// Len returns the number of rows.
func (c *Flat[T]) Len() int { return len(c.Values) }

// Reset forgets the rows and keeps the memory.
func (c *Flat[T]) Reset() {
	if allNull(c.Null) {
		c.blank = max(c.blank, len(c.Null))
	} else {
		c.blank = 0
		if _, text := any(c.Values).([]string); text {
			clear(c.Values) // lets go of them
		}
	}
	c.Values, c.Null = c.Values[:0], c.Null[:0]
}

// allNull says whether nothing is known.
func allNull(null []bool) bool { return bytes.IndexByte(boolBytes(null), 0) < 0 }

// AppendRow appends row of src, a *Flat[T].
func (c *Flat[T]) AppendRow(src Column, row int) {
	s := src.(*Flat[T])
	c.Values = append(c.Values, s.Values[row])
	c.Null = append(c.Null, s.Null[row])
}

// AppendRows appends rows of src, a *Flat[T].
func (c *Flat[T]) AppendRows(src Column, from, to int) {
	s := src.(*Flat[T])
	if allNull(s.Null[from:to]) {
		c.AppendNulls(to - from)
		return
	}
	c.Values = append(c.Values, s.Values[from:to]...)
	c.Null = append(c.Null, s.Null[from:to]...)
}

// Leaves returns 1.
func (c *Flat[T]) Leaves() int { return 1 }

func (c *Flat[T]) RowBytes(row int) int {
	if c.Null[row] {
		return 1
	}
	if s, ok := any(c.Values).([]string); ok {
		return len(s[row]) + 8
	}
	return 8
}

// RowsBytes counts rows.
func (c *Flat[T]) RowsBytes(from, to int) int {
	return bytesBetween(c, from, to)
}

func bytesBetween[T Scalar](c *Flat[T], from, to int) int {
	null := bytes.Count(boolBytes(c.Null[from:to]), []byte{1})
	if text, ok := any(c.Values).([]string); ok && null < to-from {
		n := null
		for i := from; i < to; i++ {
			if !c.Null[i] {
				n += len(text[i]) + 8
			}
		}
		return n
	}
	return null + 8*(to-from-null)
}

func (c *Flat[T]) write(w []leafWriter, from, to int) {
	l := w[0].(*leaf[T])
	for from < to {
		end := min(to, from+flatRows)
		if _, text := any(c.Values).([]string); text && bytesBetween(c, from, end) >= pageBytes {
			end = from + 1
			for size := c.RowBytes(from); end < min(to, from+flatRows) && size < pageBytes; end++ {
				size += c.RowBytes(end)
			}
		}
		l.rows += end - from
		l.levels += end - from
		l.addNullable(c.Values[from:end], c.Null[from:end])
		if l.full() {
			l.endPage()
		}
		from = end
	}
}

// flatRows is how many rows go to a page before its size is looked at.
const flatRows = 4096

// addNullable appends values, some of which may be null, and whether they are.
func (l *leaf[T]) addNullable(values []T, null []bool) {
	for i := 0; i < len(values); {
		n := sameNull(null[i:])
		if null[i] {
			if !l.optional {
				panic("column: a null in " + strings.Join(l.path, ".") + ", which has none")
			}
			l.addNulls(l.maxDef-1, n)
		} else {
			l.def.add(l.maxDef, n)
			l.add(values[i : i+n])
		}
		i += n
	}
}

// addNulls adds n nulls of a definition level.
func (l *page) addNulls(level uint32, n int) {
	l.def.add(level, n)
	l.nulls += n
}

// read appends n rows from a leaf that is not repeated.
func (c *Flat[T]) read(r []*leafReader, n int) error {
	if r[0] == nil { // the file has no such column, or nobody asked for it
		c.AppendNulls(n)
		return nil
	}
	for n > 0 {
		if err := r[0].fill(); err != nil {
			return err
		}
		m := min(n, r[0].count-r[0].pos)
		c.readLevels(r[0], m)
		n -= m
	}
	return nil
}

// readLevels appends what m levels of the open page say: values, nulls, and
// nothing for lists that have no elements.
func (c *Flat[T]) readLevels(r *leafReader, m int) {
	if len(r.def) == 0 {
		c.appendPage(r, m)
		r.pos += m
		return
	}
	least := r.maxDef - 1
	if len(r.rep) > 0 {
		least = 2
	}
	for m > 0 {
		def := r.def[r.pos : r.pos+m]
		n := sameLevel(def)
		switch d := def[0]; {
		case d == r.maxDef:
			c.appendPage(r, n)
		case d >= least:
			c.AppendNulls(n)
		case len(r.rep) == 0:
			c.AppendNulls(n)
		}
		r.pos += n
		m -= n
	}
}

// sameLevel returns how many of levels, which is not empty, are as its first.
func sameLevel(levels []byte) int {
	first := levels[0]
	if len(levels) >= 16 && bytes.Count(levels, levels[:1]) == len(levels) {
		return len(levels)
	}
	for i, l := range levels {
		if l != first {
			return i
		}
	}
	return len(levels)
}

// appendPage appends n values of the open page.
func (c *Flat[T]) appendPage(r *leafReader, n int) {
	c.Values = appendValues(c.Values, r, n)
	c.Null = appendKnown(c.Null, n)
}

// AppendNulls adds n unknown values. A column of nothing else costs next to nothing:
// its values are memory that is not touched, and once it has been reset its nulls
// are there already.
func (c *Flat[T]) AppendNulls(n int) {
	at := len(c.Values)
	if at+n <= c.blank {
		c.Values, c.Null = c.Values[:at+n], c.Null[:at+n]
		return
	}
	if cap(c.Values)-at < n {
		c.Values = append(make([]T, 0, at+max(n, at)), c.Values...)[:at+n] // zero already
	} else {
		c.Values = c.Values[:at+n]
		clear(c.Values[at:])
	}
	c.Null = appendUnknown(c.Null, n)
}

// room returns list with room for n more, at least twice what it held if it has
// to move.
func room[T any](list []T, n int) []T {
	if cap(list)-len(list) >= n {
		return list
	}
	return slices.Grow(list, max(n, cap(list)))
}

func appendKnown(null []bool, n int) []bool {
	at := len(null)
	null = room(null, n)[:at+n]
	clear(null[at:])
	return null
}

var unknown = func() (all [1024]bool) {
	for i := range all {
		all[i] = true
	}
	return all
}()

func appendUnknown(null []bool, n int) []bool {
	for null = room(null, n); n > 0; {
		m := min(n, len(unknown))
		null = append(null, unknown[:m]...)
		n -= m
	}
	return null
}
