package results_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

func sample(id int64) results.Result {
	at := func(ms int64) trace.Optional[time.Duration] {
		return trace.Some(time.Duration(ms) * time.Millisecond)
	}
	r := results.Result{
		ID: id, URL: "http://x", Protocol: "chat", Model: trace.Some("m"), Session: trace.Some("s"), Turn: trace.Some(int32(1)),
		Due: at(id), Eligible: at(id), Dispatched: at(id + 1), Sent: at(id + 2), End: at(id + 9),
		Outcome: results.OutcomeOK, HTTPStatus: trace.Some(int32(200)), OutputTokens: trace.Some(int64(3)), OutputSource: trace.Some(results.SourceUsage),
		Ledger: []results.Entry{
			{At: 5, Tokens: trace.Some(int32(0)), Kind: results.KindNone, Source: results.SourceUsage},
			{At: 10, Kind: results.KindContent, Source: results.SourceUnknown, Event: 1, SharedRead: true},
			{At: 20, Tokens: trace.Some(int32(2)), Kind: results.KindTool, Choice: 1, Source: results.SourceUsage, Event: 2},
		},
		LedgerDifference: trace.Some(int64(-1)),
	}
	switch id % 3 {
	case 1:
		r.Ledger = nil
	case 2:
		r.Ledger = []results.Entry{}
	}
	return r
}

func collect(t *testing.T, dir string) ([]results.Result, *results.Opened) {
	t.Helper()
	o, err := results.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []results.Result
	for r, err := range o.Results() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	return got, o
}

func TestRecorderPartsAndClose(t *testing.T) {
	dir := t.TempDir()
	if err := results.WriteRun(dir, &results.Run{Label: "open loop"}); err != nil {
		t.Fatal(err)
	}
	w, err := results.NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []results.Result
	for id := range int64(10) {
		r := sample(id)
		want = append(want, r)
		w.Add(&r)
		if id%4 == 3 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// As a killed run leaves it: two parts, and a third cut short under a temporary name.
	os.WriteFile(filepath.Join(dir, "parts", ".00000002.parquet.123"), []byte("PAR1 half"), 0o644)
	got, o := collect(t, dir)
	if !o.Recovered || !reflect.DeepEqual(got, want[:8]) {
		t.Errorf("recovered %v, %d results, want the 8 that were flushed", o.Recovered, len(got))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, o = collect(t, dir)
	if o.Recovered || !reflect.DeepEqual(got, want) {
		t.Errorf("after Close: recovered %v\n got %+v\nwant %+v", o.Recovered, got, want)
	}
}

func TestOpenRunRefusesOtherDirectories(t *testing.T) {
	if _, err := results.OpenRun(t.TempDir()); err == nil || trace.Fix(err) == "" {
		t.Errorf("an empty directory: %v", err)
	}
}
