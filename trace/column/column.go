// Package column holds typed columns of nullable values, flat or one list deep,
// and moves them to and from Parquet files column by column, without
// reflection. The canonical trace and the results of a run are built on it.
package column

import (
	"math"
)

// A Column is one column of a batch.
type Column interface {
	Len() int                          // rows
	Reset()                            // forgets the rows, keeps the memory
	AppendRow(src Column, row int)     // appends one row of a column of the same type
	Leaves() int                       // Parquet leaf columns it is stored in
	RowBytes(row int) int              // rough size of a row before encoding
	write(w []*leafWriter, row int)    // adds one row to the leaf writers
	read(r []*leafReader, n int) error // appends n rows
}

// A Scalar is what a leaf holds.
type Scalar interface {
	int32 | int64 | uint64 | bool | string
}

// A Flat is a column of single values. The zero value is an empty column.
type Flat[T Scalar] struct {
	Values []T
	Null   []bool // true where the value is unknown
}

// Append adds a known value.
func (c *Flat[T]) Append(v T) {
	c.Values = append(c.Values, v)
	c.Null = append(c.Null, false)
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

// Len returns the number of rows.
func (c *Flat[T]) Len() int { return len(c.Values) }

// Reset forgets the rows and keeps the memory.
func (c *Flat[T]) Reset() {
	clear(c.Values) // lets go of strings
	c.Values, c.Null = c.Values[:0], c.Null[:0]
}

// AppendRow appends row of src, a *Flat[T].
func (c *Flat[T]) AppendRow(src Column, row int) {
	s := src.(*Flat[T])
	c.Values = append(c.Values, s.Values[row])
	c.Null = append(c.Null, s.Null[row])
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

func (c *Flat[T]) write(w []*leafWriter, row int) {
	if c.Null[row] {
		w[0].addNull(0, w[0].maxDef-1)
		return
	}
	w[0].add(scalarValue(c.Values, row), 0, w[0].maxDef)
}

// read appends n rows from a leaf that is not repeated.
func (c *Flat[T]) read(r []*leafReader, n int) error {
	if r[0] == nil { // the file has no such column
		for range n {
			c.AppendNull()
		}
		return nil
	}
	for n > 0 {
		if err := r[0].fill(); err != nil {
			return err
		}
		m := min(n, r[0].levels()-r[0].pos)
		c.readPage(r[0], m)
		n -= m
	}
	return nil
}

func (c *Flat[T]) readPage(r *leafReader, m int) {
	values := pageValues[T](r)
	if len(r.def) == 0 {
		c.Values = append(c.Values, values[r.value:r.value+m]...)
		for range m {
			c.Null = append(c.Null, false)
		}
		r.value += m
	} else {
		for _, d := range r.def[r.pos : r.pos+m] {
			if d < r.maxDef {
				c.AppendNull()
				continue
			}
			c.Append(values[r.value])
			r.value++
		}
	}
	r.pos += m
}

// A List is a column of lists, the elements of which are stored field by field
// (one field for a list of plain values). Null and empty lists are apart.
type List struct {
	Offsets []int32 // row i holds elements Offsets[i] to Offsets[i+1]; empty or one longer than Null
	Null    []bool  // true where the whole list is unknown
	Fields  []Column
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

// Len returns the number of rows.
func (c *List) Len() int { return len(c.Null) }

// Reset forgets the rows and keeps the memory.
func (c *List) Reset() {
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

// Leaves returns the number of fields.
func (c *List) Leaves() int { return len(c.Fields) }

func (c *List) RowBytes(row int) int {
	from, to, _ := c.Range(row)
	n := 1
	for _, f := range c.Fields {
		for e := from; e < to; e++ {
			n += f.RowBytes(e)
		}
	}
	return n
}

// Definition levels of an optional list: 0 unknown, 1 empty, 2 an element that
// is there (its field null if that is optional), 3 a known optional field.
func (c *List) write(w []*leafWriter, row int) {
	from, to, known := c.Range(row)
	for i, f := range c.Fields {
		switch {
		case !known:
			w[i].addNull(0, 0)
		case from == to:
			w[i].addNull(0, 1)
		default:
			for e := from; e < to; e++ {
				w[i].addElement(f, e, e > from)
			}
		}
	}
}

func (c *List) read(r []*leafReader, n int) error {
	if r[0] == nil {
		for range n {
			c.EndRow(false)
		}
		return nil
	}
	for i, f := range c.Fields {
		ends := func(known bool) { c.EndRow(known) }
		if i > 0 {
			ends = nil // the first field has told the shape
		}
		if err := r[i].readList(f, n, ends); err != nil {
			return err
		}
	}
	return nil
}
