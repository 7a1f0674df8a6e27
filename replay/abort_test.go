package replay

import (
	"errors"
	"testing"
	"testing/synctest"

	"reprise/replay/mock"
	"reprise/trace"
)

// TestAbortIf ends a run that fails too much, after 50 requests, and writes what
// was measured; one that fails less goes to its end.
func TestAbortIf(t *testing.T) {
	for name, c := range map[string]struct {
		limit float64
		abort bool
	}{"above the limit": {0.2, true}, "below the limit": {0.9, false}, "no limit": {0, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var rows []trace.Request
				for i := range 200 {
					r := at(int64(i)*1000, 100, 1)
					r.ID = int64(i)
					rows = append(rows, r)
				}
				config := exact()
				config.Faults = []mock.Fault{{Kind: mock.FaultStatus, Every: 2}}
				got, run, err := replayTo(t, t.Context(), mock.New(config), Config{AbortErrorRate: c.limit, source: traceOf(trace.ClockTrace, rows...)})
				aborted, ok := errors.AsType[*AbortError](err)
				if ok != c.abort || ok && (aborted.Ended < AbortAfter || float64(aborted.Failed) <= c.limit*float64(aborted.Ended)) {
					t.Fatalf("error %v", err)
				}
				if c.abort && (len(got) >= 200 || len(got) < AbortAfter || run.Ended.Aborted == "" || run.Ended.Interrupted) {
					t.Errorf("%d requests are recorded: %+v", len(got), *run.Ended)
				}
				if !c.abort && (err != nil || len(got) != 200) {
					t.Errorf("%d requests are recorded, error %v", len(got), err)
				}
			})
		})
	}
}
