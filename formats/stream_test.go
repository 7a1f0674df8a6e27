package formats_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// many is an importer of many rows; it rejects one.
type many struct {
	rows    []trace.Request
	clock   string
	imports int
}

func (m *many) Import(_ context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	m.imports++
	if err := reject(&trace.RowError{File: src[0].Name, Line: 1, Err: errors.New("no row"), Reason: "made"}); err != nil {
		return trace.Meta{}, err
	}
	b := trace.NewBatch()
	for i := range m.rows {
		m.rows[i].ID, m.rows[i].Operation = int64(i), trace.OpChat
		b.Append(&m.rows[i])
		if b.Len() == 1000 || i == len(m.rows)-1 {
			if err := emit(b); err != nil {
				return trace.Meta{}, err
			}
			b.Reset()
		}
	}
	return trace.Meta{Clock: m.clock, Counts: trace.Counts{Read: int64(len(m.rows)) + 1}}, nil
}

type manySessions struct{ many }

func (manySessions) SessionClock() bool { return true }

type manyTurns struct {
	many
	sessions.Chain
}

func (m *manyTurns) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	m.Chain.Reset(false)
	return m.many.Import(ctx, src, emit, reject)
}

// made30k are rows in order of arrival, in 5000 sessions.
func made30k() []trace.Request {
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([]trace.Request, 30_000)
	at := time.Hour
	for i := range rows {
		at += time.Duration(r.IntN(3)) * time.Millisecond
		rows[i] = trace.Request{Arrival: trace.Some(at), InputTokens: trace.Some(int64(i)), Session: trace.Some(string(rune('a' + r.IntN(5000))))}
	}
	return rows
}

// Rows that go to a file as they come give the bytes that rows sorted by way of the
// disk give; where they cannot, the import begins anew, and rejects nothing twice.
func TestStreamedRowsAreTheSameBytes(t *testing.T) {
	local := func(rows []trace.Request) {
		r := rand.New(rand.NewPCG(3, 4))
		for i := 0; i+200 < len(rows); i += 100 {
			j := i + r.IntN(200)
			rows[i], rows[j] = rows[j], rows[i]
		}
	}
	late := func(rows []trace.Request) { rows[29_000].Arrival = trace.Some(time.Minute) }
	noTime := func(rows []trace.Request) {
		for i := range rows {
			if i%7 == 0 {
				rows[i].Arrival = trace.Optional[time.Duration]{}
			}
		}
	}
	noClock := func(rows []trace.Request) {
		for i := range rows {
			rows[i].Arrival = trace.Optional[time.Duration]{}
		}
	}
	bySession := func(rows []trace.Request) {
		for i := range rows {
			rows[i].Session = trace.Some(string(rune('a' + i/12)))
			rows[i].Arrival = trace.Some(time.Duration(i % 12))
		}
	}
	for name, c := range map[string]struct {
		change  func([]trace.Request)
		imp     func([]trace.Request) (formats.Importer, *int)
		imports int
	}{
		"in order":           {func([]trace.Request) {}, plain(trace.ClockTrace), 1},
		"nearly in order":    {local, plain(trace.ClockTrace), 1},
		"one much too late":  {late, plain(trace.ClockTrace), 2},
		"some without time":  {noTime, plain(trace.ClockTrace), 2},
		"no clock":           {noClock, plain(trace.ClockNone), 1},
		"times but no clock": {func([]trace.Request) {}, plain(trace.ClockNone), 2},
		"sessions in order":  {bySession, inSessions, 1},
		"sessions mixed":     {func([]trace.Request) {}, inSessions, 2},
		"turns":              {func([]trace.Request) {}, inTurns, 1},
		"turns, one late":    {late, inTurns, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := made30k()
			c.change(rows)
			path := filepath.Join(t.TempDir(), "in")
			os.WriteFile(path, []byte("x"), 0o644)
			imp, imports := c.imp(rows)
			var sorted bytes.Buffer
			importTo(t, imp, path, &sorted)
			*imports = 0
			out := filepath.Join(t.TempDir(), "out")
			f, err := trace.Create(out)
			if err != nil {
				t.Fatal(err)
			}
			importTo(t, imp, path, f)
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
			streamed, _ := os.ReadFile(out)
			if !bytes.Equal(streamed, sorted.Bytes()) {
				t.Errorf("%d bytes streamed, %d sorted: they differ", len(streamed), sorted.Len())
			}
			if *imports != c.imports {
				t.Errorf("imported %d times, want %d", *imports, c.imports)
			}
		})
	}
}

func plain(clock string) func([]trace.Request) (formats.Importer, *int) {
	return func(rows []trace.Request) (formats.Importer, *int) {
		m := &many{rows: rows, clock: clock}
		return m, &m.imports
	}
}

func inSessions(rows []trace.Request) (formats.Importer, *int) {
	m := &manySessions{many{rows: rows, clock: trace.ClockSession}}
	return m, &m.imports
}

func inTurns(rows []trace.Request) (formats.Importer, *int) {
	m := &manyTurns{many: many{rows: rows, clock: trace.ClockTrace}}
	return m, &m.imports
}

// importTo imports with as little memory as sorting takes.
func importTo(t *testing.T, imp formats.Importer, path string, w interface{ Write([]byte) (int, error) }) {
	t.Helper()
	rejected := 0
	meta, err := formats.Import(t.Context(), imp, []*source.Source{source.New(path, nil)}, w, 1, trace.Step{Command: "trace import"}, func(*trace.RowError) error {
		rejected++
		return nil
	})
	if err != nil || rejected != 1 || meta.Counts.Kept != 30_000 || meta.Counts.Rejected["made"] != 1 {
		t.Errorf("%v, %d rejected, %+v", err, rejected, meta.Counts)
	}
}
