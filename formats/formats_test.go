package formats_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/source"
	"reprise/trace"
)

func TestDetect(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"mooncake":         {`{"timestamp":0,"input_length":5,"output_length":2,"hash_ids":[1]}`, "mooncake"},
		"mooncake literal": {`{"messages":[{"role":"user","content":"x"}],"output_length":3,"session_id":"a"}`, "mooncake"},
		"weka":             {`{"id":"a","models":["m"],"block_size":64,"hash_id_scope":"local","requests":[]}`, "weka"},
		"sharegpt":         {`[{"id":"a","conversations":[{"from":"human","value":"x"}]}]`, "sharegpt"},
		"sharegpt lines":   {`{"id":"a","conversations":[{"from":"human","value":"x"}]}`, "sharegpt"},
		"openai messages":  {`[{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}]`, "sharegpt"},
		"bailian":          {`{"chat_id":1,"parent_chat_id":-1,"timestamp":0.1,"input_length":5,"output_length":2,"hash_ids":[1]}`, "bailian"},
		"ragpulse":         {`{"timestamp":"0","input_length":5,"output_length":2,"hash_ids":{"sys_prompt":[1]},"session_id":"a"}`, "ragpulse"},
		"csv":              {"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4,1\r\n", "azure"},
		"prose":            {"hello", ""},
	} {
		path := filepath.Join(t.TempDir(), "in")
		os.WriteFile(path, []byte(c.text), 0o644)
		f, why, err := formats.Detect(source.New(path, nil))
		switch {
		case c.want == "" && (err == nil || trace.Fix(err) == ""):
			t.Errorf("%s: taken for %s (%s), %v", name, f.Name, why, err)
		case c.want != "" && (err != nil || f.Name != c.want || why == ""):
			t.Errorf("%s: %s (%s), %v", name, f.Name, why, err)
		}
	}
}

// A file that two formats take for their own is refused, with both named.
func TestAmbiguousIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	os.WriteFile(path, []byte(`{"timestamp":1,"session_id":"a","input":"x","output":"y","input_length":5,"output_length":3}`), 0o644)
	_, _, err := formats.Detect(source.New(path, nil))
	if err == nil || !strings.Contains(err.Error(), "could be mooncake (") || !strings.Contains(err.Error(), " or lmcache (") || trace.Fix(err) != "name it with --format" {
		t.Errorf("%v", err)
	}
}

// made is an importer of rows made up.
type made struct {
	clock string
	rows  []trace.Request
}

func (m made) Import(_ context.Context, _ []*source.Source, emit func(*trace.Batch) error, _ func(*trace.RowError) error) (trace.Meta, error) {
	b := trace.NewBatch()
	for i := range m.rows {
		m.rows[i].ID, m.rows[i].Operation = int64(i), trace.OpChat
		b.Append(&m.rows[i])
	}
	return trace.Meta{Clock: m.clock, Counts: trace.Counts{Read: int64(len(m.rows))}}, emit(b)
}

type madeSessions struct{ made }

func (madeSessions) SessionClock() bool { return true }

// What Import does with the order of rows, by clock.
func TestCanonicalOrder(t *testing.T) {
	row := func(session string, ms int) trace.Request {
		r := trace.Request{Session: trace.Some(session)}
		if ms >= 0 {
			r.Arrival = trace.Some(time.Duration(ms) * time.Millisecond)
		}
		return r
	}
	for name, c := range map[string]struct {
		imp  formats.Importer
		want string // ids in order
	}{
		"one clock, ties in source order":       {made{trace.ClockTrace, []trace.Request{row("a", 7), row("b", 5), row("c", 7), row("d", 5)}}, "1 3 0 2"},
		"a row without a time stays behind":     {made{trace.ClockTrace, []trace.Request{row("a", 1), row("b", 9), row("a", -1), row("b", -1)}}, "0 2 1 3"},
		"no clock: sessions stay together":      {made{trace.ClockNone, []trace.Request{row("a", -1), row("b", -1), row("a", -1)}}, "0 2 1"},
		"session clocks: sessions, then times":  {madeSessions{made{trace.ClockSession, []trace.Request{row("a", 5), row("b", 0), row("a", 0), row("b", 3)}}}, "2 0 1 3"},
		"one clock that does not begin at zero": {made{trace.ClockTrace, []trace.Request{row("a", 1000)}}, "0"},
	} {
		var out bytes.Buffer
		meta, err := formats.Import(t.Context(), c.imp, nil, &out, 0, trace.Step{}, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		r, err := trace.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), name)
		if err != nil {
			t.Fatal(name, err)
		}
		var ids []string
		for row, err := range r.Rows() {
			if err != nil {
				t.Fatal(name, err)
			}
			ids = append(ids, string(rune('0'+row.ID)))
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if strings.Contains(name, "begin at zero") && meta.OriginNS.Value != int64(time.Second) {
			t.Errorf("origin %v", meta.OriginNS)
		}
	}
}

func TestNothingUsableIsAnError(t *testing.T) {
	_, err := formats.Import(t.Context(), made{clock: trace.ClockNone}, nil, new(bytes.Buffer), 0, trace.Step{}, nil)
	if err == nil || trace.Fix(err) == "" {
		t.Errorf("an import without a row: %v", err)
	}
}
