// Package column holds typed columns of nullable values, flat or one list deep,
// and moves them to and from Parquet files column by column, without
// reflection. The canonical trace and the results of a run are built on it.
package column

import (
	"bytes"
	"fmt"
	"io"
	"math"
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

// A List is a column of lists, the elements of which are stored field by field
// (one field for a list of plain values). Null and empty lists are apart.
type List struct {
	Offsets []int32 // row i holds elements Offsets[i] to Offsets[i+1]; empty or one longer than Null
	Null    []bool  // true where the whole list is unknown
	Fields  []Column
	blank   int // up to here, what lies beyond the rows is null, and empty, already
}

// NewList returns a list whose elements have the given flat fields.
func NewList(fields ...Column) *List { return &List{Fields: fields} }

// Range returns the elements of a row as positions in the fields; known is
// false if the list is unknown.
func (c *List) Range(row int) (from, to int, known bool) {
	return int(c.Offsets[row]), int(c.Offsets[row+1]), !c.Null[row]
}

// EndRow closes a row whose elements were appended to the fields.
func (c *List) EndRow(known bool) {
	if len(c.Offsets) == 0 {
		c.Offsets = append(c.Offsets, 0)
	}
	n := c.Fields[0].Len()
	if n > math.MaxInt32 {
		panic("column: a batch of lists holds more than 2^31 elements")
	}
	c.Offsets = append(c.Offsets, int32(n))
	c.Null = append(c.Null, !known)
}

// AppendNulls adds n unknown lists.
func (c *List) AppendNulls(n int) {
	if len(c.Offsets) == 0 {
		c.Offsets = append(c.Offsets, 0)
	}
	last, at := c.Offsets[len(c.Offsets)-1], len(c.Null)
	if last == 0 && at+n <= c.blank {
		c.Offsets, c.Null = c.Offsets[:at+n+1], c.Null[:at+n]
		return
	}
	c.Offsets = room(c.Offsets, n)[:at+n+1]
	for i := range c.Offsets[at+1:] {
		c.Offsets[at+1+i] = last
	}
	c.Null = appendUnknown(c.Null, n)
}

// Len returns the number of rows.
func (c *List) Len() int { return len(c.Null) }

// Reset forgets the rows and keeps the memory.
func (c *List) Reset() {
	if n := len(c.Null); n > 0 && c.Offsets[n] == 0 && allNull(c.Null) {
		c.blank = max(c.blank, n)
	} else if n > 0 {
		c.blank = 0
	}
	c.Offsets, c.Null = c.Offsets[:0], c.Null[:0]
	for _, f := range c.Fields {
		f.Reset()
	}
}

// AppendRow appends row of src, a *List with the same fields.
func (c *List) AppendRow(src Column, row int) {
	s := src.(*List)
	from, to, known := s.Range(row)
	for i, f := range c.Fields {
		for e := from; e < to; e++ {
			f.AppendRow(s.Fields[i], e)
		}
	}
	c.EndRow(known)
}

// AppendRows appends rows of src, a *List with the same fields.
func (c *List) AppendRows(src Column, from, to int) {
	s := src.(*List)
	if from == to {
		return
	}
	first, last := int(s.Offsets[from]), int(s.Offsets[to])
	c.AppendNulls(to - from)
	if first == last && allNull(s.Null[from:to]) {
		return
	}
	rows := len(c.Null) - (to - from)
	copy(c.Null[rows:], s.Null[from:to])
	move := c.Offsets[rows] - s.Offsets[from]
	for i := from; i < to; i++ {
		c.Offsets[rows+1+i-from] = s.Offsets[i+1] + move
	}
	for i, f := range c.Fields {
		f.AppendRows(s.Fields[i], first, last)
	}
	if c.Fields[0].Len() > math.MaxInt32 {
		panic("column: a batch of lists holds more than 2^31 elements")
	}
}

// Leaves returns the number of fields.
func (c *List) Leaves() int { return len(c.Fields) }

// RowBytes counts the elements of a row.
func (c *List) RowBytes(row int) int { return c.RowsBytes(row, row+1) }

// RowsBytes counts the elements of rows.
func (c *List) RowsBytes(from, to int) int {
	n := to - from
	if n == 0 || c.Offsets[from] == c.Offsets[to] {
		return n
	}
	for _, f := range c.Fields {
		n += f.RowsBytes(int(c.Offsets[from]), int(c.Offsets[to]))
	}
	return n
}

// Lists go to their pages by so many rows or elements, and at least one row.
const (
	listRows     = 256
	listElements = 8192
)

func (c *List) write(w []leafWriter, from, to int) {
	if from < to && c.Offsets[from] == c.Offsets[to] && allNull(c.Null[from:to]) {
		for i, f := range c.Fields {
			f.(element).writeNone(w[i], to-from)
		}
		return
	}
	for from < to {
		end := from + 1
		for end < min(to, from+listRows) && int(c.Offsets[end+1]-c.Offsets[from]) <= listElements {
			end++
		}
		for i, f := range c.Fields {
			f.(element).writeElements(w[i], c, from, end)
		}
		from = end
	}
}

// hidden says whether unknown lists hold elements: those of a list that was
// known before.
func (c *List) hidden(from, to int) bool {
	for row := from; row < to; row++ {
		if c.Null[row] && c.Offsets[row] != c.Offsets[row+1] {
			return true
		}
	}
	return false
}

// An element is a column that can be a field of a list.
type element interface {
	writeElements(w leafWriter, list *List, from, to int)
	writeNone(w leafWriter, rows int) // of lists that are unknown
	readLevels(r *leafReader, m int)
}

// writeLevels adds the levels of lists whose elements are all known, and says
// whether all of these are to be stored: not those of lists that are unknown.
//
// Definition levels of an optional list: 0 unknown, 1 empty, 2 an element that
// is there (its field null if that is optional), 3 a known optional field.
func (c *List) writeLevels(p *page, from, to int) (plain bool) {
	p.rows += to - from
	for row := from; row < to; row++ {
		n := int(c.Offsets[row+1] - c.Offsets[row])
		if c.Null[row] {
			n = 0
		}
		p.rep.add(0, 1)
		p.levels += max(1, n)
		switch {
		case c.Null[row]:
			p.addNulls(0, 1)
		case n == 0:
			p.addNulls(1, 1)
		default:
			p.rep.add(1, n-1)
			p.def.add(p.maxDef, n)
		}
	}
	return !c.hidden(from, to)
}

// addUnknown adds the levels of lists that are unknown.
func (p *page) addUnknown(rows int) {
	p.rows += rows
	p.levels += rows
	p.rep.add(0, rows)
	p.addNulls(0, rows)
}

func (c *Flat[T]) writeNone(w leafWriter, rows int) { w.(*leaf[T]).addUnknown(rows) }

func (c *Flat[T]) writeElements(w leafWriter, list *List, from, to int) {
	l := w.(*leaf[T])
	first, last := int(list.Offsets[from]), int(list.Offsets[to])
	if bytes.IndexByte(boolBytes(c.Null[first:last]), 1) < 0 && !list.hidden(from, to) {
		list.writeLevels(&l.page, from, to)
		l.add(c.Values[first:last])
	} else {
		c.writeSome(l, list, from, to)
	}
	if l.full() {
		l.endPage()
	}
}

// writeSome writes lists row by row, because elements are null or hidden.
func (c *Flat[T]) writeSome(l *leaf[T], list *List, from, to int) {
	for row := from; row < to; row++ {
		first, last := int(list.Offsets[row]), int(list.Offsets[row+1])
		if list.Null[row] || first == last {
			list.writeLevels(&l.page, row, row+1)
			continue
		}
		l.rows++
		l.levels += last - first
		l.rep.add(0, 1)
		l.rep.add(1, last-first-1)
		l.addNullable(c.Values[first:last], c.Null[first:last])
	}
}

func (c *List) read(r []*leafReader, n int) error {
	if len(c.Offsets) == 0 {
		c.Offsets = append(c.Offsets, 0)
	}
	if r[0] == nil {
		c.AppendNulls(n)
		return nil
	}
	levels, err := c.readShape(r[0], n)
	if err != nil {
		return err
	}
	for i, f := range c.Fields {
		if r[i] == nil { // the file has no such field
			f.AppendNulls(int(c.Offsets[len(c.Offsets)-1]) - f.Len())
		} else if i > 0 {
			if err := readLevels(f.(element), r[i], levels); err != nil {
				return err
			}
		}
		if f.Len() != int(c.Offsets[len(c.Offsets)-1]) {
			return fmt.Errorf("the file is damaged: the fields of a list have %d and %d elements", c.Offsets[len(c.Offsets)-1], f.Len())
		}
	}
	return nil
}

// readLevels appends what the next n levels say.
func readLevels(f element, r *leafReader, n int) error {
	for n > 0 {
		if err := r.fill(); err != nil {
			return err
		}
		m := min(n, r.count-r.pos)
		f.readLevels(r, m)
		n -= m
	}
	return nil
}

// readShape appends n rows and the elements of their first field, and returns
// how many levels they took: one for each element and for each list without any.
func (c *List) readShape(r *leafReader, n int) (levels int, err error) {
	elements := int(c.Offsets[len(c.Offsets)-1])
	for rows, done := 0, false; !done; {
		err := r.fill()
		if err == io.ErrUnexpectedEOF && rows == n {
			break // the last row ends with the row group
		}
		if err != nil {
			return 0, err
		}
		end := r.pos
		for end < r.count {
			if r.rep[end] == 0 {
				if rows == n {
					done = true
					break
				}
				rows++
				c.Null = append(c.Null, r.def[end] == 0)
				c.Offsets = append(c.Offsets, 0)
			}
			m := bytes.IndexByte(r.rep[end+1:r.count], 0) + 1
			if m == 0 {
				m = r.count - end
			}
			if r.def[end] >= 2 {
				elements += m
			}
			c.Offsets[len(c.Offsets)-1] = int32(elements)
			end += m
		}
		if elements > math.MaxInt32 {
			panic("column: a batch of lists holds more than 2^31 elements")
		}
		levels += end - r.pos
		c.Fields[0].(element).readLevels(r, end-r.pos)
	}
	return levels, nil
}
