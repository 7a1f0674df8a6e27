package synth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// within holds a number to a relative tolerance.
func within(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: %.6g, want %.6g within %v", what, got, want, tolerance)
	}
}

// arriving makes a trace of gaps in seconds, floored to ticks.
func arriving(t testing.TB, tick time.Duration, n int, gap func(i int) float64) *made {
	t.Helper()
	var rows []trace.Request
	at := 0.0
	for i := range n {
		stamp := time.Duration(at*1e9) / tick * tick
		rows = append(rows, trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(stamp), InputTokens: trace.Some(int64(100 + i%50)), OutputTokens: trace.Some(int64(1 + i%7))})
		at += gap(i)
	}
	return write(t, trace.Meta{Clock: trace.ClockTrace}, rows)
}

// TestFitResidualSeesThroughTicks finds the shape of gaps that ticks hide, gaps of
// 0 included, under a rate that changes.
func TestFitResidualSeesThroughTicks(t *testing.T) {
	t.Parallel()
	for _, shape := range []float64{0.25, 0.5, 3} {
		for _, tick := range []time.Duration{time.Microsecond, 50 * time.Millisecond, 250 * time.Millisecond} {
			law := stats.Gamma{Shape: shape, Scale: 0.25 / shape}
			r := stats.Stream(11, uint64(shape*100), uint64(tick))
			m := arriving(t, tick, 4000, func(i int) float64 {
				if i < 2000 {
					return law.Rand(r)
				}
				return 4 * law.Rand(r)
			})
			w := fitOf(t, m, FitOptions{Profile: time.Minute})
			a := w.Streams[0].Arrivals
			got := shapeOf(t, a)
			// Pieces of a minute follow some of the noise of bursty arrivals, too.
			if se := a.Rest.Fits[0].StdErr[0]; math.Abs(got-shape) > 4*se+0.1*shape {
				t.Errorf("shape %v at %v: %v +- %v", shape, tick, got, se)
			}
			if a.Rest.Fits[0].KS > 0.03 {
				t.Errorf("shape %v at %v: KS %v", shape, tick, a.Rest.Fits[0].KS)
			}
		}
	}
}

// TestFitProfileFollowsTheRate finds where the rate changes, and cuts it into
// pieces of equal width.
func TestFitProfileFollowsTheRate(t *testing.T) {
	r := stats.Stream(3)
	m := arriving(t, time.Microsecond, 6000, func(i int) float64 {
		if i < 1000 {
			return r.ExpFloat64()
		}
		return r.ExpFloat64() / 10
	})
	auto := fitOf(t, m, FitOptions{}).Streams[0].Arrivals
	if len(auto.Profile) != 2 {
		t.Fatalf("profile %+v", auto.Profile)
	}
	within(t, "change", auto.Profile[0].ToS, m.rows[1000].Arrival.Value.Seconds(), 0.01)
	within(t, "rate before", auto.Profile[0].RateHz, 1, 0.1)
	within(t, "rate after", auto.Profile[1].RateHz, 10, 0.05)
	within(t, "shape", shapeOf(t, auto), 1, 0.05)
	if note := strings.Join(auto.Rest.Notes, ""); !strings.Contains(note, "and not its noise") {
		t.Errorf("check: %s", note)
	}
	fixed := fitOf(t, m, FitOptions{Profile: 5 * time.Minute}).Streams[0].Arrivals.Profile
	for i, p := range fixed {
		if p.FromS != 300*float64(i) || i < len(fixed)-1 && p.ToS != 300*float64(i+1) {
			t.Errorf("piece %d is %v to %v s", i, p.FromS, p.ToS)
		}
	}
	if _, err := Fit(t.Context(), m.open, FitOptions{Profile: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "more than 100000 pieces") {
		t.Errorf("pieces of 1 ms: %v", err)
	}
}

// TestFitRegularArrivals are a constant law, where all gaps are equal.
func TestFitRegularArrivals(t *testing.T) {
	a := fitOf(t, arriving(t, time.Second, 100, func(int) float64 { return 2 }), FitOptions{}).Streams[0].Arrivals
	if a.Gaps == nil || a.Gaps.Family != "constant" || a.Gaps.Params["value"] != 1 {
		t.Errorf("gaps %+v: %s", a.Gaps, a.GapsWhy)
	}
	within(t, "rate", a.RateHz, 0.5, 1e-9)
}

// TestFitByClient gives the largest clients a stream each and pools the rest.
func TestFitByClient(t *testing.T) {
	r := stats.Stream(4)
	var rows []trace.Request
	at, want := 0.0, map[string]int64{}
	for i := range 3000 {
		at += r.ExpFloat64()
		client := fmt.Sprintf("c%d", int(6*r.Float64()*r.Float64()))
		want[client]++
		rows = append(rows, trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: seconds(at), ClientID: trace.Some(client), Model: trace.Some("m"), InputTokens: trace.Some(int64(10 + r.IntN(100))), OutputTokens: trace.Some(int64(1 + r.IntN(9)))})
	}
	w := fitOf(t, write(t, trace.Meta{Clock: trace.ClockTrace}, rows), FitOptions{By: FitClient, Streams: 3})
	if len(w.Streams) != 4 {
		t.Fatalf("%d streams", len(w.Streams))
	}
	var total int64
	var rate float64
	for i, s := range w.Streams {
		total += s.Requests
		rate += s.Arrivals.RateHz
		if name := fmt.Sprintf("c%d", i); i < 3 && (s.Name != name || s.Client != name || s.Requests != want[name]) || s.Model != "m" {
			t.Errorf("stream %d is %s, client %s, model %s, %d rows", i, s.Name, s.Client, s.Model, s.Requests)
		}
	}
	if last := w.Streams[3]; last.Name != "others" || last.Client != "" {
		t.Errorf("the rest is %q of client %q", last.Name, last.Client)
	}
	if total != 3000 {
		t.Errorf("%d requests", total)
	}
	within(t, "rates together", rate, 2999/(at-rows[0].Arrival.Value.Seconds()), 1e-3)
	clients := map[string]int64{}
	for _, r := range generate(t, w, Generation{Duration: 3000 * time.Second, Seed: 1}).rows {
		clients[r.ClientID.Or("")]++
	}
	within(t, "requests of c0", float64(clients["c0"]), float64(want["c0"]), 0.1)
	byModel := fitOf(t, write(t, trace.Meta{Clock: trace.ClockTrace}, rows), FitOptions{By: FitModel})
	if len(byModel.Streams) != 1 || byModel.Streams[0].Name != "m" || byModel.Streams[0].Model != "m" {
		t.Errorf("by model: %+v", byModel.Streams)
	}
}

// conversation are rows whose blocks tell n sessions of three turns.
func conversation(n int) (rows []trace.Request) {
	for turn := range 3 {
		for s := range n {
			var ids []uint64
			for k := range 2 * (turn + 1) {
				ids = append(ids, uint64(1000*s+k+1))
			}
			rows = append(rows, trace.Request{
				ID: int64(len(rows)), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(100*turn)*time.Second + time.Duration(s*90000/n)*time.Millisecond), InputTokens: trace.Some(int64(32 * (turn + 1))), OutputTokens: trace.Some(int64(5)),
				Blocks: ids, BlockTokens: trace.Some(int32(16)), BlockTail: trace.Some(trace.TailPartial),
			})
		}
	}
	return rows
}

// TestFitHowSessionsAreKnown: by name where a row has one, however late; else by
// prefixes; else rows stand alone.
func TestFitHowSessionsAreKnown(t *testing.T) {
	meta := trace.Meta{Clock: trace.ClockTrace}
	s := fitOf(t, write(t, meta, conversation(30)), FitOptions{}).Streams[0]
	if s.Sessions == nil || s.Sessions.How != "inferred from prefixes" || s.Sessions.N != 30 || *s.Sessions.TurnFits.Mean != 3 {
		t.Errorf("inferred: %+v", s.Sessions)
	}
	if s.Sessions.Growth.Values[0] != 32 || s.Prefix.Kept.Values[0] != 1 || s.Sessions.Gap.Values[0] != 100 {
		t.Errorf("growth %v, kept %v, gap %v", s.Sessions.Growth, s.Prefix.Kept, s.Sessions.Gap)
	}

	late := conversation(30)
	late[88].Session, late[89].Session = trace.Some("x"), trace.Some("x")
	w := fitOf(t, write(t, meta, late), FitOptions{})
	if c := w.Streams[0].Sessions; c == nil || c.How != "explicit" || c.N != 89 {
		t.Errorf("named late: %+v", c)
	}
	if !strings.Contains(strings.Join(w.Provenance.Notes, "\n"), "88 of 90 rows name no session") {
		t.Errorf("notes %q", w.Provenance.Notes)
	}

	w = fitOf(t, write(t, meta, conversation(30)), FitOptions{MaxBlocks: 20})
	if s := w.Streams[0]; s.Sessions != nil || s.Arrivals.Of != "request" || s.Arrivals.N != 90 || s.Lengths.Of != "request" {
		t.Errorf("too many blocks: sessions %+v, %d arrivals of %s", s.Sessions, s.Arrivals.N, s.Arrivals.Of)
	}
	if !strings.Contains(strings.Join(w.Provenance.Notes, "\n"), "too many distinct blocks to infer them") {
		t.Errorf("notes %q", w.Provenance.Notes)
	}
}

// TestFitThinkTimes: recorded ends of turns are used, and overlaps left out.
func TestFitThinkTimes(t *testing.T) {
	rows := conversation(30)
	for i := range rows {
		rows[i].RecordedE2E = trace.Some(40 * time.Second)
		if i == 0 {
			rows[i].RecordedE2E = trace.Some(101 * time.Second)
		}
	}
	w := fitOf(t, write(t, trace.Meta{Clock: trace.ClockTrace}, rows), FitOptions{})
	c := w.Streams[0].Sessions
	if c.ThinkOf != "recorded end of a turn to the start of the next" || len(c.Think.Values) != 1 || c.Think.Values[0] != 60 || c.Think.Counts[0] != 59 {
		t.Errorf("think %+v of %s", c.Think, c.ThinkOf)
	}
	if !strings.Contains(strings.Join(w.Provenance.Notes, "\n"), "1 turns began before the one before had ended") {
		t.Errorf("notes %q", w.Provenance.Notes)
	}
}

// TestFitBootstrap: intervals hold the estimates and depend on the seed alone.
func TestFitBootstrap(t *testing.T) {
	t.Parallel()
	r := stats.Stream(8)
	var rows []trace.Request
	for i := range 90 {
		rows = append(rows, trace.Request{ID: int64(i), Operation: trace.OpChat, InputTokens: trace.Some(int64(1 + 500*r.ExpFloat64())), OutputTokens: trace.Some(int64(20 + r.IntN(5)))})
	}
	m := write(t, trace.Meta{Clock: trace.ClockNone}, rows)
	w := fitOf(t, m, FitOptions{Bootstrap: 60, Seed: 2})
	l := w.Streams[0].Lengths.Input
	for _, fit := range l.Fits {
		name := fit.Law.Name()
		if name == "mixture" || name == "spliced" {
			continue
		}
		if p, ok := l.BootstrapP[name]; !ok || !(p > 0 && p <= 1) {
			t.Errorf("%s: p %v", name, p)
		}
		for _, p := range fit.Law.Params() {
			if i := l.Intervals[name+"."+p.Name]; !(i[0] < p.Value && p.Value < i[1]) {
				t.Errorf("%s.%s %v is not in %v", name, p.Name, p.Value, i)
			}
		}
	}
	if l.BootstrapP["exponential"] < 0.01 || l.BootstrapP["lognormal"] > 0.1 {
		t.Errorf("p of an exponential sample: %v", l.BootstrapP)
	}
	if l.IntervalsHow != "95 %, percentile, 60 draws of 90 rows" {
		t.Errorf("intervals are %s", l.IntervalsHow)
	}
	if !bytes.Equal(written(t, w), written(t, fitOf(t, m, FitOptions{Bootstrap: 60, Seed: 2}))) {
		t.Error("the same seed gives other intervals")
	}
}

// TestBootBlocks joins neighbours where there are too many keys, and loses no
// value.
func TestBootBlocks(t *testing.T) {
	for _, c := range []struct{ values, keys, blocks int }{{100, 10, 10}, {100, 100, 100}, {9000, 4500, 1500}, {5, 1, 1}} {
		var values []keyedValue
		for i := range c.values {
			values = append(values, keyedValue{int64(i % c.keys), float64(i)})
		}
		blocks, how, err := bootBlocks(values, "minutes")
		if err != nil {
			t.Fatal(err)
		}
		if all := stats.Merge(blocks, ones(len(blocks))); len(blocks) != c.blocks || all.N() != int64(c.values) {
			t.Errorf("%+v: %d %s, %d values", c, len(blocks), how, all.N())
		}
	}
}

// TestFitRoots counts each session for the deepest beginning that it shares.
func TestFitRoots(t *testing.T) {
	r := fitRoots{limit: 1000}
	for i := range 40 {
		ids := []uint64{1, 2}
		switch {
		case i < 12:
			ids = append(ids, 3, 4, 5)
		case i < 21: // nine: not shared by enough
			ids = append(ids, 6)
		}
		r.add(append(ids, uint64(100+i)))
	}
	for i := range 10 {
		r.add([]uint64{uint64(500 + i)})
	}
	got := fmt.Sprint(r.shared())
	if want := "[{2 0.56} {5 0.24}]"; got != want {
		t.Errorf("roots %s, want %s", got, want)
	}
}

// TestOutputBins: in order, of enough rows, equal inputs together, all rows once.
func TestOutputBins(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		var l fitLengths
		l.begin(1, 2)
		rows := rng.IntN(3000)
		for range rows {
			l.add(fitRow{input: 1 + int64(rng.ExpFloat64()*float64(1+n)), output: 1 + rng.Int64N(100)})
		}
		pairs, _ := l.pairs()
		bins := outputBins(pairs)
		if len(bins) > copulaBins || rows >= 2*binRows && rows/(n+1) > 400 && len(bins) == 0 {
			t.Errorf("%d rows: %d bins", rows, len(bins))
		}
		var sum int64
		before := -1.0
		for _, b := range bins {
			if b.InputFrom <= before || b.InputTo < b.InputFrom || b.N < binRows {
				t.Fatalf("%d rows: bin %+v after %v", rows, b, before)
			}
			before = b.InputTo
			sum += b.N
		}
		if len(bins) > 0 && sum != int64(rows) {
			t.Errorf("%d rows: %d in bins", rows, sum)
		}
	}
}

// TestPairsAreSampled: of more distinct pairs than fit, a sample that has their
// means.
func TestPairsAreSampled(t *testing.T) {
	var l fitLengths
	l.begin(3, 0)
	for i := range int64(100_000) {
		l.add(fitRow{input: 1 + i, output: 1 + i%13})
	}
	pairs, sampled := l.pairs()
	var n, sum int64
	for _, p := range pairs {
		n += p.N
		sum += p.N * p.Input
	}
	if !sampled || n != maxPairs {
		t.Fatalf("%d rows, sampled %v", n, sampled)
	}
	within(t, "mean", float64(sum)/float64(n), 50_000, 0.02)
}

func TestMonotone(t *testing.T) {
	for text, want := range map[string]bool{"[1,2,3,9]": true, "[9,5,5,1]": true, "[1,9,2,8]": false, "[1,20,19,30]": true, "[5,5,5]": true, "[4]": true, "[]": true} {
		var v []float64
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got := monotone(v); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestEmpiricalSpec keeps the mean, and the quantiles to a thousandth of the
// ranks.
func TestEmpiricalSpec(t *testing.T) {
	r := stats.Stream(6)
	var x []float64
	for range 60_000 {
		x = append(x, stats.Lognormal{Mu: 3, Sigma: 2}.Rand(r))
	}
	s := must2(stats.NewSample(x))
	spec := empiricalSpec(s)
	law, err := spec.Law()
	if err != nil || len(spec.Values) > 1.5*maxValues {
		t.Fatalf("%d values, %v", len(spec.Values), err)
	}
	mean, _ := law.Mean()
	m := s.Moments()
	want, _ := m.Mean()
	within(t, "mean", mean, want, 1e-9)
	for _, p := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.999} {
		q := s.Quantiles7(max(0, p-0.002), min(1, p+0.002))
		if v := law.Quantile(p); v < q[0] || v > q[1] {
			t.Errorf("quantile %v: %v, not in %v", p, v, q)
		}
	}
}

// TestFitRefuses what it cannot do, in the words of the flags.
func TestFitRefuses(t *testing.T) {
	m := arriving(t, time.Second, 30, func(i int) float64 { return float64(i) })
	for text, o := range map[string]FitOptions{
		`--by "day": no such grouping`: {By: "day"}, "--clients -1: must be from 1 to 1000": {Streams: -1},
		"--bootstrap -1: must not be below 0": {Bootstrap: -1}, "--profile -1s: must be above 0": {Profile: -time.Second},
	} {
		if _, err := Fit(t.Context(), m.open, o); err == nil || err.Error() != text {
			t.Errorf("%+v: %v", o, err)
		}
	}
	m.rows[3].Arrival = trace.Some(time.Duration(0))
	if _, err := Fit(t.Context(), write(t, trace.Meta{Clock: trace.ClockTrace}, m.rows).open, FitOptions{}); err == nil || !strings.HasPrefix(err.Error(), "row 4: arrival_ns 0 comes after ") {
		t.Errorf("out of order: %v", err)
	}
}

// TestModelFileIsStrict: a file with another key is neither read nor valid.
func TestModelFileIsStrict(t *testing.T) {
	w := fitOf(t, generate(t, conversing(), Generation{Duration: 200 * time.Second}), FitOptions{})
	text := written(t, w)
	for _, key := range []string{"kind", "schema", "streams", "rate_hz", "profile", "loglik", "pairs", "turns", "block_tokens", "requests", "seed", "family"} {
		changed := bytes.Replace(text, []byte(`"`+key+`":`), []byte(`"`+key+`_":`), 1)
		if bytes.Equal(changed, text) {
			t.Fatalf("the model has no %s", key)
		}
		var value any
		if err := json.Unmarshal(changed, &value); err != nil {
			t.Fatal(err)
		}
		if err := modelSchema(t).Validate(value); err == nil {
			t.Errorf("the schema takes %s_", key)
		}
		if _, err := model.Read(bytes.NewReader(changed)); err == nil {
			t.Errorf("a model with %s_ is read", key)
		}
	}
}

// TestFitHitShareIsEstimated from a share of the blocks, hot blocks or not.
func TestFitHitShareIsEstimated(t *testing.T) {
	rows := conversation(600)
	for i := range rows {
		rows[i].Session = trace.Some(fmt.Sprint("s", rows[i].Blocks[0]))
		rows[i].Blocks[0] = 7 // of all sessions
	}
	m := write(t, trace.Meta{Clock: trace.ClockTrace}, rows)
	exact := fitOf(t, m, FitOptions{}).Streams[0].Prefix
	some := fitOf(t, m, FitOptions{MaxBlocks: 300})
	if d := math.Abs(some.Streams[0].Prefix.HitShare - exact.HitShare); d > 0.04 {
		t.Errorf("hit share %v of a sample, %v of all", some.Streams[0].Prefix.HitShare, exact.HitShare)
	}
	if !strings.Contains(strings.Join(some.Provenance.Notes, "\n"), "the hit share is an estimate from ") {
		t.Errorf("notes %q", some.Provenance.Notes)
	}
}
