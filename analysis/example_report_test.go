package analysis_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

// A run directory is summarized in one pass; the verdict comes first.
func ExampleSummarize() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	record(dir)

	run, err := results.OpenRun(dir)
	if err != nil {
		log.Fatal(err)
	}
	s, err := analysis.Summarize(context.Background(), run)
	if err != nil {
		log.Fatal(err)
	}
	ttft := s.Metrics.Get("ttft")
	fmt.Println(s.Verdict.Result)
	fmt.Printf("%s: median %v %s of %d %ss\n", ttft.Name, ttft.Stat("p50").Value, ttft.Unit, ttft.N, ttft.Of)
	// Output:
	// valid
	// ttft: median 20 ms of 3 requests
}

// record stands for a replay: three requests with their first tokens after 10,
// 20 and 30 ms.
func record(dir string) {
	if err := results.WriteRun(dir, &results.Run{Label: "open loop", Planned: results.Planned{Requests: 3}, Ended: &results.Ended{Sent: 3}}); err != nil {
		log.Fatal(err)
	}
	w, err := results.NewRecorder(dir)
	if err != nil {
		log.Fatal(err)
	}
	for i := range int64(3) {
		due := trace.Some(time.Duration(i) * time.Second)
		w.Add(&results.Result{
			ID: i, Outcome: results.OutcomeOK, Due: due, Eligible: due, Dispatched: due, Sent: due,
			End:    trace.Some(due.Value + 100*time.Millisecond),
			Ledger: []results.Entry{{At: 10_000 * (i + 1), Tokens: trace.Some(int32(1)), Kind: results.KindContent, Source: results.SourceUsage}},
		})
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
}
