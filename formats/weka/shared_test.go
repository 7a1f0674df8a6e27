package weka_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"reprise/formats/importtest"
	"reprise/formats/weka"
)

// Counts from the manifest of the published files, before pairs are merged.
func TestPublishedFiles(t *testing.T) {
	dir := importtest.Shared(t, "weka")
	for _, c := range []struct {
		file                              string
		top, agents, nested, in, out      int64
		hashes, merged, noE2E, noTh, ttft int64
		span                              time.Duration
	}{
		{"v1/trace_0208.json", 4, 1, 6, 1035164, 2144, 16168, 3, 10, 10, 0, 29 * time.Second},
		{"v1/trace_0294.json", 26, 1, 14, 1445120, 17575, 22562, 20, 40, 40, 0, 1019 * time.Second},
		{"v1/trace_0370.json", 32, 0, 0, 1021264, 9826, 15944, 15, 32, 32, 0, 857 * time.Second},
		{"v6/trace_0287.json", 26, 1, 14, 1445120, 17575, 22562, 20, 0, 0, 0, 1019 * time.Second},
		{"v6/trace_0303.json", 6, 0, 0, 61980, 1128, 966, 1, 0, 0, 0, 5 * time.Second},
		{"v6/trace_0343.json", 6, 0, 0, 61980, 1068, 966, 0, 0, 0, 0, 4 * time.Second},
		{"v6/trace_0430.json", 6, 0, 0, 61980, 1128, 966, 1, 0, 0, 0, 5 * time.Second},
		{"v6/trace_0501.json", 6, 0, 0, 43422, 705, 674, 1, 0, 0, 0, 4 * time.Second},
		{"v8/trace_0058.json", 4, 0, 0, 209885, 804, 3277, 0, 3, 3, 1, 45 * time.Second},
		{"v8/trace_0091.json", 10, 0, 0, 1284267, 1447, 20061, 0, 7, 5, 3, 441 * time.Second},
		{"v8/trace_0242.json", 3, 0, 0, 52760, 5027, 822, 0, 1, 0, 2, 185 * time.Second},
		{"v8/trace_0277.json", 9, 4, 44, 2576410, 31862, 40230, 0, 0, 0, 0, 1002533 * time.Millisecond},
		{"v8/trace_0291.json", 20, 2, 12, 2254119, 19504, 35209, 0, 0, 0, 0, 1363 * time.Second},
		{"v8/trace_0332.json", 20, 0, 0, 1912862, 12612, 29881, 0, 5, 0, 15, 3587 * time.Second},
		{"v8/trace_0398.json", 36, 0, 0, 1492865, 13412, 23308, 0, 0, 0, 0, 74138 * time.Second},
		{"v8/trace_0426.json", 36, 0, 0, 1492865, 13412, 23308, 0, 0, 0, 0, 74138 * time.Second},
		{"v8/trace_0504.json", 3, 0, 0, 33739, 337, 525, 0, 0, 0, 1, 3075 * time.Second},
		{"v8/trace_0707.json", 24, 0, 0, 1848820, 15927, 28876, 0, 0, 0, 0, 947 * time.Second},
	} {
		path := filepath.Join(dir, c.file)
		r := importtest.Load(t, &weka.Importer{KeepPairs: true}, path)
		got := tally(r)
		got.agents = r.Meta.Counts.Notes["sub-agents"]
		want := sums{rows: c.top + c.nested, nested: c.nested, agents: c.agents, in: c.in, out: c.out, hashes: c.hashes, ttft: c.ttft, e2e: c.top + c.nested - c.noE2E, span: c.span}
		if got != want || r.Meta.Counts.Read != want.rows {
			t.Errorf("%s:\n got %+v\nwant %+v", c.file, got, want)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if out, lost := r.Exported(t, weka.Exporter{}); lost != nil || !reflect.DeepEqual(sessions(t, []byte(out)), sessions(t, data)) {
			t.Errorf("%s: written back differs, lost %v", c.file, lost)
		}
		merged := importtest.Load(t, &weka.Importer{}, path)
		if n := merged.Meta.Counts.Merged["n row that repeats an s row"]; n != c.merged || merged.Meta.Counts.Read != want.rows {
			t.Errorf("%s: %d rows merged, want %d", c.file, n, c.merged)
		}
		// What was merged away and what its s row had said make up the sums.
		if in, out := mergedSums(t, merged); in != c.in || out != c.out {
			t.Errorf("%s: rows and merged rows hold %d in, %d out", c.file, in, out)
		}
	}
}

type sums struct {
	rows, nested, agents, in, out, hashes, ttft, e2e int64
	span                                             time.Duration
}

func tally(r importtest.Result) (s sums) {
	for _, row := range r.Rows {
		s.rows++
		s.in += row.InputTokens.Value
		s.out += row.OutputTokens.Value
		s.hashes += int64(len(row.Blocks))
		s.span = max(s.span, row.Arrival.Value)
		for _, c := range []struct {
			n  *int64
			is bool
		}{{&s.nested, row.Agent.Known}, {&s.ttft, row.RecordedTTFT.Known}, {&s.e2e, row.RecordedE2E.Known}} {
			if c.is {
				*c.n++
			}
		}
	}
	return s
}

func mergedSums(t *testing.T, r importtest.Result) (in, out int64) {
	s := tally(r)
	in, out = s.in, s.out
	for _, row := range r.Rows {
		var pair struct{ Out int64 }
		if text, ok := row.Attributes["weka.pair"]; ok {
			if err := json.Unmarshal([]byte(text), &pair); err != nil {
				t.Fatal(err)
			}
		}
		out += pair.Out
	}
	for _, e := range r.Rejected {
		var row struct{ In int64 }
		if err := json.Unmarshal([]byte(e.Raw), &row); err != nil {
			t.Fatal(err)
		}
		in += row.In
	}
	return in, out
}

func TestPublishedSessions(t *testing.T) {
	path := filepath.Join(importtest.Shared(t, "weka"), "v8_sessions.jsonl.gz")
	r := importtest.Load(t, &weka.Importer{}, path)
	got := tally(r)
	want := sums{rows: 8471 + 28, nested: 28, in: 996347827, out: 3566300, hashes: 15563703, ttft: 708, e2e: 8471 + 28 - 807, span: 94890 * time.Second}
	if got != want || r.Meta.Counts.Read != want.rows || r.Meta.Counts.Notes["sub-agents"] != 3 {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	out, lost := r.Exported(t, weka.Exporter{})
	if lost != nil {
		t.Errorf("lost %v", lost)
	}
	// The published lines are compact and in our order of keys; only whole
	// seconds are always written as 1.0 there.
	whole := regexp.MustCompile(`\.0([,}])`)
	plain := func(b []byte) []byte { return whole.ReplaceAll(bytes.TrimSpace(b), []byte("$1")) }
	if !bytes.Equal(plain(data), plain([]byte(out))) {
		t.Errorf("written back differs")
	}
}
