package analysis

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

// The interval is that of Student: for 1, 2, 3 the mean is 2, the deviation 1, and the
// 95 % interval 2 ± 4.303/√3.
func TestSpread(t *testing.T) {
	r := SpreadRow{Values: []float64{1, 2, 3}}
	r.close(0.95)
	if half := 4.302653 / math.Sqrt(3); r.Mean != 2 || *r.SD != 1 || math.Abs(*r.High-2-half) > 1e-5 || math.Abs(*r.Low-2+half) > 1e-5 {
		t.Errorf("%v, sd %v, %v to %v", r.Mean, *r.SD, *r.Low, *r.High)
	}
	one := SpreadRow{Values: []float64{5}}
	one.close(0.95)
	if one.Mean != 5 || one.SD != nil || one.Low != nil {
		t.Errorf("%+v", one)
	}
}

func TestSpreadOfRuns(t *testing.T) {
	var runs []*Summary
	for _, ttft := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond} {
		runs = append(runs, steadySummary(t, ramped(60, time.Millisecond, func(int) time.Duration { return ttft })))
	}
	s := SpreadOf(runs)
	var text bytes.Buffer
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range s.Numbers {
		if r.Name == "ttft_p95" {
			found = r.Mean == 15 && len(r.Values) == 2 && r.Values[1] == 20
		}
		if strings.HasPrefix(r.Name, "response_time") {
			t.Errorf("%s, though nothing had a due time", r.Name)
		}
	}
	if !found || !strings.Contains(strings.Join(strings.Fields(text.String()), " "), "ttft_p95 ms 2 15 7.071") {
		t.Errorf("%s", text.String())
	}
}
