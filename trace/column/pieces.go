package column

// pieces are bytes in several slices, so that they grow without being moved. The
// zero value is empty.
type pieces struct {
	list  [][]byte
	spare [][]byte // of list before the last reset
	size  int
}

// pieceBytes is the size of a piece once there are some.
const pieceBytes = 256 << 10

// add appends parts one after another.
func (p *pieces) add(parts ...[]byte) {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	if last := len(p.list) - 1; last < 0 || cap(p.list[last])-len(p.list[last]) < n {
		p.list = append(p.list, p.piece(n))
	}
	last := &p.list[len(p.list)-1]
	for _, part := range parts {
		*last = append(*last, part...)
	}
	p.size += n
}

// piece returns an empty one with room for n bytes.
func (p *pieces) piece(n int) []byte {
	if last := len(p.spare) - 1; last >= 0 {
		b := p.spare[last]
		p.spare = p.spare[:last]
		if cap(b) >= n {
			return b
		}
	}
	return make([]byte, 0, max(n, min(pieceBytes, p.size)))
}

// reset forgets the bytes and keeps the memory.
func (p *pieces) reset() {
	for i := len(p.list) - 1; i >= 0; i-- { // the first is the smallest
		p.spare = append(p.spare, p.list[i][:0])
	}
	p.list, p.size = p.list[:0], 0
}
