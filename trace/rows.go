package trace

// rowStore holds rows in batches of BatchRows, so that it grows without copying
// what it holds. The zero value is empty.
type rowStore struct {
	full []*Batch // but the last, which may hold fewer
	free []*Batch
}

// append copies rows of b.
func (s *rowStore) append(b *Batch, from, to int) {
	for from < to {
		if n := len(s.full); n == 0 || s.full[n-1].Len() == BatchRows {
			s.full = append(s.full, s.empty())
		}
		last := s.full[len(s.full)-1]
		n := min(to-from, BatchRows-last.Len())
		last.AppendRows(b, from, from+n)
		from += n
	}
}

func (s *rowStore) empty() *Batch {
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b
	}
	return NewBatch()
}

// each hands rows to do, batch by batch.
func (s *rowStore) each(from, to int, do func(b *Batch, from, to int)) {
	for from < to {
		at := from % BatchRows
		n := min(to-from, BatchRows-at)
		do(s.full[from/BatchRows], at, at+n)
		from += n
	}
}

// copyTo appends rows to b.
func (s *rowStore) copyTo(b *Batch, from, to int) {
	s.each(from, to, func(src *Batch, from, to int) { b.AppendRows(src, from, to) })
}

// reset forgets the rows and keeps the memory.
func (s *rowStore) reset() {
	for _, b := range s.full {
		b.Reset()
	}
	s.free, s.full = append(s.free, s.full...), s.full[:0]
}

// dropFirst forgets the rows of the first batch, which is full.
func (s *rowStore) dropFirst() {
	first := s.full[0]
	first.Reset()
	s.full = s.full[:copy(s.full, s.full[1:])]
	s.free = append(s.free, first)
}
