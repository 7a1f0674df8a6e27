package analysis

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"reprise/trace/results"
)

// stalled is a run of a minute at 10 requests/s whose client stood still from 42
// to 44 s, and was 5 ms late at 50 s.
func stalled() (*results.Run, []results.Result) {
	var list []results.Result
	for i := range int64(600) {
		due := float64(i) * 100
		late := 0.05
		switch {
		case due >= 42_000 && due < 44_000:
			late = 44_000 - due + 10
		case due == 50_000:
			late = 5
		}
		list = append(list, sent(i, due, due+late, due+late, due+late+50, results.OutcomeOK))
	}
	run := baseRun()
	run.Planned.Requests, run.Ended.Sent, run.Ended.Unsent = 600, 600, 0
	return run, list
}

// TestLatenessByTime: the report names when the client was late, and by how much.
func TestLatenessByTime(t *testing.T) {
	run, list := stalled()
	s := summarize(t, run, list)
	want := "p99 lateness 1410 ms is above 10 times the limit of 1.000 ms (1 ms): the client was late, and measured itself; it was late from 00:42 to 00:44: p99 2.01 s of 20 requests, and at another time"
	if s.Verdict.Result != Invalid || len(s.Verdict.Reasons) != 1 || s.Verdict.Reasons[0] != want {
		t.Errorf("%s: %q, want %q", s.Verdict.Result, s.Verdict.Reasons, want)
	}
	if len(s.Late.List) != 60 || s.Late.WidthMS != 1000 {
		t.Fatalf("%d slices of %v ms", len(s.Late.List), s.Late.WidthMS)
	}
	c := s.Late.List[42]
	if c.FromMS != 42_000 || c.N != 10 || c.P50 != 1510 || c.P99 != 2010 || c.P999 != 2010 || c.Max != 2010 {
		t.Errorf("%+v", c)
	}
	var text bytes.Buffer
	if err := WriteText(&text, s); err != nil {
		t.Fatal(err)
	}
	slices, err := json.MarshalIndent(s.Late, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "late.txt", text.Bytes())
	golden(t, "late.json", append(slices, '\n'))
}

// TestLatenessRemark: a short stall in a long run is no reason, and is said.
func TestLatenessRemark(t *testing.T) {
	run, list := stalled()
	list = append(list[:430:430], list[440:]...) // the stall is one second, and rare
	for len(list) < 6000 {
		r := list[0]
		r.ID = int64(len(list))
		list = append(list, r)
	}
	run.Planned.Requests, run.Ended.Sent = 6000, 6000
	s := summarize(t, run, list)
	if s.Verdict.Result != Valid || !strings.Contains(strings.Join(s.Verdict.Remarks, "\n"), "the client was late from 00:42 to 00:43: p99 2.01 s of 10 requests; the p99 of the run is within the limit") {
		t.Errorf("%s: %q, %q", s.Verdict.Result, s.Verdict.Reasons, s.Verdict.Remarks)
	}
}

// TestSliceWidths: at most 60 slices, whatever the length, and none that is
// empty.
func TestSliceWidths(t *testing.T) {
	for last, want := range map[time.Duration]struct {
		width time.Duration
		text  string
	}{
		0: {time.Second, "1 s"}, time.Minute - 1: {time.Second, "1 s"}, time.Minute: {2 * time.Second, "2 s"}, 30 * time.Minute: {time.Minute, "1 min"},
		24 * time.Hour: {30 * time.Minute, "30 min"}, 7 * 24 * time.Hour: {6 * time.Hour, "6 h"}, 200 * 24 * time.Hour: {96 * time.Hour, "96 h"},
	} {
		s := sliced([]lateSample{{0, 1}, {int64(last), 2}})
		if got := time.Duration(s.WidthMS * 1e6); got != want.width || widthText(got) != want.text || int64(last)/int64(got) >= mostSlices || len(s.List) > 2 {
			t.Errorf("%v: %d slices of %v (%s)", last, len(s.List), got, widthText(got))
		}
	}
	if s := sliced(nil); s != nil || s.worst() != "" || s.concentrated(0) != "" {
		t.Errorf("slices of nothing: %+v", s)
	}
	if got := clockText(3*time.Hour + 2*time.Minute + time.Second); got != "3:02:01" {
		t.Error(got)
	}
}
