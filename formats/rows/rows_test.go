package rows_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

func sink(emitted *int, rejected *[]*trace.RowError) *rows.Sink {
	return rows.New(func(b *trace.Batch) error { *emitted += b.Len(); return nil }, func(e *trace.RowError) error { *rejected = append(*rejected, e); return nil })
}

func file(t *testing.T, text string) []*source.Source {
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return []*source.Source{source.New(path, nil)}
}

func TestObjects(t *testing.T) {
	var n int
	var bad []*trace.RowError
	s := sink(&n, &bad)
	err := s.Objects(t.Context(), file(t, "{\"a\":1}\n[2]\n{\"a\":\"x\",\"b\":2}\n{\"c\":null,\"d\":[1, 2]}\n"), func(r *rows.Record) error {
		if _, err := r.Row.Int("a"); err != nil {
			return err
		}
		req := r.Place("chat")
		s.Attributes(&req, "p.", r.Row, "b")
		return s.Add(&req)
	})
	if err != nil {
		t.Fatal(err)
	}
	meta, err := s.Meta("x", "y")
	if err != nil || n != 2 || len(bad) != 2 || meta.Counts.Read != 4 || meta.Clock != trace.ClockNone {
		t.Errorf("%d rows, rejected %v, meta %+v, error %v", n, bad, meta, err)
	}
	if bad[0].Line != 2 || bad[0].Reason != "not JSON" || bad[1].Line != 3 || bad[1].Reason != "a" || bad[1].Raw != `{"a":"x","b":2}` {
		t.Errorf("rejected %+v %+v", bad[0], bad[1])
	}
	if len(meta.Counts.Notes) != 1 || meta.Counts.Notes["unknown field p.d kept in attributes"] != 1 {
		t.Errorf("notes %v", meta.Counts.Notes)
	}
}

// An error of emit ends the import and is not taken for a bad row.
func TestEmitFails(t *testing.T) {
	full := errors.New("disk full")
	var bad int
	s := rows.New(func(*trace.Batch) error { return full }, func(*trace.RowError) error { bad++; return nil })
	err := s.Objects(t.Context(), file(t, strings.Repeat("{}\n", trace.BatchRows+5)), func(r *rows.Record) error {
		req := r.Place("chat")
		return s.Add(&req)
	})
	if !errors.Is(err, full) || bad != 0 {
		t.Errorf("error %v, %d rejected", err, bad)
	}
	if _, err := s.Meta("x", ""); !errors.Is(err, full) {
		t.Errorf("at the end: %v", err)
	}
}

// A batch is handed on before its texts get large.
func TestTextsAreBounded(t *testing.T) {
	var n int
	var bad []*trace.RowError
	s := sink(&n, &bad)
	for range 5 {
		s.Add(&trace.Request{Operation: "chat", Prompt: trace.Some(strings.Repeat("x", 3<<20))})
	}
	if n != 4 {
		t.Errorf("%d rows of 5 handed on", n)
	}
}

func TestSetBlocks(t *testing.T) {
	for _, c := range []struct {
		in   int64
		ids  int
		want string
	}{{33, 3, "partial"}, {33, 2, "dropped"}, {32, 2, "partial"}, {33, 1, "other"}, {33, 4, "h: 4 ids of 16 tokens, but the prompt has 33, which is room for 3"}, {0, 0, "partial"}} {
		r := trace.Request{InputTokens: trace.Some(c.in), Blocks: make([]uint64, c.ids)}
		err := rows.SetBlocks(&r, "h", 16)
		got := r.BlockTail.Value
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d ids for %d tokens: %s, want %s", c.ids, c.in, got, c.want)
		}
	}
	var none trace.Request
	if err := rows.SetBlocks(&none, "h", 16); err != nil || none.BlockTail.Known || none.BlockTokens.Known {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestClock(t *testing.T) {
	c, err := rows.ParseZone("+05:30")
	if err != nil {
		t.Fatal(err)
	}
	row := jsonx.Row{"a": []byte(`"2024-05-01T05:30:00"`), "b": []byte(`"2024-05-01T00:00:00Z"`), "c": []byte("7"), "d": []byte(`""`)}
	a, aerr := c.Take(row, "a")
	b, berr := c.Take(row, "x", "b")
	if a != b || !a.Known || aerr != nil || berr != nil {
		t.Errorf("%v %v, %v %v", a, b, aerr, berr)
	}
	if _, err := c.Take(row, "c"); err == nil {
		t.Error("a number was taken for a calendar time")
	}
	if d, err := c.Take(row, "d"); d.Known || err != nil {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := rows.ParseZone("Mars"); err == nil || trace.Fix(err) == "" {
		t.Errorf("%v", err)
	}
}

func TestUnits(t *testing.T) {
	row := jsonx.Row{"a": []byte("1700000000.123456789"), "b": []byte(`"82"`), "c": []byte("-1"), "d": []byte("null")}
	a, _ := rows.TakeUnits(row, time.Second, "a")
	b, _ := rows.TakeUnits(row, time.Second, "b")
	d, err := rows.TakeUnits(row, time.Second, "d")
	if a.Value != 1700000000123456789 || b.Value != 82*time.Second || d.Known || err != nil {
		t.Error(fmt.Sprint(a, b, d, err))
	}
	if _, err := rows.TakeSpan(row, time.Second, "c"); err == nil {
		t.Error("a length of time below 0 was taken")
	}
}
