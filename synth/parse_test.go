package synth

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/analysis/stats"
)

// TestRangeRatio has the bounds and means of both dialects.
func TestRangeRatio(t *testing.T) {
	for _, c := range []struct {
		ratio     float64
		dialect   string
		low, high float64
		mean      float64
	}{
		{0, "vllm", 512, 512, 512},
		{0.2, "vllm", 409, 615, 512},
		{0.5, "vllm", 256, 768, 512},
		{1, "sglang", 512, 512, 512},
		{0.5, "sglang", 256, 512, 384},
		{0.2, "sglang", 102, 512, 307},
		{0, "sglang", 1, 512, 256.5},
	} {
		low, high, err := RangeRatio(512, c.ratio, c.dialect)
		if err != nil || low != c.low || high != c.high {
			t.Errorf("%v %s: %v to %v (%v), want %v to %v", c.ratio, c.dialect, low, high, err, c.low, c.high)
		}
		law := integers(low, high)
		if mean, _ := law.Mean(); mean != c.mean {
			t.Errorf("%v %s: mean %v, want %v", c.ratio, c.dialect, mean, c.mean)
		}
		r := stats.Stream(1)
		least, most := math.Inf(1), 0.0
		for range 20_000 {
			n := float64(whole(law.Quantile(r.Float64())))
			least, most = min(least, n), max(most, n)
		}
		if least != c.low || most != c.high {
			t.Errorf("%v %s: drawn from %v to %v, want %v to %v", c.ratio, c.dialect, least, most, c.low, c.high)
		}
	}
	if _, _, err := RangeRatio(512, 1, "vllm"); err == nil {
		t.Error("vLLM takes a ratio of 1")
	}
}

// TestParsedLaws have the mean and deviation that they are written with.
func TestParsedLaws(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "n.txt")
	if err := os.WriteFile(file, []byte("10\n20,3\n\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][2]float64{
		"512": {512, 0}, "2k": {2000, 0}, "normal:512,128": {512, 128}, "lognormal:500,300": {500, 300}, "gamma:500,1000": {500, 1000},
		"exponential:40": {40, 40}, "uniform:10,20": {15, 11 / math.Sqrt(12)}, "geometric:3": {3, math.Sqrt(6)},
		"mixture:1*10+3*30": {25, math.Sqrt(75)}, "empirical:" + file: {17.5, math.Sqrt(18.75)},
	} {
		law, err := ParseLengths(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		mean, _ := law.Mean()
		sd, _ := law.SD()
		if math.Abs(mean-want[0]) > 1e-3*want[0] || math.Abs(sd-want[1]) > 1e-2*max(1e-9, want[1]) {
			t.Errorf("%s: mean %v and deviation %v, want %v", text, mean, sd, want)
		}
	}
	if law, err := ParseTimes("lognormal:5s,10s"); err != nil {
		t.Error(err)
	} else if mean, _ := law.Mean(); math.Abs(mean-5) > 1e-9 {
		t.Errorf("mean %v", mean)
	}
}

// TestMeanLength is the mean of what is drawn: 1 token at least.
func TestMeanLength(t *testing.T) {
	for text, want := range map[string]float64{
		"512": 512, "0": 1, "exponential:0.001": 1, "exponential:500": 500, "range-ratio:512,0,sglang": 256.5,
		"normal:100,100": 100 + 100*normalExcess(0.99), // of the normal law cut at 1
	} {
		law, err := ParseLengths(text)
		if err != nil {
			t.Fatal(err)
		}
		mean, ok := MeanLength(law)
		r, sum := stats.Stream(3), 0.0
		const n = 200_000
		for range n {
			sum += float64(whole(law.Quantile(r.Float64())))
		}
		sd, _ := law.SD()
		if !ok || math.Abs(mean-want) > 2e-3*want || math.Abs(sum/n-mean) > 4*sd/math.Sqrt(n)+2e-3*mean {
			t.Errorf("%s: mean %v, want %v; drawn %v", text, mean, want, sum/n)
		}
	}
}

// normalExcess is E max(0, -z - Z) for a standard normal Z: what cutting at z
// deviations below the mean adds to it.
func normalExcess(z float64) float64 {
	return math.Exp(-z*z/2)/math.Sqrt(2*math.Pi) - z*normal(-z)
}

// TestParsedArrivals have gaps of mean 1 and the variation asked for.
func TestParsedArrivals(t *testing.T) {
	for text, cv := range map[string]float64{
		"constant:10": 0, "poisson:2.5": 1, "gamma:10,cv=2": 2, "gamma:10,shape=4": 0.5, "gamma:3,burstiness=0.25": 2, "gamma:3,smoothness=4": 0.5,
		"weibull:10,shape=0.5": math.Sqrt(5), "lognormal:1,cv=3": 3,
	} {
		a, note, err := ParseArrivals(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		law, err := a.Gaps.Law()
		if err != nil {
			t.Fatal(err)
		}
		mean, _ := law.Mean()
		got, _ := stats.CV(law)
		if math.Abs(mean-1) > 1e-9 || math.Abs(got-cv) > 1e-9*max(1, cv) {
			t.Errorf("%s: gaps of mean %v and CV %v, want 1 and %v", text, mean, got, cv)
		}
		if borrowed := strings.Contains(text, "ness="); borrowed != (note != "") {
			t.Errorf("%s: note %q", text, note)
		}
	}
}

func TestParseRefusals(t *testing.T) {
	dir := t.TempDir()
	gap := filepath.Join(dir, "gap.csv")
	if err := os.WriteFile(gap, []byte("from_s,to_s,rate_hz\n0,10,1\n11,20,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"poisson": `poisson: the rate "" is no number above 0`, "poisson:0": `no number above 0`, "gamma:10": "gamma: how bursty?", "gamma:10,cv=0": `"cv=0": not a number above 0`,
		"gamma:1,cv=1,shape=1": "cv and shape say the same", "erlang:3": `unknown arrivals "erlang"`, "constant:3,cv=1": `constant takes a rate alone, not "cv=1"`, "gamma:1,x=1": `unknown option "x=1"`,
		"piecewise:" + gap: "gap.csv:3: 11 to 20 s at 2/s: pieces follow one another from 0", "piecewise:": "piecewise: no file",
	} {
		if _, _, err := ParseArrivals(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"many": `"many" is neither a number nor a law`, "normal:5": "normal takes 2 numbers, got 1", "cauchy:1,2": `unknown law "cauchy"`, "uniform:9,3": "uniform: from 9 to 3: the smaller number comes first", "range-ratio:512,0.2": "and whose meaning",
		"range-ratio:512,2,vllm": `"2" is no share between 0 and 1`, "range-ratio:512,0.2,x": `unknown dialect "x"`, "mixture:1+2": "no weight*law", "empirical:" + gap: `gap.csv:1: "from_s,to_s,rate_hz"`, "exponential:0": "exponential: the mean is 0", "lognormal:0,3": "lognormal: the mean is 0",
		"range-ratio:0,0.2,vllm": "a length of 0", "geometric:0.5": "a mean of 0.5, but counts begin at 1",
	} {
		if _, err := ParseLengths(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}
