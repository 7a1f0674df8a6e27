package jsonl_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/jsonl"
	"reprise/formats/source"
	"reprise/trace"
)

func imp() formats.Importer { return &jsonl.Importer{} }

// Every sample of every format comes back row for row, with what the trace says of
// itself.
func TestRoundTrip(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(importtest.Testdata, "*", "*"))
	tried := 0
	for _, path := range paths {
		switch filepath.Ext(path) {
		case ".jsonl", ".json", ".csv", ".parquet", ".arrow", ".log":
		default:
			continue
		}
		s := source.New(path, nil)
		f, _, err := formats.Detect(s)
		s.Close()
		if err != nil {
			continue
		}
		foreign, err := f.NewImporter(formats.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := importtest.Try(foreign, path)
		if err != nil || len(want.Rows) == 0 {
			continue
		}
		tried++
		text, lost := want.Exported(t, jsonl.Exporter{})
		if len(lost) > 0 {
			t.Errorf("%s: lost %v", path, lost)
		}
		got := importtest.Text(t, imp(), "a.jsonl", text)
		if !reflect.DeepEqual(got.Rows, want.Rows) {
			t.Errorf("%s: the rows differ", path)
			for i := range min(len(got.Rows), len(want.Rows)) {
				if !reflect.DeepEqual(got.Rows[i], want.Rows[i]) {
					t.Errorf("first in row %d:\n got %+v\nwant %+v", i, got.Rows[i], want.Rows[i])
					break
				}
			}
		}
		got.Meta.Counts, want.Meta.Counts = trace.Counts{}, trace.Counts{}
		if n := len(want.Meta.History); !reflect.DeepEqual(got.Meta.History[:n], want.Meta.History) || len(got.Meta.History) != n+1 {
			t.Errorf("%s: history %+v, want %+v and a step", path, got.Meta.History, want.Meta.History)
		}
		got.Meta.History, want.Meta.History = nil, nil
		if !reflect.DeepEqual(got.Meta, want.Meta) {
			t.Errorf("%s:\n got %+v\nwant %+v", path, got.Meta, want.Meta)
		}
		again, _ := got.Exported(t, jsonl.Exporter{})
		_, a, _ := strings.Cut(again, "\n")
		_, b, _ := strings.Cut(text, "\n")
		if a != b {
			t.Errorf("%s: exported again, the rows differ", path)
		}
	}
	if tried < 20 {
		t.Errorf("only %d samples", tried)
	}
}

const head = `{"reprise":{"schema":1,"clock":"session"}}` + "\n"

// Rows that were cut out of a trace get times from 0 again.
func TestCutRows(t *testing.T) {
	r := importtest.Text(t, imp(), "a.jsonl", `{"id":7,"operation":"chat","arrival_ns":2000,"source_row":1}
{"id":3,"operation":"chat","arrival_ns":1500,"after":[{"id":7,"kind":"turn"}]}
`)
	if len(r.Rows) != 2 || r.Rows[0].ID != 3 || r.Rows[0].Arrival.Value != 0 || r.Rows[1].Arrival.Value != 500 || len(r.Meta.Guesses) != 1 || r.Meta.OriginNS.Value != 1500 {
		t.Errorf("%+v %+v", r.Rows, r.Meta)
	}
	r = importtest.Text(t, imp(), "a.jsonl", head+`{"id":1,"operation":"chat","session_id":"a","arrival_ns":10}
{"id":2,"operation":"chat","session_id":"b","arrival_ns":5}
{"id":0,"operation":"chat","session_id":"a","arrival_ns":7}
`)
	var got []time.Duration
	for _, row := range r.Rows {
		got = append(got, time.Duration(row.ID), row.Arrival.Value)
	}
	if want := []time.Duration{0, 0, 1, 3, 2, 0}; !reflect.DeepEqual(got, want) || r.Meta.Clock != trace.ClockSession {
		t.Errorf("%v, want %v", got, want)
	}
}

// Rows that are no canonical rows are rejected one by one.
func TestRejects(t *testing.T) {
	r := importtest.Text(t, imp(), "a.jsonl", `{"id":1,"operation":"chat","arrival_ns":0}
{"id":1,"operation":"chat"}
{"id":2,"operation":"chat","input_tokens":-1}
{"id":3,"operation":"chat","colour":"red"}
{"id":4}
{"id":5,"operation":"chat","after":[{"id":5,"kind":"turn"}]}
{"id":6,"operation":"chat","block_ids":[1]}
{"id":7,"operation":"chat","status":"fine"}
{"reprise":{"schema":1,"clock":"trace"}}
{"id":8,"operation":"chat","inp
`)
	var got []string
	for _, e := range r.Rejected {
		got = append(got, strings.TrimPrefix(e.Error(), e.File+":"))
	}
	want := []string{
		"2: id: 1 occurs twice", "3: input_tokens: -1 is below 0", `4: json: unknown field "colour"`, "5: no id or no operation, which every canonical row has",
		`6: after: id 5, kind "turn": no edge to another row`, "7: block_tokens: unknown, though the row has 1 block ids",
	}
	if len(r.Rows) != 1 || len(got) != 9 || !reflect.DeepEqual(got[:6], want) {
		t.Errorf("%d rows, rejected\n%s", len(r.Rows), strings.Join(got, "\n"))
	}
}

func TestHeaderErrors(t *testing.T) {
	dir := t.TempDir()
	row := `{"id":1,"operation":"chat"}` + "\n"
	for text, want := range map[string]string{
		`{"reprise":{"schema":9,"clock":"trace"}}` + "\n" + row:            "first line: reprise: schema version 9, this program reads 1 to 1",
		`{"reprise":{"schema":1,"clock":"wall"}}` + "\n" + row:             `first line: reprise: clock "wall" is none of trace, session, none`,
		`{"reprise":{"schema":1,"clock":"trace","colour":1}}` + "\n" + row: `first line: reprise: json: unknown field "colour"`,
		`{"id":1,"operation":"chat","after":[{"id":2,"kind":"turn"}]}`:     "line 1: after names id 2, which no row has",
	} {
		_, err := importtest.Try(imp(), importtest.Write(t, dir, "a.jsonl", text))
		if err == nil || !strings.HasSuffix(err.Error(), want) || trace.Fix(err) == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
	a, b := importtest.Write(t, dir, "a.jsonl", head+row), importtest.Write(t, dir, "b.jsonl", strings.Replace(head, "session", "none", 1)+`{"id":2,"operation":"chat"}`)
	if _, err := importtest.Try(imp(), a, b); err == nil || !strings.Contains(err.Error(), "another clock than that of the first file") {
		t.Errorf("%v", err)
	}
}

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.jsonl", `{"id":0,"operation":"chat","arrival_ns":0}`+"\n", func(n int) string {
		return `{"id":0,"operation":"chat","arrival_ns":0,"prompt":"` + strings.Repeat("x", n) + `"}`
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, jsonl.Detect, map[string]bool{
		head: true,
		`{"id":0,"operation":"chat","arrival_ns":0}`: true,
		`{"id":"a","operation":"chat"}`:              false,
		`{"reprise":"x"}`:                            false,
		`{"id":0,"operation":"chat"}`:                false,
	})
}

func FuzzImport(f *testing.F) {
	importtest.Fuzz(f, imp, "jsonl", "sample.jsonl")
}
