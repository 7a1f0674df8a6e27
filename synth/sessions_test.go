package synth

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/analysis/prefix"
	"reprise/trace"
)

// hits is what a cache without limit serves, by tokens of the prompts.
func hits(m *made) float64 {
	var cache prefix.Infinite
	var hit, tokens int64
	for _, r := range m.rows {
		hit += cache.Observe(r.Model.Or(""), r.Blocks, r.BlockTokens.Or(0), r.InputTokens.Or(-1)).HitTokens
		tokens += r.InputTokens.Value
	}
	return float64(hit) / float64(tokens)
}

// lru is what a block cache of the given capacity serves, by blocks.
func lru(t testing.TB, m *made, capacity int) float64 {
	t.Helper()
	cache := prefix.PrefixLRU{Capacity: capacity}
	var hit, blocks int64
	for _, r := range m.rows {
		h := cache.Observe(r.Model.Or(""), r.Blocks, r.BlockTokens.Or(0), r.InputTokens.Or(-1))
		hit, blocks = hit+h.HitBlocks, blocks+h.Blocks
	}
	return float64(hit) / float64(blocks)
}

// TestReuseOfCopies has the hit rate of the source with renamed ids, and with a
// cache as many times as large.
func TestReuseOfCopies(t *testing.T) {
	m := spread(t, imported(t, "mooncake", "conversation_trace.jsonl"), Spreading{Tick: 3 * time.Second})
	out, d := scale(t, m, Scaling{Factor: 3, Seed: 1})
	if d.Unit != "inferred session" || d.SharedRoots == 0 {
		t.Errorf("design %+v", d)
	}
	near(t, "conversation x3", "hit rate without limit", 0, hits(out), hits(m), 0.01)
	near(t, "conversation x3", "LRU at three times the blocks", 0, lru(t, out, 60000), lru(t, m, 20000), 0.01)
}

// TestTargetHitRate reaches what can be reached, and says where it cannot.
func TestTargetHitRate(t *testing.T) {
	whole := imported(t, "mooncake", "conversation_trace.jsonl")
	m, _ := scale(t, whole, Scaling{To: 5 * time.Minute})
	for _, target := range []float64{0.1, 0.5} {
		out, d := scale(t, m, Scaling{Factor: 2, HitRate: trace.Some(target)})
		if math.Abs(d.HitRate.Reached-target) > 0.003 || math.Abs(hits(out)-target) > 0.01 {
			t.Errorf("target %v: %+v, measured %v", target, *d.HitRate, hits(out))
		}
	}
	_, d := scale(t, m, Scaling{HitRate: trace.Some(0.9)})
	if d.HitRate.Reached > 0.4 || d.HitRate.Most != d.HitRate.Reached || d.HitRate.Least != 0 {
		t.Errorf("one copy has nothing to share, but %+v", *d.HitRate)
	}
}

// chats is a trace of sessions of three turns, one a second, with dependencies.
func chats(t testing.TB, n int, client bool) *made {
	var rows []trace.Request
	for s := range n {
		for turn := range 3 {
			id := int64(3*s + turn)
			r := trace.Request{ID: id, Operation: trace.OpChat, Arrival: trace.Some(time.Duration(s)*time.Second + time.Duration(turn)*700*time.Millisecond), Session: trace.Some(fmt.Sprint("s", s)), Turn: trace.Some(int32(turn)),
				InputTokens: trace.Some(int64(100 * (turn + 1))), OutputTokens: trace.Some(int64(10)), Blocks: []uint64{1}, BlockTokens: trace.Some(int32(100)), BlockTail: trace.Some(trace.TailPartial), Model: trace.Some("a")}
			for b := range turn {
				r.Blocks = append(r.Blocks, uint64(10*s+b+10))
			}
			if s%4 == 0 {
				r.Model = trace.Some("b")
			}
			if client {
				r.ClientID = trace.Some(fmt.Sprint("c", s%5))
			}
			if turn > 0 {
				r.After, r.Delay = []trace.Dependency{{ID: id - 1, Kind: trace.AfterTurn}}, trace.Some(200*time.Millisecond)
			}
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.Arrival.Value - b.Arrival.Value) })
	return write(t, trace.Meta{Clock: trace.ClockTrace, TickNS: trace.Some(int64(100 * time.Millisecond))}, rows)
}

// TestCopiesOfSessions holds copies against their source, row by row: the same
// but for names, with think times untouched, ids and dependencies of their own,
// shared roots kept, and on the grid of the tick.
func TestCopiesOfSessions(t *testing.T) {
	m := chats(t, 1200, true)
	byID := map[int64]trace.Request{}
	for _, r := range m.rows {
		byID[r.ID] = r
	}
	out, d := scale(t, m, Scaling{Factor: 2.5, Seed: 9})
	if d.Shift != "client" || d.JitterNS != int64(time.Minute) || d.Wrapped == 0 || d.CutAfter == 0 || d.SharedRoots != 1 {
		t.Errorf("design %+v", d)
	}
	starts, sessions := map[string]time.Duration{}, map[string]int{}
	inPlace := 0
	for _, r := range out.rows {
		sessions[r.Session.Value]++
		if r.Arrival.Value%(100*time.Millisecond) != 0 {
			t.Fatalf("id %d arrives at %v, off the tick", r.ID, r.Arrival.Value)
		}
		if !r.Copy.Known {
			inPlace++
			continue
		}
		source := byID[r.OriginID.Value]
		if r.ID == source.ID || r.InputTokens != source.InputTokens || r.Blocks[0] != 1 {
			t.Fatalf("copy %+v of %+v", r, source)
		}
		for i, id := range r.Blocks[1:] {
			if id == source.Blocks[i+1] {
				t.Fatalf("id %d keeps the private block %d", r.ID, id)
			}
		}
		wrapped := strings.HasSuffix(r.Session.Value, "w")
		if want := fmt.Sprintf("%s~%d", source.Session.Value, r.Copy.Value); strings.TrimSuffix(r.Session.Value, "w") != want || !strings.HasPrefix(r.ClientID.Value, source.ClientID.Value+"~") {
			t.Fatalf("session %s of client %s, want %s", r.Session.Value, r.ClientID.Value, want)
		}
		if first, ok := starts[r.Session.Value]; ok && !wrapped && r.Turn.Value > 0 {
			if gap, was := r.Arrival.Value-first, source.Arrival.Value-byID[source.ID-int64(source.Turn.Value)].Arrival.Value; gap != was && sessions[r.Session.Value] == int(r.Turn.Value)+1 {
				t.Fatalf("turn %d of %s comes %v after the first, in the source %v", r.Turn.Value, r.Session.Value, gap, was)
			}
		} else {
			starts[r.Session.Value] = r.Arrival.Value
		}
	}
	if inPlace != len(m.rows) {
		t.Errorf("%d rows in place, want %d", inPlace, len(m.rows))
	}
	whole := 0
	for _, n := range sessions {
		if n == 3 {
			whole++
		}
	}
	if whole < 1200*2+500 {
		t.Errorf("%d whole sessions", whole)
	}
}

// TestThinning keeps whole sessions, or single requests where that is asked for.
func TestThinning(t *testing.T) {
	m := chats(t, 600, false)
	for thin, whole := range map[string]bool{ThinSessions: true, ThinRequests: false} {
		out, d := scale(t, m, Scaling{Factor: 0.25, Thin: thin, Seed: 4})
		sessions := map[string]int{}
		for _, r := range out.rows {
			sessions[r.Session.Value]++
		}
		broken := 0
		for _, n := range sessions {
			if n != 3 {
				broken++
			}
		}
		if (broken == 0) != whole {
			t.Errorf("%s: %d of %d sessions are broken (%+v)", thin, broken, len(sessions), d)
		}
		if n := float64(len(out.rows)) / float64(len(m.rows)); math.Abs(n-0.25) > 0.05 {
			t.Errorf("%s: %v of the rows", thin, n)
		}
	}
}

// TestGrowRate makes clients busier instead of more: the same clients, and gaps
// between their sessions that shrink and vary as before.
func TestGrowRate(t *testing.T) {
	m := chats(t, 1000, true)
	out, d := scale(t, m, Scaling{Factor: 2, Grow: GrowRate})
	if d.Shift != "rate" || len(out.rows) != 2*len(m.rows) {
		t.Fatalf("%d rows, design %+v", len(out.rows), d)
	}
	gaps := func(m *made) (gaps []float64) {
		last := map[string]time.Duration{}
		for _, r := range m.rows {
			if r.Turn.Value != 0 {
				continue
			}
			if at, ok := last[r.ClientID.Value]; ok {
				gaps = append(gaps, (r.Arrival.Value - at).Seconds())
			}
			last[r.ClientID.Value] = r.Arrival.Value
		}
		if len(last) != 5 {
			t.Errorf("%d clients, want 5", len(last))
		}
		return gaps
	}
	odd := 0
	for _, g := range gaps(out) {
		if math.Abs(g-2.5) > 1e-9 { // 5 s in the source
			odd++
		}
	}
	if odd > 5 { // around the ends, once a client
		t.Errorf("%d gaps are not halved", odd)
	}
}

// TestOthers looks at what the remaining options do.
func TestOthers(t *testing.T) {
	m := chats(t, 600, false)
	share := func(m *made, model string) float64 {
		n := 0
		for _, r := range m.rows {
			if r.Model.Value == model {
				n++
			}
		}
		return float64(n) / float64(len(m.rows))
	}
	out, _ := scale(t, m, Scaling{Mix: map[string]float64{"a": 0.4, "b": 0.6}})
	near(t, "mix", "share of b", 0, share(out, "b"), 0.6, 0.03)
	near(t, "mix", "rows", 0, float64(len(out.rows)), float64(len(m.rows)), 0.05)

	out, d := scale(t, m, Scaling{From: 100 * time.Second, To: 200 * time.Second})
	if out.meta.OriginNS.Value < int64(100*time.Second) || d.SourceRows != int64(len(out.rows)) || d.CutAfter == 0 {
		t.Errorf("window: origin %v, %+v", out.meta.OriginNS, d)
	}

	out, d = scale(t, m, Scaling{Extend: 1500 * time.Second})
	last := out.rows[len(out.rows)-1].Arrival.Value
	if last > 1500*time.Second || last < 1480*time.Second {
		t.Errorf("extended to %v: %+v", last, d)
	}
	near(t, "extend", "rate", 0, float64(len(out.rows))/1500, float64(len(m.rows))/601, 0.03)

	out, d = scale(t, m, Scaling{Rate: 6})
	near(t, "rate", "requests/s", 0, float64(len(out.rows))/last600(out), 6, 0.03)
	if d.Factor < 1.9 || d.Factor > 2.1 {
		t.Errorf("rate: %+v", d)
	}

	out, d = scale(t, m, Scaling{InputScale: 1.5, OutputScale: 0.25})
	for _, r := range out.rows {
		if want := int64(150 * (r.Turn.Value + 1)); r.InputTokens.Value != want || r.OutputTokens.Value != 3 || r.BlockTokens.Value != 150 {
			t.Fatalf("scaled row %+v, want %d input tokens", r, want)
		}
	}
	if d.InputScale != 1.5 || d.OutputScale != 0.3 {
		t.Errorf("scales reached %v and %v", d.InputScale, d.OutputScale)
	}
	near(t, "input scale", "hit rate", 0, hits(out), hits(m), 1e-12)

	out, d = scale(t, m, Scaling{MaxInput: 200})
	if d.Dropped != 600 || len(out.rows) != 1200 {
		t.Errorf("%d rows, %+v", len(out.rows), d)
	}
}

func last600(m *made) float64 { return m.rows[len(m.rows)-1].Arrival.Value.Seconds() }

// TestSameSeedSameBytes, and another seed another file.
func TestSameSeedSameBytes(t *testing.T) {
	m := chats(t, 300, true)
	a, _ := scale(t, m, Scaling{Factor: 2.5, Seed: 1})
	b, _ := scale(t, m, Scaling{Factor: 2.5, Seed: 1, Memory: 1}) // sorted on disk
	c, _ := scale(t, m, Scaling{Factor: 2.5, Seed: 2})
	if !slices.Equal(a.data, b.data) {
		t.Error("the same seed gives other bytes when sorting goes to disk")
	}
	if slices.Equal(a.data, c.data) {
		t.Error("another seed gives the same bytes")
	}
}

// TestSpread keeps the order and every row within its tick.
func TestSpread(t *testing.T) {
	var rows []trace.Request
	for i := range 50 {
		rows = append(rows, trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(i/7) * time.Second)})
	}
	m := write(t, trace.Meta{Clock: trace.ClockTrace, TickNS: trace.Some(int64(time.Second))}, rows)
	out := spread(t, m, Spreading{Seed: 3})
	origin := time.Duration(out.meta.OriginNS.Value)
	for i, r := range out.rows {
		at := r.Arrival.Value + origin - rows[i].Arrival.Value + 0
		if r.ID != int64(i) || at < 0 || at >= time.Second {
			t.Errorf("row %d: id %d, %v after its tick", i, r.ID, at)
		}
	}
	if out.meta.TickNS.Known {
		t.Error("the spread trace still has a tick")
	}
}

func TestRefusals(t *testing.T) {
	m := chats(t, 5, false)
	for want, s := range map[string]Scaling{
		"--scale -1: must be above 0":              {Factor: -1},
		"--scale and --rate exclude each other":    {Factor: 2, Rate: 3},
		`--grow "x"`:                               {Grow: "x"},
		"--mix: the shares add up to 0.5":          {Mix: map[string]float64{"a": 0.5}},
		`--mix: no row has model "z"`:              {Mix: map[string]float64{"z": 1}},
		"no row is selected":                       {From: time.Hour},
		"--extend 1s: the trace is longer, 5.4s":   {Extend: time.Second},
		"--target-hit-rate 2: not between 0 and 1": {HitRate: trace.Some(2.0)},
	} {
		_, _, err := s.Run(t.Context(), m.open, func(*trace.Batch) error { return nil })
		if err == nil || err.Error() != want {
			t.Errorf("%+v: error %v, want %s", s, err, want)
		}
	}
}
