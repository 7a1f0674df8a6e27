package analysis

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/results"
)

func TestParseSLO(t *testing.T) {
	s, err := ParseSLO("# of the contract\ngold: ttft<500ms, tpot<=30ms\n good_share>=99%; silver: ttft<2s; ttft_p99.9<3s")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Tiers) != 2 || s.Tiers[0].Name != "gold" || len(s.Tiers[0].terms) != 2 || len(s.Tiers[0].gates) != 1 || len(s.Tiers[1].gates) != 1 {
		t.Errorf("parsed as %+v", s.Tiers)
	}
	if g := s.Tiers[1].gates[0]; g.metric != "ttft" || g.millionth != 999_000 {
		t.Errorf("ttft_p99.9 is %+v", g)
	}
	for _, c := range []struct{ text, err, fix string }{
		{"", "no term", "write it like"},
		{"ttft_p95", `term "ttft_p95"`, "write it like"},
		{"ttft<800", "ttft is a time", "such as 'ttft<800ms'"},
		{"ttft_p95>1ms", "an upper limit", "use < or <="},
		{"ttft<+5%", "a change needs another run", "reprise compare"},
		{"speed<2", "nothing is called speed", "ttft_p95"},
		{"ttft_p0<1s", "p0 is no quantile", "p99.9999"},
		{"itl<30ms", "a request has no one itl", "tpot is the mean"},
		{"gold:; silver: ttft<1s", "tier gold has no term", "write terms"},
		{"a: ttft<1s; a: tpot<1s", "two tiers are called a", ""},
		{"good_share>99%", "no limit says what a good request is", "add one"},
		{"error_rate<1", "", ""},
		{"error_rate<5", "is a share", "error_rate<5%"},
		{"requests_per_s>5ms", "a number per second", "plain number"},
		{"output_tokens<5ms", "a number of tokens", "plain number"},
	} {
		_, err := ParseSLO(c.text)
		if c.err == "" {
			if err != nil {
				t.Errorf("%q: %v", c.text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(trace.Fix(err), c.fix) {
			t.Errorf("%q: %v (%s), want %q (%q)", c.text, err, trace.Fix(err), c.err, c.fix)
		}
	}
}

// FuzzParseSLO: what is read can be read again from its text, to the same.
func FuzzParseSLO(f *testing.F) {
	f.Add("gold: ttft<500ms, tpot<30ms; silver: ttft<2s")
	f.Add("error_rate<1%\n# all\nttft_p99_9<=1e3ms")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSLO(text)
		if err != nil {
			return
		}
		again, err := ParseSLO(s.Text)
		if err != nil || again.Text != s.Text || len(again.Tiers) != len(s.Tiers) {
			t.Errorf("%q is written as %q, which reads as %+v, %v", text, s.Text, again, err)
		}
	})
}

// goalRows are four requests: one within both limits, one whose TPOT is too
// long, one of a single token, and one that failed.
func goalRows() []results.Result {
	answer := func(id int64, session string, ttft, gap float64, n int32) results.Result {
		r := sent(id, float64(id)*1000, float64(id)*1000, float64(id)*1000, float64(id)*1000+ttft+gap*float64(n-1), results.OutcomeOK)
		for i := range n {
			r.Ledger = append(r.Ledger, chunk(i, ttft+gap*float64(i), 1, results.KindContent, false))
		}
		r.OutputTokens, r.OutputSource = tokens(int64(n)), trace.Some(results.SourceUsage)
		r.Session, r.FinishReason = trace.Some(session), trace.Some("stop")
		return r
	}
	good, slow, single := answer(0, "a", 100, 20, 5), answer(1, "b", 150, 80, 5), answer(2, "a", 190, 0, 1)
	single.FinishReason = trace.Some("length")
	bad := sent(3, 3000, 3000, 3000, 3010, results.OutcomeFailed)
	bad.Session = trace.Some("c")
	return []results.Result{good, slow, single, bad}
}

func goals(t *testing.T, text string, change func(*SLO)) *Summary {
	t.Helper()
	slo, err := ParseSLO(text)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(slo)
	}
	o, err := results.OpenRun(writeRun(t, baseRun(), goalRows()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := SummarizeSLO(t.Context(), o, slo)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const bothGoals = "ttft<200ms; tpot<50ms; ttft_p50<160ms; ttft_p99<1s; error_rate<=25%; good_share>=60%"

// TestGoodput works the numbers out by hand.
func TestGoodput(t *testing.T) {
	s := goals(t, bothGoals, nil)
	g := s.SLO.Tiers[0].Goodput
	// 4 requests, of which the first and the one without a TPOT are good.
	if g.Good != 2 || *g.Share != 0.5 || g.AtLimit != 1 || g.Terms[1].Lacks != 1 || g.Terms[1].Missed != 1 || g.Terms[0].Censored != 1 {
		t.Errorf("goodput %+v", g)
	}
	// The arrivals span 3 s, sent to end 3.01 s; session a is good, b and c are not.
	if *g.Arriving != 0.666667 || *g.PerS != 0.664452 || *g.TokensPer != 1.993355 || g.GoodSessions != 1 || g.Sessions != 3 {
		t.Errorf("rates %v %v %v, sessions %d of %d", *g.Arriving, *g.PerS, *g.TokensPer, g.GoodSessions, g.Sessions)
	}
	var passed []bool
	for _, gate := range s.SLO.Tiers[0].Gates {
		passed = append(passed, gate.Passed)
	}
	// p50 of 100, 150, 190 and a failure is 150; p99 falls on the failure.
	if want := []bool{true, false, true, false}; !equal(passed, want) {
		t.Errorf("gates passed %v, want %v", passed, want)
	}
	if gate := s.SLO.Tiers[0].Gates[1]; !gate.NotReached || gate.All != nil || *gate.OK != 190 || gate.N != 3 || gate.Censored != 1 {
		t.Errorf("ttft_p99 %+v", gate)
	}
	if f := s.Failing; f.Censored != 1 || *f.Metrics[0].P50 != 150 || f.Metrics[0].P99 != nil {
		t.Errorf("with failures %+v", f)
	}

	ok := goals(t, bothGoals, func(s *SLO) { s.Over, s.LengthIsBad = OverOK, true })
	if tier := ok.SLO.Tiers[0]; !tier.Gates[1].Passed || tier.Goodput.Good != 1 || tier.Goodput.AtLimit != 1 || tier.Goodput.GoodSessions != 0 {
		t.Errorf("over ok, length is bad: %+v, %+v", tier.Gates[1], tier.Goodput)
	}
}

func equal(a, b []bool) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestSLOForms: text, JSON and CSV say the same.
func TestSLOForms(t *testing.T) {
	s := goals(t, "gold: ttft<200ms, tpot<50ms, good_share>99%; silver: ttft_p95<1s; itl_p99<1s; lateness_p99<1ms; response_time_mean<1s", nil)
	var text, table bytes.Buffer
	if err := WriteText(&text, s); err != nil {
		t.Fatal(err)
	}
	golden(t, "slo.txt", text.Bytes())
	if err := WriteCSV(&table, s); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&table).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, r := range records {
		found[r[0]] = r[3]
	}
	for name, want := range map[string]string{"good_share:gold": "0.5", "gate:gold:good_share>99%": "0.5", "gate:silver:ttft_p95<1s": "", "goodput:gold": "0.664452"} {
		if got, ok := found[name]; !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	out, err := json.MarshalIndent(s.SLO, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "slo.json", append(out, '\n'))
}
