package dynamo_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/dynamo"
	"reprise/formats/importtest"
)

func imp() formats.Importer { return &dynamo.Importer{} }

func TestGolden(t *testing.T) {
	importtest.Golden(t, imp(), "dynamo", "bare.jsonl")
	importtest.Golden(t, imp(), "dynamo", "wrapped.jsonl")
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "dynamo", "bare.jsonl", "wrapped.jsonl") }

const good = `{"schema":"dynamo.request.trace.v1","event_type":"request_end","request":{"request_id":"r","input_tokens":5,"request_received_ms":1700000000000}}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.jsonl", good, func(n int) string {
		return strings.Replace(good, "{", `{"note": "`+strings.Repeat("x", n)+`", `, 1)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, dynamo.Detect, map[string]bool{
		good: true,
		`{"timestamp":1,"event":{"schema":"dynamo.request.trace.v1"}}`: true,
		`{"schema":"v1","event_type":"request_end"}`:                   false,
		`{"timestamp":1,"event":{"schema":"other"}}`:                   false,
	})
}

// Rows are in the order of ends, in segments whose flushes are gzip members of
// their own.
func TestSegments(t *testing.T) {
	dir := t.TempDir()
	row := func(i int) string {
		return strings.Replace(strings.Replace(good, `"r"`, fmt.Sprintf(`"r%d"`, i), 1), "1700000000000", fmt.Sprint(1700000000000+int64(i)), 1)
	}
	for k, order := range [][]int{{5, 3, 4}, {2, 0, 1}} {
		var out bytes.Buffer
		for _, i := range order {
			z := gzip.NewWriter(&out)
			z.Write([]byte(row(i)))
			z.Close()
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("t.%06d.jsonl.gz", k)), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := importtest.Load(t, imp(), dir)
	for i, got := range r.Rows {
		if got.SourceID.Value != fmt.Sprintf("r%d", i) || got.Arrival.Value != time.Duration(i)*time.Millisecond {
			t.Errorf("row %d is %s", i, got.SourceID.Value)
		}
	}
	if len(r.Rows) != 6 {
		t.Errorf("%d rows", len(r.Rows))
	}
}

// A hash keeps all its bits.
func TestHashesKeep64Bits(t *testing.T) {
	r := importtest.Load(t, imp(), importtest.Testdata+"/dynamo/bare.jsonl")
	for _, row := range r.Rows {
		if row.SourceID.Value == "r2" && (row.Blocks[0] != 1<<64-1 || row.Blocks[1] != 1<<53+1) {
			t.Errorf("%v", row.Blocks)
		}
	}
}
