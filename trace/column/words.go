package column

// Words is a column of texts, all known, of which few are distinct: each is
// stored once, and a row holds its place. The zero value is an empty column.
type Words struct {
	Table  []string
	Places []uint32 // in Table
	at     map[string]uint32
	last   uint32 // place that was found last
}

// Place returns where a text is in the table, into which it goes if it is new.
func (c *Words) Place(s string) uint32 {
	if len(c.Table) > 0 && c.Table[c.last] == s {
		return c.last
	}
	return c.find(s)
}

func (c *Words) find(s string) uint32 {
	if p, ok := c.at[s]; ok {
		c.last = p
		return p
	}
	if c.at == nil {
		c.at = map[string]uint32{}
	}
	p := uint32(len(c.Table))
	c.at[s] = p
	c.Table = append(c.Table, s)
	c.last = p
	return p
}

// Get returns the text of a row.
func (c *Words) Get(row int) string { return c.Table[c.Places[row]] }

// Extend adds n rows and returns their places to be set.
func (c *Words) Extend(n int) []uint32 {
	at := len(c.Places)
	c.Places = room(c.Places, n)[:at+n]
	return c.Places[at:]
}

// Len returns the number of rows.
func (c *Words) Len() int { return len(c.Places) }

// Reset forgets the rows, and the table if it has grown large.
func (c *Words) Reset() {
	c.Places = c.Places[:0]
	if len(c.Table) > 1024 {
		c.Table, c.at, c.last = nil, nil, 0
	}
}

// AppendRow appends row of src, a *Words.
func (c *Words) AppendRow(src Column, row int) {
	c.Places = append(c.Places, c.Place(src.(*Words).Get(row)))
}

// AppendRows appends rows of src, a *Words.
func (c *Words) AppendRows(src Column, from, to int) {
	s := src.(*Words)
	for _, p := range s.Places[from:to] {
		c.Places = append(c.Places, c.Place(s.Table[p]))
	}
}

// Leaves returns 1.
func (c *Words) Leaves() int { return 1 }

// RowBytes counts a place.
func (c *Words) RowBytes(int) int { return 4 }

// RowsBytes counts places.
func (c *Words) RowsBytes(from, to int) int { return 4 * (to - from) }

func (c *Words) write(w []leafWriter, from, to int) {
	l := w[0].(*leaf[string])
	l.rows += to - from
	l.levels += to - from
	l.def.add(l.maxDef, to-from)
	c.add(l, from, to)
	if l.full() {
		l.endPage()
	}
}

// add appends rows to the open page of l.
func (c *Words) add(l *leaf[string], from, to int) {
	if from < to && allSame(c.Places[from:to]) {
		l.addSame(c.Table[c.Places[from]], to-from)
		return
	}
	for i := from; i < to; {
		p := c.Places[i]
		n := 1
		for i+n < to && c.Places[i+n] == p {
			n++
		}
		l.addSame(c.Table[p], n)
		i += n
	}
}

func (c *Words) writeNone(w leafWriter, rows int) { w.(*leaf[string]).addUnknown(rows) }

func (c *Words) writeElements(w leafWriter, list *List, from, to int) {
	l := w.(*leaf[string])
	if list.writeLevels(&l.page, from, to) {
		c.add(l, int(list.Offsets[from]), int(list.Offsets[to]))
	} else {
		for row := from; row < to; row++ {
			if !list.Null[row] {
				c.add(l, int(list.Offsets[row]), int(list.Offsets[row+1]))
			}
		}
	}
	if l.full() {
		l.endPage()
	}
}

func (c *Words) read(r []*leafReader, n int) error {
	if r[0] == nil {
		c.AppendNulls(n)
		return nil
	}
	return readLevels(c, r[0], n)
}

func (c *Words) readLevels(r *leafReader, m int) {
	n := 0
	for _, d := range r.def[r.pos : r.pos+m] {
		if d == r.maxDef {
			n++
		}
	}
	if len(r.def) == 0 {
		n = m
	}
	r.pos += m
	to := c.Extend(n)
	if values, positions := pageValues[string](r); positions == nil {
		for i, s := range values[r.value : r.value+n] {
			to[i] = c.Place(s)
		}
	} else {
		c.places(to, values, positions[r.value:r.value+n])
	}
	r.value += n
}

// places turns positions in a dictionary of a file to places.
func (c *Words) places(to []uint32, dict []string, positions []int32) {
	last, place := int32(-1), uint32(0)
	for i, p := range positions {
		if p != last {
			last, place = p, c.Place(dict[p])
		}
		to[i] = place
	}
}

// AppendNulls adds n empty texts: the column has no unknown ones.
func (c *Words) AppendNulls(n int) {
	to := c.Extend(n)
	none := c.Place("")
	for i := range to {
		to[i] = none
	}
}
