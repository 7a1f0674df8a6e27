package main

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"reprise/analysis"
	"reprise/replay/mock/batch"
	"reprise/trace"
	"reprise/trace/results"
)

var pairsOfRuns = flag.Int("pairs", 2, "pairs of simulated runs that are compared")

// requestsPerRun is n of each simulated run.
const requestsPerRun = 2000

// simulated is a run of the batching model in virtual time: requests at 20 a
// second, of 250 and 100 tokens on average, each step of the engine longer by a
// factor, and by chance up to a fifth longer or shorter.
func simulated(t testing.TB, arrivals, engine uint64, slower float64) *results.Opened {
	t.Helper()
	random := rand.New(rand.NewPCG(arrivals, 1))
	var list []batch.Arrival
	at := 0.0
	for range requestsPerRun {
		at += random.ExpFloat64() / 20
		list = append(list, batch.Arrival{
			At: time.Duration(at * 1e9), PromptTokens: 50 + int(200*random.ExpFloat64()), OutputTokens: 20 + int(80*random.ExpFloat64()),
		})
	}
	config := batch.Config{
		StepBase: time.Duration(float64(batch.DefaultStepBase) * slower), StepPerSequence: time.Duration(float64(batch.DefaultStepPerSequence) * slower),
		Jitter: 0.2, Seed: engine,
	}
	lines, err := batch.Simulate(config, list)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]results.Result, len(lines))
	late := rand.New(rand.NewPCG(engine, 2))
	for i := range lines {
		rows[i] = resultOf(int64(i), &list[i], &lines[i], time.Duration(late.ExpFloat64()*20e3))
	}
	slices.SortStableFunc(rows, func(a, b results.Result) int { return int(a.End.Value - b.End.Value) })
	run := results.Run{
		Label: "open loop", Pace: "schedule", Speed: 1, Protocol: "chat", Trace: &trace.Input{Name: "made", SHA256: strconv.FormatUint(arrivals, 16)},
		Planned: results.Planned{Requests: requestsPerRun}, Ended: &results.Ended{Sent: requestsPerRun},
	}
	return results.InMemory(run, rows)
}

func resultOf(id int64, a *batch.Arrival, line *batch.Timeline, late time.Duration) results.Result {
	r := results.Result{
		ID: id, Protocol: "chat", Outcome: results.OutcomeOK, Due: trace.Some(a.At), Eligible: trace.Some(a.At),
		Dispatched: trace.Some(a.At + late), Sent: trace.Some(a.At + late), End: trace.Some(line.End()),
		CountedInputTokens: trace.Some(int64(a.PromptTokens)), OutputTokens: trace.Some(int64(line.Tokens())), OutputSource: trace.Some(results.SourceUsage),
		FinishReason: trace.Some("length"), Ledger: make([]results.Entry, len(line.Chunks)),
	}
	for i, c := range line.Chunks {
		r.Ledger[i] = results.Entry{At: int64((c.At - a.At - late) / time.Microsecond), Tokens: trace.Some(int32(c.Tokens)), Event: int32(i), Kind: results.KindContent, Source: results.SourceUsage}
	}
	return r
}

func comparedRuns(t testing.TB, a, b *results.Opened) *analysis.RunComparison {
	t.Helper()
	var sides [2][]*analysis.RunData
	for i, o := range []*results.Opened{a, b} {
		d, err := analysis.LoadRun(t.Context(), o, "ab"[i:i+1], analysis.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		sides[i] = []*analysis.RunData{d}
	}
	c, err := analysis.CompareRuns(t.Context(), sides[0], sides[1], 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// alarms counts over pairs of runs.
type alarms struct {
	pairs   int
	differs int            // pairs in which any number differs
	gates   int            // pairs in which ttft_p95>+5% or tpot_p95>+1% fails
	tpot    int            // pairs in which tpot_mean differs
	numbers map[string]int // pairs in which the number's own interval excludes no change
}

func (a *alarms) add(t *testing.T, c *analysis.RunComparison) {
	conditions, err := analysis.ParseConditions("ttft_p95>+5%; tpot_p95>+1%")
	if err != nil {
		t.Fatal(err)
	}
	failed, err := c.Gate(conditions, analysis.DefaultRule)
	if err != nil {
		t.Fatal(err)
	}
	a.pairs++
	if failed > 0 {
		a.gates++
	}
	any := false
	see := func(name string, n *analysis.RunNumber) {
		if n.P != nil && *n.P <= 0.05 {
			a.numbers[name]++
		}
		if n.Verdict == analysis.Differs {
			any = true
			if name == "tpot_mean" {
				a.tpot++
			}
		}
	}
	for i := range c.Metrics {
		for k := range c.Metrics[i].Stats {
			see(c.Metrics[i].Name+"_"+c.Metrics[i].Stats[k].Name, &c.Metrics[i].Stats[k])
		}
	}
	for i := range c.Scalars {
		see(c.Scalars[i].Name, &c.Scalars[i])
	}
	if any {
		a.differs++
	}
}

// most is what a rate of 5 % stays within in about 999 of 1,000 cases: the mean
// and 3.1 deviations.
func most(pairs int) int {
	n := float64(pairs)
	return int(0.05*n + 3.1*math.Sqrt(0.05*0.95*n))
}

// TestFalseAlarms: of comparisons of equal runs at most 5 % may find a number
// that differs, or fail a gate; runs that differ by 3 % in the time of a step are
// told apart.
func TestFalseAlarms(t *testing.T) {
	for _, c := range []struct {
		name          string
		paired        bool
		slower        float64
		wantDetection bool
	}{
		{"equal runs of one trace", true, 1, false},
		{"equal runs of two traces", false, 1, false},
		{"3 % slower, one trace", true, 1.03, true},
		{"3 % slower, two traces", false, 1.03, false},
	} {
		got := alarms{numbers: map[string]int{}}
		for i := range uint64(*pairsOfRuns) {
			other := i
			if !c.paired {
				other = i + 10_000
			}
			got.add(t, comparedRuns(t, simulated(t, i, 2*i, 1), simulated(t, other, 2*i+1, c.slower)))
		}
		t.Logf("%s: of %d pairs, any number differs in %d, a gate fails in %d, tpot_mean differs in %d; own intervals: %v",
			c.name, got.pairs, got.differs, got.gates, got.tpot, got.numbers)
		if c.wantDetection {
			if got.tpot < got.pairs {
				t.Errorf("%s: told apart in %d of %d", c.name, got.tpot, got.pairs)
			}
			continue
		}
		if c.slower != 1 {
			continue // told apart as chance has it: the traces differ too
		}
		if limit := most(got.pairs); got.differs > limit || got.gates > limit {
			t.Errorf("%s: %d and %d false alarms in %d pairs, at most %d are chance", c.name, got.differs, got.gates, got.pairs, limit)
		}
	}
}
