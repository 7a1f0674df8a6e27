package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"reprise/trace"
)

// timesMagic begins a file of times: the requests of a share in the order in which they
// are sent. After it come the requests of a pass of the whole run, where the load has no
// end, else 0; then for each request the differences to the one before of its id, due
// time in ns and place, and its pass, all as varints.
const timesMagic = "reprise times 1\n"

// A timesWriter makes such a file.
type timesWriter struct {
	bytes []byte
	id    int64
	at    start
}

func newTimesWriter(s *Survey) timesWriter {
	pass := int64(0)
	if s.Endless {
		pass = s.Planned.Requests
	}
	return timesWriter{bytes: binary.AppendVarint([]byte(timesMagic), pass)}
}

func (w *timesWriter) add(id int64, s start) {
	known := int64(0)
	if s.known {
		known = 1
	}
	for _, n := range [...]int64{id - w.id, int64(s.due - w.at.due), int64(s.seq - w.at.seq), int64(s.pass)<<1 | known} {
		w.bytes = binary.AppendVarint(w.bytes, n)
	}
	w.id, w.at = id, s
}

// errTimes is why a file of times cannot be read.
var errTimes = errors.New("not a file of times, or cut off")

// A timesReader reads one.
type timesReader struct {
	bytes []byte
	pass  int64 // requests of a pass of the whole run; 0 = the load has an end
	id    int64
	at    start
}

func newTimesReader(text []byte) (*timesReader, error) {
	if len(text) < len(timesMagic) || string(text[:len(timesMagic)]) != timesMagic {
		return nil, errTimes
	}
	r := &timesReader{bytes: text[len(timesMagic):]}
	var ok bool
	if r.pass, ok = r.varint(); !ok || r.pass < 0 {
		return nil, errTimes
	}
	return r, nil
}

func (r *timesReader) varint() (int64, bool) {
	v, n := binary.Varint(r.bytes)
	if n <= 0 {
		return 0, false
	}
	r.bytes = r.bytes[n:]
	return v, true
}

// next returns the next request, and io.EOF after the last.
func (r *timesReader) next() (id int64, at start, err error) {
	if len(r.bytes) == 0 {
		return 0, start{}, io.EOF
	}
	var n [4]int64
	for i := range n {
		var ok bool
		if n[i], ok = r.varint(); !ok {
			return 0, start{}, errTimes
		}
	}
	if n[3] < 0 || n[3]>>1 != int64(int32(n[3]>>1)) {
		return 0, start{}, errTimes
	}
	r.id += n[0]
	r.at = start{due: r.at.due + time.Duration(n[1]), seq: r.at.seq + int(n[2]), pass: int32(n[3] >> 1), known: n[3]&1 != 0}
	return r.id, r.at, nil
}

// eachDealt hands on the requests of a share, as each does those of a trace: what is
// selected and when it is due was found where the share was made.
func (c *Config) eachDealt(ctx context.Context, f rowFunc) error {
	text, err := os.ReadFile(c.Times)
	if err != nil {
		return err
	}
	rows := &ring{c: c, b: trace.NewBatch()}
	defer rows.close()
	mine := c.sieve()
	for again := 0; ; again++ {
		times, err := newTimesReader(text)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Times, err)
		}
		n := 0
		for {
			id, s, err := times.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return fmt.Errorf("%s: %w", c.Times, err)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := rows.find(id); err != nil {
				return err
			}
			n++
			s.pass, s.seq = s.pass+int32(again), s.seq+again*int(times.pass)
			if !mine.has(rows.b, rows.row, s) {
				continue
			}
			if err := f(rows.b, rows.row, s); err != nil {
				return enough(err)
			}
		}
		if times.pass == 0 || !c.Selection.endless() || n == 0 {
			return nil
		}
	}
}

// A ring reads the rows of a share again and again: after the last comes the first.
type ring struct {
	c   *Config
	r   rowReader
	b   *trace.Batch
	row int // the one found last
}

// find goes on to the row of an id.
func (g *ring) find(id int64) error {
	if g.r != nil && g.row < g.b.Len() && g.b.ID.Values[g.row] == id {
		return nil
	}
	for ends := 0; ends < 2; {
		if g.row++; g.r != nil && g.row < g.b.Len() {
			if g.b.ID.Values[g.row] == id {
				return nil
			}
			continue
		}
		err := io.EOF
		if g.r != nil {
			err = g.r.Read(g.b, trace.BatchRows)
		}
		if g.row = -1; err == io.EOF {
			ends++
			err = g.reopen()
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: request %d is not in this share", g.c.Trace, id)
}

func (g *ring) reopen() (err error) {
	g.close()
	g.b.Reset()
	g.r, err = g.c.open()
	return err
}

func (g *ring) close() {
	if g.r != nil {
		g.r.Close()
		g.r = nil
	}
}
