package prefix

// LinkRun is how many leading blocks a request must share with an earlier one to
// be taken for its continuation. One block may be a system prompt.
const LinkRun = 2

// A Linker infers conversations from prefixes, where a trace names none: a
// request whose leading run of known blocks is at least LinkRun long continues
// the session that brought the deepest block of the run; any other begins a
// session. Users who share a longer preamble are taken for one. The zero value
// is empty; its memory grows with the number of distinct blocks.
type Linker struct {
	table table[struct{}]
	turns turns
	fresh []uint32
}

// turns counts the requests of each session.
type turns []int32

func (t *turns) begin() uint32 {
	*t = append(*t, 0)
	return uint32(len(*t) - 1)
}

// next returns the 0-based turn of one more request of a session.
func (t turns) next(session uint32) int32 {
	t[session]++
	return t[session] - 1
}

// Link returns the session, numbered from 0 in order of appearance, and the
// 0-based turn of a request. Its arguments are those of [Infinite.Observe].
func (l *Linker) Link(model string, ids []uint64, blockTokens int32, inputTokens int64) (session, turn int32) {
	l.fresh = l.fresh[:0]
	run, deepest := 0, uint32(0)
	left := inputTokens
	for i, id := range ids {
		n := blockLength(blockTokens, left)
		left = max(left-int64(n), min(left, 0))
		class := l.table.classes.of(model, n)
		ord, fresh := l.table.find(id, class, blockHash(id, class))
		switch {
		case fresh:
			l.fresh = append(l.fresh, ord)
		case run == i:
			run++
			deepest = l.table.at(ord).owner
		}
	}
	owner := deepest
	if run < LinkRun {
		owner = l.turns.begin()
	}
	for _, ord := range l.fresh {
		l.table.at(ord).owner = owner
	}
	return int32(owner), l.turns.next(owner)
}

// Sessions returns how many sessions there are so far.
func (l *Linker) Sessions() int { return len(l.turns) }
