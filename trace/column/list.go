package column

import (
	"bytes"
	"fmt"
	"io"
	"math"
)

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
