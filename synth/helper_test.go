package synth

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/source"
	"reprise/trace"
)

// made is a trace in memory.
type made struct {
	rows []trace.Request
	meta trace.Meta
	data []byte
}

func (m *made) open() (*trace.Reader, error) {
	return trace.NewReader(bytes.NewReader(m.data), int64(len(m.data)), "made")
}

// write makes a trace of rows.
func write(t testing.TB, meta trace.Meta, rows []trace.Request) *made {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out)
	b := trace.NewBatch()
	for i := range rows {
		b.Append(&rows[i])
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(meta); err != nil {
		t.Fatal(err)
	}
	return &made{rows, meta, out.Bytes()}
}

// checked reads a trace back and holds it against every invariant.
func checked(t testing.TB, data []byte) *made {
	t.Helper()
	m := &made{data: data}
	r, err := m.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Check(context.Background(), r, func(e *trace.RowError) { t.Error(e) }); err != nil {
		t.Fatal(err)
	}
	r, _ = m.open()
	m.meta = r.Meta()
	for row, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		m.rows = append(m.rows, row)
	}
	return m
}

// imported reads a file of the public data; without it the test is skipped.
func imported(t testing.TB, path ...string) *made {
	t.Helper()
	shared := os.Getenv("REPRISE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	file := filepath.Join(append([]string{shared, "data"}, path...)...)
	if _, err := os.Stat(file); err != nil {
		t.Skipf("no shared data: %v", err)
	}
	src, _, err := source.Find([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	format, _, err := formats.Detect(src[0])
	if err != nil {
		t.Fatal(err)
	}
	imp, err := format.NewImporter(formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := formats.Import(context.Background(), imp, src, &out, 0, trace.Step{}, func(*trace.RowError) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return checked(t, out.Bytes())
}

// collect writes what a run emits.
func collect(t testing.TB, run func(emit func(*trace.Batch) error) (trace.Meta, error)) *made {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out)
	meta, err := run(w.Write)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(meta); err != nil {
		t.Fatal(err)
	}
	return checked(t, out.Bytes())
}

func spread(t testing.TB, m *made, s Spreading) *made {
	return collect(t, func(emit func(*trace.Batch) error) (trace.Meta, error) {
		meta, _, err := s.Run(context.Background(), m.open, emit)
		return meta, err
	})
}

func seconds(s float64) trace.Optional[time.Duration] {
	return trace.Some(time.Duration(s * 1e9))
}
