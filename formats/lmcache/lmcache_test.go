package lmcache_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/lmcache"
	"reprise/trace"
)

func imp() formats.Importer { return &lmcache.Importer{} }

func TestGolden(t *testing.T) {
	importtest.Golden(t, imp(), "lmcache", "text.jsonl")
	importtest.Golden(t, imp(), "lmcache", "messages.jsonl")
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "lmcache", "text.jsonl", "messages.jsonl") }

const good = `{"timestamp": 1760587666509217, "input": "user: hi", "output": "hello", "session_id": "a"}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.jsonl", good, func(n int) string {
		return strings.Replace(good, "hi", strings.Repeat("x", n), 1)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, lmcache.Detect, map[string]bool{
		good: true,
		`{"session_id":"a","input":[{"role":"user"}],"output_length":12,"pre_gap":0}`: true,
		`{"session_id":"a","input":"x"}`:                                              false,
		`{"input":"x","output":"y","timestamp":1}`:                                    false,
	})
}

func TestCount(t *testing.T) {
	words := func(s string) int { return len(strings.Fields(s)) }
	r := importtest.Text(t, &lmcache.Importer{Count: words, Counter: "words"}, "x.jsonl", good)
	if r.Rows[0].InputTokens != trace.Some(int64(2)) || r.Rows[0].OutputTokens != trace.Some(int64(1)) {
		t.Errorf("%+v", r.Rows[0])
	}
}

func TestPublishedFiles(t *testing.T) {
	for file, c := range map[string]struct {
		rows int
		span int64 // us
	}{
		"miniswe_189f0222310bd8eee310f204e91b9c84":  {6, 6969584},
		"miniswe_ae5bc34ffaf6e553cc320e6499db0d47":  {8, 9423305},
		"taubench_22ffaaf33001ec7197ccd612e03d428e": {6, 1724850},
		"taubench_24c817382a29e399b7dac064b923c268": {3, 1977960},
	} {
		r := importtest.Load(t, imp(), importtest.Shared(t, "lmcache_agent", file+".jsonl"))
		last := r.Rows[len(r.Rows)-1]
		_, id, _ := strings.Cut(file, "_")
		if len(r.Rows) != c.rows || last.Arrival.Value != time.Duration(c.span)*time.Microsecond || last.Session.Value != id || last.Turn.Value != int32(c.rows-1) {
			t.Errorf("%s: %d rows, last %v in %v", file, len(r.Rows), last.Arrival, last.Session)
		}
	}
	// The files are not in order of time; by time each prompt goes on from the one before.
	talk := importtest.Load(t, imp(), importtest.Shared(t, "lmcache_agent", "miniswe_ae5bc34ffaf6e553cc320e6499db0d47.jsonl"))
	for i, row := range talk.Rows[1:] {
		if !strings.HasPrefix(row.Prompt.Value, talk.Rows[i].Prompt.Value) || row.After[0].ID != talk.Rows[i].ID {
			t.Errorf("turn %d does not go on from the one before", i+1)
		}
	}
	all := importtest.Load(t, imp(), filepath.Dir(importtest.Shared(t, "lmcache_agent", "taubench_24c817382a29e399b7dac064b923c268.jsonl")))
	if len(all.Rows) != 23 || all.Meta.Clock != trace.ClockTrace {
		t.Errorf("the directory: %d rows", len(all.Rows))
	}
}
