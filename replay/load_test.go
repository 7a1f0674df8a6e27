package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/analysis/stats"
	"reprise/replay/mock"
	"reprise/trace"
	"reprise/trace/results"
)

// talks are n sessions of some turns each, whose rows are 1 s apart and come
// after one another by a wait of wait.
func talks(n, turns int, wait time.Duration) []trace.Request {
	var rows []trace.Request
	for s := range n {
		for i := range turns {
			r := at(int64(1000*i), int64(20+10*i), 3)
			r.Session, r.Turn = trace.Some(fmt.Sprint("s", s)), trace.Some(int32(i))
			if i > 0 {
				r.After, r.Delay = []trace.Dependency{{ID: int64(len(rows) - 1), Kind: trace.AfterTurn}}, trace.Some(wait)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// load replays without a probe in a bubble.
func load(t *testing.T, m mock.Config, c Config) (got []results.Result, run *results.Run, server *mock.Server) {
	t.Helper()
	c.NoProbe = true
	server = mock.New(m)
	got, run, err := played(t, t.Context(), server, c)
	if err != nil {
		t.Fatal(err)
	}
	return got, run, server
}

// crowds returns the most requests that the server had at once, and the time
// integral of how many.
func crowds(server *mock.Server) (most int, area time.Duration, end time.Duration) {
	type step struct {
		at time.Duration
		by int
	}
	var steps []step
	list, _ := server.Account()
	for _, r := range list {
		steps = append(steps, step{r.Arrival, 1}, step{r.End, -1})
		area += r.End - r.Arrival
		end = max(end, r.End)
	}
	slices.SortFunc(steps, func(a, b step) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.by - b.by // an end at that instant comes first
	})
	n := 0
	for _, s := range steps {
		n += s.by
		most = max(most, n)
	}
	return most, area, end
}

// TestConcurrency holds a closed loop against the server's account: never one more
// than asked for, and refilled at once, whatever the answers take.
func TestConcurrency(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var rows []trace.Request
	for range 400 {
		rows = append(rows, at(0, int64(5+rng.IntN(200)), int64(1+rng.IntN(60))))
	}
	for _, n := range []int{1, 7, 32} {
		synctest.Test(t, func(t *testing.T) {
			got, run, server := load(t, exact(), Config{source: traceOf(trace.ClockNone, rows...), Selection: Selection{Load: Load{Kind: LoadConcurrency, N: n}}})
			most, _, _ := crowds(server)
			if len(got) != len(rows) || most != n || !strings.HasPrefix(run.Label, "closed loop") {
				t.Fatalf("%d requests, at most %d at once, want %d (%s)", len(got), most, n, run.Label)
			}
			// until the last was sent
			last := time.Duration(0)
			for _, r := range got {
				last = max(last, r.Sent.Value)
			}
			var busy time.Duration
			ends := map[time.Duration]bool{0: true}
			for _, r := range got {
				busy += min(last, r.End.Value) - min(last, r.Sent.Value)
				ends[r.End.Value] = true
			}
			if mean := busy.Seconds() / last.Seconds(); mean < 0.99*float64(n) {
				t.Errorf("%.3f in flight on average, want %d", mean, n)
			}
			for _, r := range got {
				if late, _ := results.Lateness(&r); late != 0 || r.Due.Known || !ends[r.Eligible.Value] {
					t.Errorf("id %d: eligible at %v, %v late, due %v: want the end of another, in time, and no due time", r.ID, r.Eligible.Value, late, r.Due)
				}
			}
		})
	}
}

// In a closed loop too, a turn comes after its answer, and others go on meanwhile.
func TestConcurrencyOverSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, _, server := load(t, exact(), Config{source: traceOf(trace.ClockTrace, talks(6, 3, 50*time.Millisecond)...), Selection: Selection{Load: Load{Kind: LoadConcurrency, N: 3}}})
		if most, _, _ := crowds(server); most != 3 || len(got) != 18 {
			t.Errorf("%d requests, at most %d at once", len(got), most)
		}
		end := map[int64]time.Duration{}
		for _, r := range got {
			end[r.ID] = r.End.Value
		}
		for _, r := range got {
			if r.Turn.Value > 0 && r.Sent.Value < end[r.ID-1]+50*time.Millisecond {
				t.Errorf("id %d sent at %v, the turn before ended at %v", r.ID, r.Sent.Value, end[r.ID-1])
			}
		}
	})
}

func TestConcurrencyRamp(t *testing.T) {
	rows := slices.Repeat([]trace.Request{at(0, 100, 10)}, 200)
	synctest.Test(t, func(t *testing.T) {
		got, _, _ := load(t, exact(), Config{source: traceOf(trace.ClockNone, rows...), Selection: Selection{Load: Load{Kind: LoadConcurrency, N: 4, Ramp: 4 * time.Second}}})
		for _, at := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond, 3500 * time.Millisecond} {
			n := 0
			for _, r := range got {
				if r.Sent.Value <= at && at < r.End.Value {
					n++
				}
			}
			if want := int(at/time.Second) + 1; n != want {
				t.Errorf("%d in flight at %v, want %d", n, at, want)
			}
		}
	})
}

// A duration ends a closed loop, a number of requests too; the trace begins again
// until then, with text of its own in each pass.
func TestLoadEnds(t *testing.T) {
	block := at(0, 64, 2)
	block.Blocks, block.BlockTokens = []uint64{1, 2}, trace.Some(int32(32))
	rows := []trace.Request{block, block, block}
	for name, c := range map[string]struct {
		s        Selection
		warm     WarmUp
		requests int // 0 = more than the trace has
		warmed   int
	}{
		"requests":            {Selection{Load: Load{Kind: LoadConcurrency, N: 2}, Limit: 8, Recycle: true}, WarmUp{}, 8, 0},
		"duration":            {Selection{Load: Load{Kind: LoadConcurrency, N: 2}, Duration: 3 * time.Second, Recycle: true}, WarmUp{}, 0, 0},
		"duration, one pass":  {Selection{Load: Load{Kind: LoadConcurrency, N: 1}, Duration: 100 * time.Millisecond}, WarmUp{}, 2, 0},
		"law, duration":       {Selection{Arrivals: Arrivals{Kind: "constant", Rate: 10}, Duration: time.Second, Recycle: true}, WarmUp{}, 10, 0},
		"law, warm-up":        {Selection{Arrivals: Arrivals{Kind: "constant", Rate: 10}, Duration: time.Second, Recycle: true}, WarmUp{For: 300 * time.Millisecond}, 10, 3},
		"requests of warm-up": {Selection{Load: Load{Kind: LoadConcurrency, N: 2}, Limit: 8, Recycle: true}, WarmUp{Requests: 3}, 8, 3},
		"sessions":            {Selection{Load: Load{Kind: LoadConcurrency, N: 2}, Sessions: 5, Recycle: true}, WarmUp{}, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := exact()
				m.Engine.CacheTokens = 1 << 20
				m.Engine.BlockTokens = 16
				got, run, server := load(t, m, Config{source: traceOf(trace.ClockNone, rows...), Selection: c.s, WarmUp: c.warm})
				if c.requests > 0 && len(got) != c.requests || c.requests == 0 && len(got) <= 2*len(rows) || run.Planned.Requests != int64(len(got)) || run.Ended.Unsent != 0 {
					t.Fatalf("%d requests, planned %d, unsent %d; want %d", len(got), run.Planned.Requests, run.Ended.Unsent, c.requests)
				}
				warm, seen := 0, map[ref]bool{}
				for _, r := range got {
					if r.Phase.Value == results.PhaseWarmUp {
						warm++
					}
					if seen[ref{r.ID, r.Pass}] {
						t.Errorf("id %d twice in pass %d", r.ID, r.Pass)
					}
					seen[ref{r.ID, r.Pass}] = true
					if c.s.Duration > 0 && r.Sent.Value >= c.s.Duration {
						t.Errorf("id %d sent at %v", r.ID, r.Sent.Value)
					}
				}
				if warm != c.warmed {
					t.Errorf("%d in the warm-up, want %d", warm, c.warmed)
				}
				// what a pass shares, it shares within itself: its first request finds nothing
				list, _ := server.Account()
				least := map[int64]int{}
				for _, r := range list {
					var id, pass int64
					fmt.Sscanf(r.RequestID, "reprise-%d-%d", &id, &pass)
					if n, ok := least[pass]; !ok || r.CachedTokens < n {
						least[pass] = r.CachedTokens
					}
				}
				for pass, n := range least {
					if n > 16 {
						t.Errorf("pass %d: each request found %d tokens in the cache and more", pass, n)
					}
				}
			})
		})
	}
}

// Users take their turns at a rate that is constant from the first second on, each
// N/rate after the one before. A late answer holds its own next turn alone.
func TestUsers(t *testing.T) {
	const users, turns = 4, 4
	for name, step := range map[string]time.Duration{"in time": 10 * time.Millisecond, "late": 400 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := exact()
				m.Engine.StepBase = step
				got, run, _ := load(t, m, Config{source: traceOf(trace.ClockTrace, talks(20, turns, time.Hour)...), Selection: Selection{Load: Load{Kind: LoadUsers, N: users, Rate: 8}, Limit: 40, Recycle: true}})
				if len(got) != 40 {
					t.Fatalf("%d requests", len(got))
				}
				slices.SortFunc(got, func(a, b results.Result) int { return int(a.Due.Value - b.Due.Value) })
				late, end := 0, map[string]time.Duration{}
				for i, r := range got {
					if want := time.Duration(i) * time.Second / 8; r.Due.Value != want {
						t.Errorf("turn %d is due at %v, want %v: user %d, every %v", i, r.Due.Value, want, i%users, time.Second*users/8)
					}
					if before, ok := end[r.Session.Value]; ok && before > r.Due.Value {
						if late++; r.HoldCause.Value != lateAnswer || r.Sent.Value < before || r.Sent.Value > before+exactStep {
							t.Errorf("turn %d sent at %v (%s), the answer before ended at %v", i, r.Sent.Value, r.HoldCause.Value, before)
						}
					} else if r.Sent.Value != r.Due.Value {
						t.Errorf("turn %d sent at %v, due at %v", i, r.Sent.Value, r.Due.Value)
					}
					end[r.Session.Value] = r.End.Value
					if i < users && int(r.Turn.Value) != i*turns/users {
						t.Errorf("user %d begins with turn %d", i, r.Turn.Value)
					}
				}
				if run.Ended.Holds.Held != int64(late) || (late > 0) != (name == "late") {
					t.Errorf("%d late answers counted, %d seen", run.Ended.Holds.Held, late)
				}
			})
		})
	}
}

// Sessions in flight: as many as asked for, and the next begins when one ends, in an
// order that the seed makes.
func TestSessionsInFlight(t *testing.T) {
	source := traceOf(trace.ClockSession, talks(12, 3, 300*time.Millisecond)...)
	synctest.Test(t, func(t *testing.T) {
		got, run, _ := load(t, exact(), Config{source: source, Selection: Selection{Load: Load{Kind: LoadTrees, N: 3}, Sessions: 15, Recycle: true}})
		type span struct{ from, to time.Duration }
		spans := map[session]span{}
		for _, r := range got {
			key := session{r.Session.Value, r.Pass}
			s, seen := spans[key]
			if !seen || r.Sent.Value < s.from {
				s.from = r.Sent.Value
			}
			s.to = max(s.to, r.End.Value)
			spans[key] = s
		}
		if len(got) != 45 || len(spans) != 15 {
			t.Fatalf("%d requests of %d sessions (%s)", len(got), len(spans), run.Label)
		}
		ends := map[time.Duration]bool{0: true}
		for _, s := range spans {
			ends[s.to] = true
		}
		for key, s := range spans {
			n := 0
			for _, o := range spans {
				if o.from <= s.from && s.from < o.to {
					n++
				}
			}
			if n > 3 || !ends[s.from] {
				t.Errorf("session %v begins at %v with %d in flight; want the end of another", key, s.from, n)
			}
		}
	})
	orders := map[string]bool{}
	for _, seed := range []uint64{1, 1, 2} {
		c := Config{source: source, Selection: Selection{Load: Load{Kind: LoadTrees, N: 3}, Seed: seed, Sessions: 15, Recycle: true}}
		var order []string
		if err := c.each(t.Context(), func(b *trace.Batch, row int, s start) error {
			if b.Turn.Values[row] == 0 {
				order = append(order, fmt.Sprint(b.SessionID.Values[row], s.pass))
			}
			return nil
		}); err != nil || len(order) != 15 {
			t.Fatalf("%v, %v", order, err)
		}
		orders[strings.Join(order, " ")] = true
	}
	if len(orders) != 2 {
		t.Errorf("%d orders of two seeds", len(orders))
	}
}

// The first sessions begin inside their recorded life: what they have said until then
// is sent first, for the server's cache, and is in the warm-up; what follows goes on
// from there.
func TestStartInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, _, _ := load(t, exact(), Config{source: traceOf(trace.ClockSession, talks(6, 5, 200*time.Millisecond)...), Selection: Selection{Load: Load{Kind: LoadTrees, N: 2, Inside: [2]float64{0.4, 0.6}}}})
		var warmEnd time.Duration
		warm, rest := map[string]results.Result{}, map[string][]results.Result{}
		for _, r := range got {
			if r.Phase.Known {
				warm[r.Session.Value] = r
				warmEnd = max(warmEnd, r.End.Value)
			} else {
				rest[r.Session.Value] = append(rest[r.Session.Value], r)
			}
		}
		if len(warm) != 2 || len(rest) != 6 {
			t.Fatalf("%d sessions warmed, %d played", len(warm), len(rest))
		}
		for name, list := range rest {
			first := slices.MinFunc(list, func(a, b results.Result) int { return int(a.Turn.Value - b.Turn.Value) })
			w, inside := warm[name]
			switch {
			case !inside && (first.Turn.Value != 0 || len(list) != 5):
				t.Errorf("session %s begins with turn %d", name, first.Turn.Value)
			case inside && (w.Turn.Value != first.Turn.Value-1 || first.Turn.Value < 2 || w.PlannedOutputTokens.Value != 1):
				t.Errorf("session %s: turn %d for the cache, then turn %d", name, w.Turn.Value, first.Turn.Value)
			case inside && first.Sent.Value < warmEnd:
				t.Errorf("session %s goes on at %v, the warm-up ended at %v", name, first.Sent.Value, warmEnd)
			}
		}
	})
}

// An error holds up, cuts short or ends what comes after it, as asked for.
func TestOnError(t *testing.T) {
	// 0 starts 1 (which fails) and 2; 3 joins both, 4 comes after 1 alone, 5 after 4.
	rows := []trace.Request{turn(0, 10, 0), turn(0, 10, 0, 0), turn(0, 10, 0, 0), turn(0, 10, 0, 1, 2), turn(0, 10, 0, 1), turn(0, 10, 0, 4)}
	for policy, unsent := range map[string][]int64{ErrorWait: nil, ErrorSkip: {4, 5}, ErrorFail: {3, 4, 5}} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rows[1].Extra = trace.Some(`{"mock_fault":"status,code=500"}`)
				got, run, _ := load(t, exact(), Config{source: traceOf(trace.ClockSession, rows...), OnError: policy, Selection: Selection{Load: Load{Kind: LoadTrees, N: 1}}})
				var left []int64
				for _, r := range got {
					if r.Outcome == results.OutcomeUnsent {
						left = append(left, r.ID)
						if !strings.Contains(r.Cause.Value, "--on-error "+policy) {
							t.Errorf("id %d: %s", r.ID, r.Cause.Value)
						}
					}
				}
				slices.Sort(left)
				if !slices.Equal(left, unsent) || run.Ended.Holds.LeftOut != int64(len(unsent)) || len(got) != len(rows) {
					t.Errorf("left out %v (%d counted), want %v", left, run.Ended.Holds.LeftOut, unsent)
				}
			})
		})
	}
}

// TestArrivalLaws draws each open shape at several rates over many seeds: gaps in
// operational time are those of the law (Kolmogorov-Smirnov), and counts disperse as
// its renewal process does.
func TestArrivalLaws(t *testing.T) {
	const seeds, n = 40, 2000
	for _, rate := range []float64{10, 100, 2000} {
		for _, c := range []struct {
			text string
			ramp string
			cv   float64
		}{
			{fmt.Sprintf("poisson:%g", rate), "", 1}, {fmt.Sprintf("gamma:%g,cv=0.5", rate), "", 0.5}, {fmt.Sprintf("gamma:%g,cv=1", rate), "", 1}, {fmt.Sprintf("gamma:%g,cv=3", rate), "", 3},
			{fmt.Sprintf("poisson:%g", rate), fmt.Sprintf("0..%g over 20s", rate), 1}, {fmt.Sprintf("gamma:%g,cv=2", rate), fmt.Sprintf("%g..%g over 10s", 2*rate, rate), 2},
		} {
			a, err := ParseArrivals(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if c.ramp != "" {
				p, err := ParseRamp(c.ramp)
				if err != nil {
					t.Fatal(err)
				}
				if a, err = a.Ramp(p); err != nil {
					t.Fatal(err)
				}
			}
			law := stats.Gamma{Shape: 1 / (c.cv * c.cv), Scale: c.cv * c.cv}
			rejected, dispersion := 0, 0.0
			for seed := range uint64(seeds) {
				next := a.starts(rand.NewPCG(seed, streamArrivals))
				var gaps []float64
				counts, last := map[int]float64{}, 0.0
				for range n {
					at, ok := next()
					u := meanUntil(a, at.Seconds())
					if !ok || u < last {
						t.Fatalf("%s %s: start at %v", c.text, c.ramp, at)
					}
					// below some ticks of the clock a gap is rounded: what is above is held
					// against the law above
					if tick := law.CDF(20e-9 * rate); u-last > 20e-9*rate {
						gaps = append(gaps, (law.CDF(u-last)-tick)/(1-tick))
					}
					counts[int(u/100)]++
					last = u
				}
				sample, err := stats.NewSample(gaps)
				if err != nil {
					t.Fatal(err)
				}
				d := stats.KSAgainst(sample, stats.Uniform{Low: 0, High: 1})
				if stats.KSTail(d, int64(len(gaps))) < 0.01 {
					rejected++
				}
				var sum, squares, windows float64
				for w := range int(last / 100) {
					sum, squares, windows = sum+counts[w], squares+counts[w]*counts[w], windows+1
				}
				dispersion += (squares/windows - sum*sum/windows/windows) / (sum / windows) / seeds
			}
			if rejected > 4 { // 0.4 are expected; 5 of 40 has a chance below 1e-4
				t.Errorf("%s %s: %d of %d seeds rejected at 1 %%", c.text, c.ramp, rejected, seeds)
			}
			if want := c.cv * c.cv; math.Abs(dispersion/want-1) > 0.25 { // windows of 100 starts, where that of a renewal process is near its limit
				t.Errorf("%s %s: index of dispersion %.3f, want near %.3f", c.text, c.ramp, dispersion, want)
			}
		}
	}
}

// meanUntil is how many starts there are on average until t, s.
func meanUntil(a Arrivals, t float64) float64 {
	u, end := 0.0, 0.0
	for _, p := range a.Pieces {
		end = p.ToS
		if t < p.ToS {
			x := t - p.FromS
			return u + p.From*x + (p.To-p.From)/(p.ToS-p.FromS)*x*x/2
		}
		u += p.Mass()
	}
	return u + (t-end)*a.Rate
}

// What the server receives of an open shape is due plus the lateness that is reported.
func TestOpenShapesArrive(t *testing.T) {
	rows := slices.Repeat([]trace.Request{at(0, 20, 2)}, 300)
	ramp, err := ParseRamp("0..100 over 4s")
	if err != nil {
		t.Fatal(err)
	}
	ramped, err := Arrivals{}.Ramp(ramp)
	if err != nil {
		t.Fatal(err)
	}
	for _, law := range []Arrivals{
		{Kind: "constant", Rate: 40}, {Kind: "poisson", Rate: 40, CV: 1}, {Kind: "gamma", Rate: 40, CV: 3}, {Kind: "at-once"}, ramped,
		{Kind: "piecewise", CV: 1, Pieces: []stats.RatePiece{{FromS: 0, ToS: 5, From: 20, To: 20}, {FromS: 5, ToS: 10, From: 60, To: 60}}},
	} {
		t.Run(law.Kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, run, server := load(t, exact(), Config{source: traceOf(trace.ClockNone, rows...), Selection: Selection{Arrivals: law}})
				byID := map[int64]results.Result{}
				for _, r := range got {
					byID[r.ID] = r
				}
				list, _ := server.Account()
				if len(list) != len(got) || len(got) < 200 || !strings.HasPrefix(run.Label, "open loop") {
					t.Fatalf("%d requests, the server has %d (%s)", len(got), len(list), run.Label)
				}
				var offset time.Duration
				for i, m := range list {
					var id int64
					fmt.Sscanf(m.RequestID, "reprise-%d", &id)
					r := byID[id]
					late, _ := results.Lateness(&r)
					if off := m.Arrival - (r.Due.Value + late); i == 0 {
						offset = off // between the two clocks
					} else if off != offset {
						t.Errorf("id %d arrived at %v, due at %v and %v late: %v off", id, m.Arrival, r.Due.Value, late, off-offset)
					}
				}
			})
		})
	}
}
