package jsonl

// An idSet is a set of ids, a bit each where they are dense. The zero value is ready
// to use.
type idSet map[int64]uint64

// add tells whether id is new.
func (s *idSet) add(id int64) bool {
	if s.has(id) {
		return false
	}
	if *s == nil {
		*s = idSet{}
	}
	(*s)[id>>6] |= 1 << (id & 63)
	return true
}

func (s *idSet) has(id int64) bool { return (*s)[id>>6]&(1<<(id&63)) != 0 }
