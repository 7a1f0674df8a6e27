package analysis

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/synth/model"
	"reprise/trace"
)

// bursty is traffic whose rate changes from minute to minute.
func bursty(n int, seed uint64) []trace.Request {
	r := rand.New(rand.NewPCG(seed, 1))
	var rows []trace.Request
	at := 0.0
	for i := range n {
		rate := 2.0
		if int(at/60)%3 == 0 {
			rate = 12
		}
		at += r.ExpFloat64() / rate
		in := int64(100 + r.IntN(2000))
		rows = append(rows, trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(at * 1e9)), InputTokens: trace.Some(in), OutputTokens: trace.Some(in/10 + int64(r.IntN(20)))})
	}
	return rows
}

func trafficOf(t testing.TB, rows []trace.Request) *Traffic {
	t.Helper()
	c, err := NewTrafficCollector(trace.Meta{Clock: trace.ClockTrace}, int64(len(rows)), TrafficOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rows = inOrder(rows)
	b := trace.NewBatch()
	for i := range rows {
		b.Append(&rows[i])
	}
	if err := c.Add(b); err != nil {
		t.Fatal(err)
	}
	return c.Traffic()
}

// inOrder sorts a copy by arrival.
func inOrder(rows []trace.Request) []trace.Request {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.Arrival.Value - b.Arrival.Value) })
	return rows
}

// shifted are copies of rows, each moved by what move says, around the period.
func shifted(rows []trace.Request, copies int, move func(copy, row int) time.Duration) []trace.Request {
	period := rows[len(rows)-1].Arrival.Value + time.Second
	var out []trace.Request
	for c := range copies {
		for i, r := range rows {
			r.ID = int64(len(out))
			r.Arrival.Value = (r.Arrival.Value + move(c, i) + period) % period
			out = append(out, r)
		}
	}
	return out
}

func verdicts(f *Fidelity) map[string]string {
	of := map[string]string{}
	for _, p := range f.Properties {
		of[p.Name] = p.Verdict
	}
	return of
}

// TestFidelityVerdicts holds copies that keep the shape, that lose it, and that
// are the source itself.
func TestFidelityVerdicts(t *testing.T) {
	rows := bursty(20_000, 1)
	source := trafficOf(t, rows)
	jitter := rand.New(rand.NewPCG(2, 2))
	near := func(copy, _ int) time.Duration {
		if copy == 0 {
			return 0
		}
		return time.Duration((jitter.Float64() - 0.5) * 20e9)
	}
	far := func(copy, _ int) time.Duration { return time.Duration(copy) * 61 * time.Second }
	anywhere := func(int, int) time.Duration { return time.Duration(jitter.Float64() * 3000e9) }
	for name, c := range map[string]struct {
		made   []trace.Request
		design model.Design
		want   map[string]string
	}{
		"itself": {rows, model.Design{Factor: 1, Speed: 1, Unit: "request"}, map[string]string{
			"requests": Exact, "mean rate": Exact, "gap CV": Exact, "IDC at 1 s": Exact, "IDC at 60 s": Exact, "input lengths, W1 / mean": Exact, "input-output Spearman": Exact, "prefix reuse": NotMeasurable, "turns per session": NotMeasurable}},
		"near copies": {shifted(rows, 3, near), model.Design{Factor: 3, Speed: 1, Unit: "request", JitterNS: 10e9}, map[string]string{
			"requests": Exact, "IDC at 60 s": ByDesign, "IDC at 300 s": WithinNoise, "gap CV": ByDesign, "input lengths, W1 / mean": Exact, "rate over time, W1": WithinNoise}},
		"copies a minute apart": {shifted(rows, 3, far), model.Design{Factor: 3, Speed: 1, Unit: "request", JitterNS: 10e9}, map[string]string{
			"requests": Exact, "IDC at 60 s": Lost, "input lengths, W1 / mean": Exact}},
		"arrivals at random": {shifted(rows, 1, anywhere), model.Design{Factor: 1, Speed: 1, Unit: "request", JitterNS: 10e9}, map[string]string{
			"IDC at 60 s": Lost, "count CV at 60 s": Lost, "input-output Spearman": Exact}},
		"requests are missing": {rows[:15_000], model.Design{Factor: 1, Speed: 1, Unit: "request"}, map[string]string{"requests": Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			f := CompareFidelity(source, trafficOf(t, c.made), &c.design)
			got := verdicts(f)
			for property, want := range c.want {
				if got[property] != want {
					t.Errorf("%s: %q, want %q", property, got[property], want)
				}
			}
			text, err := json.Marshal(f)
			if err != nil || bytes.Contains(text, []byte("NaN")) {
				t.Errorf("JSON: %v", err)
			}
			var out bytes.Buffer
			if err := WriteFidelityText(&out, f); err != nil {
				t.Fatal(err)
			}
			if lost := strings.Contains(out.String(), "lost: "); lost != (f.Lost > 0) {
				t.Errorf("%d lost, but the text says\n%s", f.Lost, out.String())
			}
		})
	}
}

// TestBandCoversSuchTraffic draws traffic of one kind again and again: the band
// of one holds the dispersion of most others.
func TestBandCoversSuchTraffic(t *testing.T) {
	band := trafficOf(t, bursty(20_000, 1)).raw.flow.arrivals.blocks.band(3, 0)
	inside := 0
	const others = 20
	for seed := range uint64(others) {
		b := trafficOf(t, bursty(20_000, seed+10)).Arrivals.Burstiness[3]
		if *b.IDC >= band.idc.Lo && *b.IDC <= band.idc.Hi {
			inside++
		}
	}
	if inside < others*3/4 {
		t.Errorf("%d of %d lie in the band %v to %v", inside, others, band.idc.Lo, band.idc.Hi)
	}
	// The bootstrap's plain value is that of the counter.
	c := trafficOf(t, bursty(20_000, 1))
	var n, squares, windows float64
	blocks := &c.raw.flow.arrivals.blocks
	blocks.band(1, 0)
	for b := range len(blocks.minutes) {
		x, y, per := blocks.sums(1, b)
		n, squares, windows = n+x, squares+y, windows+per
	}
	if got, _ := dispersionOf(n, squares, windows); math.Abs(got-*c.Arrivals.Burstiness[1].IDC) > 0.05*got {
		t.Errorf("dispersion from minutes %v, from windows %v", got, *c.Arrivals.Burstiness[1].IDC)
	}
}

// TestFidelityOfDegenerateTraces has no crash and no NaN.
func TestFidelityOfDegenerateTraces(t *testing.T) {
	one := []trace.Request{{Operation: trace.OpChat, Arrival: trace.Some(time.Duration(0))}}
	same := []trace.Request{one[0], one[0], one[0]}
	none := []trace.Request{{Operation: trace.OpChat}}
	for _, rows := range [][]trace.Request{one, same, none, bursty(2, 1), bursty(3, 1)} {
		f := CompareFidelity(trafficOf(t, rows), trafficOf(t, rows), &model.Design{Factor: 1, Speed: 1, Unit: "request"})
		if f.Lost != 0 {
			t.Errorf("%d rows are not the same as themselves: %+v", len(rows), f.Properties)
		}
		if _, err := json.Marshal(f); err != nil {
			t.Error(err)
		}
	}
}

// TestThinnedTokenRates are not lost by the chance of which rows were drawn, whose
// lengths differ much: bands of two deviations are left by one in twenty.
func TestThinnedTokenRates(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	rows := bursty(4000, 1)
	for i := range rows {
		rows[i].OutputTokens = trace.Some(1 + int64(30*math.Exp(1.3*random.NormFloat64())))
	}
	source := trafficOf(t, rows)
	const draws = 40
	lost := 0
	for range draws {
		var made []trace.Request
		for _, r := range rows {
			if random.Float64() < 0.5 {
				made = append(made, r)
			}
		}
		f := CompareFidelity(source, trafficOf(t, made), &model.Design{Factor: 0.5, Fraction: 0.5, Speed: 1, Unit: "request"})
		if verdicts(f)["output tokens/s"] == Lost {
			lost++
		}
	}
	if lost > 6 {
		t.Errorf("output tokens/s is lost in %d of %d draws", lost, draws)
	}
}
