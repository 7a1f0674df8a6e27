package trace

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"

	"reprise/trace/column"
)

// DefaultMemory is the number of bytes that sorting may hold before it goes to
// disk.
const DefaultMemory = 512 << 20

// aheadBatches is how many batches are kept of rows that came in order so far and are
// streamed, lest the next of them come late.
const aheadBatches = 1

// A Key orders rows; equal keys keep the order in which they were added.
type Key struct{ Major, Minor, Tie int64 }

// Compare returns -1, 0 or 1.
func (k Key) Compare(o Key) int {
	if k.Major != o.Major {
		return cmp.Compare(k.Major, o.Major)
	}
	return cmp.Or(cmp.Compare(k.Major, o.Major), cmp.Compare(k.Minor, o.Minor), cmp.Compare(k.Tie, o.Tie))
}

// A Sorter puts rows in the order of their keys. Beyond Memory it writes sorted
// runs to temporary files and merges them. The zero value sorts within
// DefaultMemory.
type Sorter struct {
	Memory int64  // bytes; 0 = DefaultMemory
	Dir    string // for temporary files; "" = the system's

	// Stream, if set, is asked instead of writing the first run: given a function,
	// the first of the rows in memory go there, in batches as Sorted makes them, and
	// so on, so that rows which are nearly in order reach no temporary file. Rows that
	// were in order so far go when some thousand are behind them, others when memory is
	// full, half of them. A row that comes too late for that is ErrLate.
	Stream func() (emit func(*Batch) error)

	rows  rowStore
	keys  []Key
	bytes int64
	runs  []*os.File
	moved int64
	last  Key
	any   bool

	emit  func(*Batch) error // what Stream gave
	out   *Batch             // rows on their way there
	sent  Key                // of the last of them
	spare rowStore
}

// ErrLate is the error of a row whose place in the order has been streamed already.
var ErrLate = errors.New("sort: a row comes later than memory reaches back")

// minMemory is the least that sorting holds, so that runs do not get so many that
// merging them takes more.
const minMemory = 32 << 20

// rowOverhead is what a row of nulls takes in a batch, in bytes.
const rowOverhead = 450

// Add copies row of b under key.
func (s *Sorter) Add(b *Batch, row int, key Key) error { return s.AddRows(b, row, []Key{key}) }

// addedRows is how many rows are added before their size is looked at, where memory
// is nearly full.
const addedRows = 64

// AddRows copies rows of b, the first of which is row, under their keys.
func (s *Sorter) AddRows(b *Batch, row int, keys []Key) error {
	for len(keys) > 0 {
		n := min(len(keys), BatchRows)
		size := rowsSize(b, row, row+n)
		if s.bytes+size >= s.limit() && n > addedRows {
			n = addedRows
			size = rowsSize(b, row, row+n)
		}
		if err := s.addRows(b, row, keys[:n], size); err != nil {
			return err
		}
		row, keys = row+n, keys[n:]
	}
	return nil
}

func (s *Sorter) addRows(b *Batch, row int, keys []Key, size int64) error {
	if err := s.compare(keys); err != nil {
		return err
	}
	s.rows.append(b, row, row+len(keys))
	s.keys = append(s.keys, keys...)
	if s.bytes += size; s.bytes >= s.limit() {
		return s.full()
	}
	for s.moved == 0 && len(s.rows.full) > aheadBatches+1 && s.streams() {
		if err := s.sendFirst(); err != nil {
			return err
		}
	}
	return nil
}

// compare looks how the keys of the next rows go with those before.
func (s *Sorter) compare(keys []Key) error {
	for _, key := range keys {
		if s.any && key.Compare(s.last) < 0 {
			if s.moved++; s.emit != nil && key.Compare(s.sent) < 0 {
				return ErrLate
			}
		} else {
			s.last, s.any = key, true
		}
	}
	return nil
}

// limit is how many bytes memory may hold.
func (s *Sorter) limit() int64 {
	limit := max(minMemory, cmp.Or(s.Memory, DefaultMemory)) / 2 // half: what the collector has not taken back yet
	if s.emit != nil || s.Stream != nil {
		limit /= 2 // rows that are kept are held twice for a moment
	}
	return limit
}

// streams says whether rows go to a stream, and asks for one that has not been.
func (s *Sorter) streams() bool {
	if s.emit == nil && s.Stream != nil && len(s.runs) == 0 {
		s.emit, s.Stream = s.Stream(), nil
		s.out = NewBatch()
	}
	return s.emit != nil
}

// sendFirst streams the first batch of memory, whose rows are in order.
func (s *Sorter) sendFirst() error {
	first := s.rows.full[0]
	s.bytes -= rowsSize(first, 0, BatchRows)
	var err error
	if s.out.Len() > 0 {
		err = s.send(s.order()[:BatchRows])
	} else {
		s.sent = s.keys[BatchRows-1]
		err = s.emit(first)
	}
	s.rows.dropFirst()
	s.keys = s.keys[:copy(s.keys, s.keys[BatchRows:])]
	return err
}

func rowsSize(b *Batch, from, to int) int64 {
	n := int64(rowOverhead) * int64(to-from)
	for _, c := range b.cols {
		n += int64(c.RowsBytes(from, to))
	}
	return n
}

// inARow returns how many of index, up to most, are one after another.
func inARow(index []int, most int) int {
	n := 1
	for n < min(len(index), most) && index[n] == index[n-1]+1 {
		n++
	}
	return n
}

// full makes room in memory.
func (s *Sorter) full() error {
	if !s.streams() {
		return s.spill()
	}
	index := s.order()
	keep := len(index) / 2
	if s.moved == 0 {
		keep = min(keep, aheadBatches*BatchRows) // in order so far
	}
	sent := len(index) - keep
	if err := s.send(index[:sent]); err != nil {
		return err
	}
	rest, keys := s.spare, make([]Key, 0, cap(s.keys))
	s.bytes = 0
	for index = index[sent:]; len(index) > 0; {
		n := inARow(index, len(index))
		from, to := index[0], index[0]+n
		s.rows.each(from, to, func(b *Batch, from, to int) {
			rest.append(b, from, to)
			s.bytes += rowsSize(b, from, to)
		})
		keys = append(keys, s.keys[from:to]...)
		index = index[n:]
	}
	s.rows.reset()
	s.rows, s.spare, s.keys = rest, s.rows, keys
	return nil
}

// send streams rows of memory.
func (s *Sorter) send(index []int) error {
	for len(index) > 0 {
		n := inARow(index, BatchRows-s.out.Len())
		from, to := index[0], index[0]+n
		s.rows.copyTo(s.out, from, to)
		s.sent = s.keys[to-1]
		index = index[n:]
		if s.out.Len() == BatchRows {
			if err := s.emit(s.out); err != nil {
				return err
			}
			s.out.Reset()
		}
	}
	return nil
}

// Moved returns how many rows came after one with a greater key.
func (s *Sorter) Moved() int64 { return s.moved }

// Close removes the temporary files.
func (s *Sorter) Close() error {
	var err error
	for _, f := range s.runs {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	s.runs = nil
	return err
}

// order returns the positions of the rows in memory, sorted.
func (s *Sorter) order() []int {
	index := make([]int, len(s.keys))
	for i := range index {
		index[i] = i
	}
	if s.moved > 0 {
		slices.SortStableFunc(index, func(a, b int) int { return s.keys[a].Compare(s.keys[b]) })
	}
	return index
}

// A run file is a trace with its keys before the canonical ones.
type runRow struct {
	Major int64 `parquet:"major,delta"`
	Minor int64 `parquet:"minor,delta"`
	Tie   int64 `parquet:"tie,delta"`
	fileRow
}

var runSchema = parquet.SchemaOf(runRow{})

type runBatch struct {
	major, minor, tie column.Flat[int64]
	rows              *Batch
	cols              []column.Column
}

func newRunBatch() *runBatch {
	r := &runBatch{rows: NewBatch()}
	r.cols = append([]column.Column{&r.major, &r.minor, &r.tie}, r.rows.cols...)
	return r
}

func (r *runBatch) reset() {
	for _, c := range r.cols {
		c.Reset()
	}
}

func (s *Sorter) spill() error {
	f, err := os.CreateTemp(s.Dir, "reprise-sort-*")
	if err != nil {
		return fmt.Errorf("sort: %w", err)
	}
	os.Remove(f.Name()) // it lives as long as it is open
	s.runs = append(s.runs, f)
	w := column.NewWriter(f, runSchema, formatVersion, noBounds...)
	out := newRunBatch()
	for _, i := range s.order() {
		out.major.Append(s.keys[i].Major)
		out.minor.Append(s.keys[i].Minor)
		out.tie.Append(s.keys[i].Tie)
		s.rows.copyTo(out.rows, i, i+1)
		if out.rows.Len() == BatchRows {
			if err := w.Write(out.cols); err != nil {
				return fmt.Errorf("sort: write run: %w", err)
			}
			out.reset()
		}
	}
	if err := w.Write(out.cols); err != nil {
		return fmt.Errorf("sort: write run: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("sort: write run: %w", err)
	}
	s.rows, s.keys, s.bytes = rowStore{}, s.keys[:0], 0
	return nil
}

// Sorted hands all rows to emit, in order, in batches that are reused; those that
// were streamed already do not come again.
func (s *Sorter) Sorted(emit func(*Batch) error) error {
	if !s.any {
		return nil
	}
	if s.emit != nil {
		if err := s.send(s.order()); err != nil || s.out.Len() == 0 {
			return err
		}
		return s.emit(s.out)
	}
	if len(s.runs) == 0 {
		return s.emitMemory(emit)
	}
	if len(s.keys) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	return s.merge(emit)
}

func (s *Sorter) emitMemory(emit func(*Batch) error) error {
	out := NewBatch()
	for index := s.order(); len(index) > 0; {
		n := inARow(index, BatchRows-out.Len())
		s.rows.copyTo(out, index[0], index[0]+n)
		index = index[n:]
		if out.Len() == BatchRows {
			if err := emit(out); err != nil {
				return err
			}
			out.Reset()
		}
	}
	if out.Len() == 0 {
		return nil
	}
	return emit(out)
}

func (s *Sorter) merge(emit func(*Batch) error) error {
	var h runHeap
	for i, f := range s.runs {
		c, err := openRun(f, i)
		if err != nil {
			return fmt.Errorf("sort: read run: %w", err)
		}
		if c != nil {
			h = append(h, c)
		}
	}
	heap.Init(&h)
	out := NewBatch()
	for len(h) > 0 {
		c := h[0]
		out.AppendRow(c.batch.rows, c.row)
		if out.Len() == BatchRows {
			if err := emit(out); err != nil {
				return err
			}
			out.Reset()
		}
		more, err := c.next()
		if err != nil {
			return fmt.Errorf("sort: read run: %w", err)
		}
		if more {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	if out.Len() == 0 {
		return nil
	}
	return emit(out)
}

// A runCursor stands on one row of a run.
type runCursor struct {
	order  int
	reader *column.Reader
	batch  *runBatch
	row    int
}

// openRun returns a cursor on the first row, or nil if there is none.
func openRun(f *os.File, order int) (*runCursor, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, err
	}
	r, err := column.NewReader(file, runSchema)
	if err != nil {
		return nil, err
	}
	c := &runCursor{order: order, reader: r, batch: newRunBatch(), row: -1}
	more, err := c.next()
	if err != nil || !more {
		return nil, err
	}
	return c, nil
}

func (c *runCursor) next() (bool, error) {
	c.row++
	if c.row < c.batch.rows.Len() {
		return true, nil
	}
	c.batch.reset()
	c.row = 0
	_, err := c.reader.Read(c.batch.cols, BatchRows)
	if err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

func (c *runCursor) key() Key {
	return Key{c.batch.major.Values[c.row], c.batch.minor.Values[c.row], c.batch.tie.Values[c.row]}
}

// A runHeap orders cursors by key, then by run: earlier runs hold earlier rows.
type runHeap []*runCursor

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	return cmp.Or(h[i].key().Compare(h[j].key()), cmp.Compare(h[i].order, h[j].order)) < 0
}
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)   { *h = append(*h, x.(*runCursor)) }
func (h *runHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
