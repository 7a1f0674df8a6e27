package analysis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

// chatting is traffic of sessions of a few turns; lengths are scaled by by.
func chatting(sessions int, by float64, seed uint64) []trace.Request {
	r := rand.New(rand.NewPCG(seed, 3))
	var rows []trace.Request
	for s := range sessions {
		at := time.Duration(s) * 2 * time.Second
		size := 100 + r.Float64()*3000 // of all turns of the session
		for turn := range 1 + r.IntN(4) {
			rows = append(rows, trace.Request{ID: int64(len(rows)), Operation: trace.OpChat, Session: trace.Some(fmt.Sprint("s", seed, "-", s)), Turn: trace.Some(int32(turn)), Arrival: trace.Some(at),
				InputTokens: trace.Some(int64(by*size) + int64(turn)), OutputTokens: trace.Some(int64(by * (10 + r.ExpFloat64()*200)))})
			at += time.Duration(r.ExpFloat64() * 5e9)
		}
	}
	return rows
}

func profileOf(t testing.TB, rows []trace.Request) *Profile {
	t.Helper()
	rows = inOrder(rows)
	var out bytes.Buffer
	w := trace.NewWriter(&out)
	b := trace.NewBatch()
	for i := range rows {
		b.Append(&rows[i])
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(trace.Meta{Clock: trace.ClockTrace}); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "t")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ProfileOfTrace(t.Context(), r, "t")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compared(c *TrafficComparison, name string) *Compared {
	for i := range c.Quantities {
		if c.Quantities[i].Name == name {
			return &c.Quantities[i]
		}
	}
	return nil
}

// TestCompareVerdicts: a trace with itself, with another of its kind, and with
// one whose prompts are a fifth longer.
func TestCompareVerdicts(t *testing.T) {
	a := profileOf(t, chatting(1500, 1, 1))
	for name, c := range map[string]struct {
		b    *Profile
		want map[string]string
	}{
		"itself":         {profileOf(t, chatting(1500, 1, 1)), map[string]string{"isl": Same, "osl": Same, "turns": Same, "gap": Same}},
		"of its kind":    {profileOf(t, chatting(1500, 1, 2)), map[string]string{"isl": WithinNoise, "osl": WithinNoise, "turns": WithinNoise}},
		"longer prompts": {profileOf(t, chatting(1500, 1.2, 3)), map[string]string{"isl": Differs, "osl": Differs, "turns": WithinNoise}},
	} {
		t.Run(name, func(t *testing.T) {
			r := CompareProfiles(a, c.b, 0)
			for quantity, want := range c.want {
				if q := compared(r, quantity); q.Verdict != want {
					t.Errorf("%s: %s (%s), want %s", quantity, q.Verdict, q.Why, want)
				}
			}
			if q := compared(r, "think"); q.Verdict != NotMeasurable {
				t.Errorf("think times from nowhere: %+v", q)
			}
			if text, err := json.Marshal(r); err != nil || bytes.Contains(text, []byte("NaN")) {
				t.Errorf("JSON: %v", err)
			}
			var out bytes.Buffer
			if err := WriteComparisonText(&out, r); err != nil || !strings.Contains(out.String(), "isl, tokens") {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// TestIntervalsCoverTheRatio: over many pairs of one kind, about 95 % of the
// intervals of the mean hold 1, although the turns of a session go together.
func TestIntervalsCoverTheRatio(t *testing.T) {
	covered, trials := 0, 30
	for seed := range uint64(trials) {
		r := CompareProfiles(profileOf(t, chatting(300, 1, 100+seed)), profileOf(t, chatting(300, 1, 200+seed)), seed)
		mean := compared(r, "isl").Stats[0]
		if *mean.Lo <= 1 && *mean.Hi >= 1 {
			covered++
		}
	}
	if covered < trials*4/5 {
		t.Errorf("%d of %d intervals hold the true ratio", covered, trials)
	}
}

// TestCompareIsDeterministic has the same bytes for the same seed.
func TestCompareIsDeterministic(t *testing.T) {
	render := func(seed uint64) string {
		text, err := json.Marshal(CompareProfiles(profileOf(t, chatting(200, 1, 1)), profileOf(t, chatting(200, 1.1, 2)), seed))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first, second := render(1), render(1)
	if first != second {
		t.Error("the same seed gives other numbers")
	}
	if first == render(2) {
		t.Error("another seed gives the same intervals")
	}
}

// TestGates: what holds fails, and names that are not there are an error.
func TestGates(t *testing.T) {
	c := CompareProfiles(profileOf(t, chatting(500, 1, 1)), profileOf(t, chatting(500, 1.5, 2)), 0)
	for text, failed := range map[string]int{
		"isl_w1>5%": 1, "isl_w1>90%": 0, "isl_mean>+20%": 1, "isl_mean<-20%": 0, "isl_p50>+20%; osl_w1>5%": 2, "rate>+50%": 0, "think_mean>+5%": 1, "isl_ks>=0.9": 0,
	} {
		conditions, err := ParseConditions(text)
		if err == nil {
			c.Gates = nil
			var n int
			if n, err = c.Gate(conditions); n != failed {
				t.Errorf("%s: %d failed, want %d (%+v)", text, n, failed, c.Gates)
			}
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"isl": `condition "isl"`, "isl_w1>": `condition "isl_w1>"`, "": "no condition", "isl_mean>+5": "a change is relative", "isl>5x": "condition",
	} {
		if _, err := ParseConditions(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	for text, fix := range map[string]string{
		"rate>10ms": "number of requests/s: write a plain number", "isl_w1>10ms": "it is a share: write 'isl_w1>5%'", "isl_mean>5%": "'isl_mean>+10%' for a change", "gap_mean>5%": "'gap_mean>250ms'",
		"isl_w1>+5%": "it is a distance of both sides already", "idc_60s>3s": "number without a unit", "gap_mean>250ms": "", "rate>0.5": "", "rate>+5%": "", "isl_p99_9>+5%": "",
	} {
		conditions, err := ParseConditions(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Gate(conditions)
		if fix == "" && err != nil || fix != "" && (err == nil || !strings.Contains(trace.Fix(err), fix)) {
			t.Errorf("%s: %v (%s), want %q", text, err, trace.Fix(err), fix)
		}
	}
	conditions, _ := ParseConditions("speed>5%")
	if _, err := c.Gate(conditions); err == nil || !strings.Contains(err.Error(), "no property is called speed") {
		t.Errorf("error %v", err)
	}
	c2, _ := ParseConditions("ttft_p95<800ms, tpot_p50>+5%")
	if c2[0].Value != 0.8 || !c2[0].Time || !c2[1].Change || math.Abs(c2[1].Value-0.05) > 1e-12 {
		t.Errorf("parsed %+v", c2)
	}
}

// TestScalarsAreJudgedByTheirNoise: correlations and variations of two draws of
// one law are within noise, and what has no interval is not said to differ.
func TestScalarsAreJudgedByTheirNoise(t *testing.T) {
	c := CompareProfiles(profileOf(t, chatting(800, 1, 1)), profileOf(t, chatting(800, 1, 2)), 0)
	for _, s := range c.Scalars {
		if s.Verdict != WithinNoise {
			t.Errorf("%s: %v and %v: %s", s.Name, *s.A, *s.B, s.Verdict)
		}
	}
	if r := compareScalar("x", &scalar{value: 1}, &scalar{value: 2}); r.Verdict != Unjudged {
		t.Errorf("without an interval: %s", r.Verdict)
	}
}

// TestOneWrongTimestampTakesNoMemory: bands over minutes end, and the trace does
// not.
func TestOneWrongTimestampTakesNoMemory(t *testing.T) {
	rows := chatting(200, 1, 1)
	rows[len(rows)-1].Arrival = trace.Some(200 * 365 * 24 * time.Hour)
	p := profileOf(t, rows)
	if s := p.scalar("rate"); s == nil || s.low != nil {
		t.Errorf("rate %+v, want one without a band", s)
	}
	var c countBlocks
	c.add(int64(maxMinutes) * int64(time.Minute))
	if c.minutes != nil || c.band(0, 0).idc != nil {
		t.Error("blocks of more than two years are kept")
	}
}
