package inferenceperf_test

import (
	"strings"
	"testing"
	"time"

	"reprise/formats/azure"
	"reprise/formats/importtest"
	"reprise/formats/inferenceperf"
	"reprise/trace"
)

func TestExport(t *testing.T) {
	row := func(at time.Duration, in, out int64) trace.Request {
		return trace.Request{Arrival: trace.Some(at), InputTokens: trace.Some(in), OutputTokens: trace.Some(out)}
	}
	for _, c := range []struct {
		epoch trace.Optional[int64]
		first string
	}{
		{trace.Optional[int64]{}, "1970-01-01 00:00:00.000000"},
		{trace.Some(time.Date(2024, 5, 10, 0, 0, 0, 0, time.UTC).UnixNano()), "2024-05-10 00:00:00.000000"},
	} {
		var b strings.Builder
		lost, err := inferenceperf.Exporter{}.Export(t.Context(), trace.Meta{Clock: trace.ClockTrace, EpochNS: c.epoch}, importtest.Made(row(0, 5, 6), row(1500001, 7, 0), trace.Request{}), &b)
		if err != nil {
			t.Fatal(err)
		}
		want := inferenceperf.Header + c.first + ",5,6\n" + strings.TrimSuffix(c.first, "000000") + "001500,7,0\n"
		if got := strings.Join(lost, "; "); b.String() != want || got != "digits below the microsecond of 1 rows; whole row (no arrival, or no count of tokens) of 1 rows" {
			t.Errorf("%s\nlost %s", &b, got)
		}
		r := importtest.Text(t, &azure.Importer{}, "a.csv", b.String())
		if in, out := r.Sums(); len(r.Rows) != 2 || in != 12 || out != 6 || r.Rows[1].Arrival.Value != 1500*time.Microsecond {
			t.Errorf("read back: %+v", r.Rows)
		}
	}
	if _, err := (inferenceperf.Exporter{}).Export(t.Context(), trace.Meta{Clock: trace.ClockNone}, importtest.Made(), &strings.Builder{}); err == nil || trace.Fix(err) == "" {
		t.Errorf("no clock: %v", err)
	}
}
