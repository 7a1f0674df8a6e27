package synth

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// ParseArrivals reads a law of arrivals, such as poisson:10 or gamma:10,cv=2.
// The rate is in 1/s. note says in words what a borrowed parameter means; "" if
// there is nothing to say.
func ParseArrivals(text string) (a *model.Arrivals, note string, err error) {
	kind, rest, _ := strings.Cut(text, ":")
	first, options, _ := strings.Cut(rest, ",")
	gaps, note, err := gapLaw(kind, options)
	if err != nil {
		return nil, "", err
	}
	a = &model.Arrivals{Of: "request", Gaps: gaps}
	if kind == "piecewise" {
		if a.Profile, err = readProfile(first); err != nil {
			return nil, "", err
		}
		var mass float64
		for _, r := range a.Profile {
			mass += (r.ToS - r.FromS) * r.RateHz
		}
		a.RateHz = mass / a.Profile[len(a.Profile)-1].ToS
		return a, note, nil
	}
	rate, err := strconv.ParseFloat(first, 64)
	if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
		return nil, "", trace.WithFix(fmt.Errorf("%s: the rate %q is no number above 0", kind, first), "write it like poisson:10, in 1/s")
	}
	a.RateHz, a.Profile = rate, []model.Rate{{ToS: 3600, RateHz: rate}}
	return a, note, nil
}

// gapLaw returns the law of gaps of mean 1.
func gapLaw(kind, options string) (*stats.LawSpec, string, error) {
	shape, cv, note, err := gapOptions(options)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", kind, err)
	}
	var law stats.Law
	switch kind {
	case "constant":
		law = stats.Constant{Value: 1}
	case "poisson", "piecewise":
		law = stats.Exponential{Rate: 1}
	}
	if law != nil && options != "" && kind != "piecewise" {
		return nil, "", fmt.Errorf("%s takes a rate alone, not %q", kind, options)
	}
	switch kind {
	case "gamma", "piecewise":
		if cv > 0 {
			shape = 1 / (cv * cv)
		}
		if shape == 0 && kind == "piecewise" {
			break
		}
		if shape == 0 {
			return nil, "", trace.WithFix(errors.New("gamma: how bursty?"), "write it like gamma:10,cv=2; cv=1 is poisson")
		}
		law = stats.Gamma{Shape: shape, Scale: 1 / shape}
	case "weibull":
		if shape == 0 {
			return nil, "", trace.WithFix(errors.New("weibull: no shape"), "write it like weibull:10,shape=0.5; shape=1 is poisson")
		}
		law = stats.Weibull{Shape: shape, Scale: 1 / math.Gamma(1+1/shape)}
	case "lognormal":
		if cv == 0 {
			return nil, "", trace.WithFix(errors.New("lognormal: no cv"), "write it like lognormal:10,cv=2")
		}
		v := math.Log1p(cv * cv)
		law = stats.Lognormal{Mu: -v / 2, Sigma: math.Sqrt(v)}
	}
	if law == nil {
		return nil, "", trace.WithFix(fmt.Errorf("unknown arrivals %q", kind), "use constant:R, poisson:R, gamma:R,cv=C, weibull:R,shape=K, lognormal:R,cv=C or piecewise:FILE")
	}
	if err := stats.CheckLaw(law); err != nil {
		return nil, "", err
	}
	spec := stats.SpecOf(law)
	return &spec, note, nil
}

// gapOptions reads cv, shape, and the words of others for the shape of gamma.
func gapOptions(text string) (shape, cv float64, note string, err error) {
	if text == "" {
		return 0, 0, "", nil
	}
	for option := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(option, "=")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return 0, 0, "", fmt.Errorf("%q: not a number above 0", option)
		}
		switch name {
		case "cv":
			cv = v
		case "shape":
			shape = v
		case "burstiness", "smoothness":
			whose := map[string]string{"burstiness": "vLLM's burstiness", "smoothness": "AIPerf's smoothness"}[name]
			shape, note = v, fmt.Sprintf("%s %v is the shape of the gamma law: the CV of gaps is %.3g, and smaller is burstier", whose, v, 1/math.Sqrt(v))
		default:
			return 0, 0, "", trace.WithFix(fmt.Errorf("unknown option %q", option), "use cv=, shape=, or the names of others for the shape: burstiness= (vLLM), smoothness= (AIPerf)")
		}
	}
	if cv > 0 && shape > 0 {
		return 0, 0, "", errors.New("cv and shape say the same: give one")
	}
	return shape, cv, note, nil
}

// readProfile reads a rate over time: CSV with the columns from_s, to_s and
// rate_hz.
func readProfile(path string) ([]model.Rate, error) {
	if path == "" {
		return nil, trace.WithFix(errors.New("piecewise: no file"), "write it like piecewise:rates.csv; its columns are from_s,to_s,rate_hz")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("piecewise: %w", err)
	}
	defer f.Close()
	pieces, err := stats.ReadRates(path, f)
	if err != nil {
		return nil, err
	}
	rates := make([]model.Rate, len(pieces))
	for i, p := range pieces {
		rates[i] = model.Rate{FromS: p.FromS, ToS: p.ToS, RateHz: p.From}
	}
	return rates, nil
}

// ParseLengths reads a law of token counts, such as 512, normal:512,128 or
// range-ratio:512,0.2,vllm. Numbers drawn from it are rounded, and at least 1.
func ParseLengths(text string) (stats.Law, error) { return parseLaw(text, parseTokens) }

// ParseTimes reads a law of times in seconds, such as 5s or lognormal:5s,10s.
func ParseTimes(text string) (stats.Law, error) { return parseLaw(text, parseSeconds) }

func parseTokens(text string) (float64, error) {
	unit := 1.0
	for suffix, n := range map[string]float64{"k": 1e3, "M": 1e6} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = rest, n
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is no number of tokens", text)
	}
	return v * unit, nil
}

func parseSeconds(text string) (float64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, trace.WithFix(fmt.Errorf("%q is no time", text), "write it like 250ms, 5s or lognormal:5s,10s")
	}
	return d.Seconds(), nil
}

// parseLaw reads NAME:ARGS, with numbers as number reads them.
func parseLaw(text string, number func(string) (float64, error)) (stats.Law, error) {
	name, rest, named := strings.Cut(text, ":")
	if !named {
		v, err := number(text)
		if err != nil {
			return nil, trace.WithFix(fmt.Errorf("%q is neither a number nor a law", text), cmp.Or(trace.Fix(err), "write it like 512, normal:512,128, lognormal:MEAN,SD, gamma:MEAN,SD, exponential:MEAN, uniform:A,B, range-ratio:512,0.2,vllm, mixture:0.7*512+0.3*4096 or empirical:FILE"))
		}
		return stats.Constant{Value: v}, nil
	}
	switch name {
	case "range-ratio":
		return parseRangeRatio(rest, number)
	case "mixture":
		return parseMixture(rest, number)
	case "empirical":
		return readEmpirical(rest)
	}
	var v []float64
	for part := range strings.SplitSeq(rest, ",") {
		x, err := number(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		v = append(v, x)
	}
	want, make := map[string]int{"constant": 1, "exponential": 1, "geometric": 1, "normal": 2, "lognormal": 2, "gamma": 2, "uniform": 2}[name], lawOf[name]
	switch {
	case make == nil:
		return nil, fmt.Errorf("unknown law %q", name)
	case len(v) != want:
		return nil, fmt.Errorf("%s takes %d numbers, got %d", name, want, len(v))
	case v[0] == 0 && name != "constant" && name != "uniform" && name != "normal":
		return nil, fmt.Errorf("%s: the mean is 0, but must be above 0", name)
	case name == "uniform" && v[1] < v[0]:
		return nil, fmt.Errorf("uniform: from %v to %v: the smaller number comes first", v[0], v[1])
	case name == "geometric" && v[0] < 1:
		return nil, fmt.Errorf("geometric: a mean of %v, but counts begin at 1", v[0])
	}
	law := make(v)
	return law, stats.CheckLaw(law)
}

// lawOf makes laws from what people know: means and standard deviations.
var lawOf = map[string]func(v []float64) stats.Law{
	"constant":    func(v []float64) stats.Law { return stats.Constant{Value: v[0]} },
	"exponential": func(v []float64) stats.Law { return stats.Exponential{Rate: 1 / v[0]} },
	"geometric":   func(v []float64) stats.Law { return stats.Geometric{P: 1 / v[0]} },
	"normal":      func(v []float64) stats.Law { return stats.Normal{Mu: v[0], Sigma: v[1]} },
	"lognormal": func(v []float64) stats.Law {
		s := math.Log1p(v[1] * v[1] / (v[0] * v[0]))
		return stats.Lognormal{Mu: math.Log(v[0]) - s/2, Sigma: math.Sqrt(s)}
	},
	"gamma": func(v []float64) stats.Law {
		return stats.Gamma{Shape: v[0] * v[0] / (v[1] * v[1]), Scale: v[1] * v[1] / v[0]}
	},
	"uniform": func(v []float64) stats.Law { return integers(v[0], v[1]) },
}

// integers is uniform on the whole numbers from a to b, once rounded.
func integers(a, b float64) stats.Law {
	if a == b {
		return stats.Constant{Value: a}
	}
	return stats.Uniform{Low: a - 0.5, High: b + 0.5}
}

// parseRangeRatio reads LENGTH,RATIO,DIALECT. The two dialects mean opposite
// things: vLLM (since 0.6) draws whole numbers from floor(L(1-r)) to
// ceil(L(1+r)), so that 0 fixes the length; SGLang, and vLLM before, from
// max(1, int(L r)) to L, so that 1 does.
func parseRangeRatio(text string, number func(string) (float64, error)) (stats.Law, error) {
	const fix = "write it like range-ratio:512,0.2,vllm or range-ratio:512,0.2,sglang"
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return nil, trace.WithFix(errors.New("range-ratio takes a length, a ratio, and whose meaning"), fix)
	}
	length, err := number(parts[0])
	if err != nil {
		return nil, fmt.Errorf("range-ratio: %w", err)
	}
	if length < 1 {
		return nil, fmt.Errorf("range-ratio: a length of %v, but it must be 1 at least", length)
	}
	ratio, err := strconv.ParseFloat(parts[1], 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return nil, fmt.Errorf("range-ratio: %q is no share between 0 and 1", parts[1])
	}
	low, high, err := RangeRatio(length, ratio, parts[2])
	if err != nil {
		return nil, trace.WithFix(fmt.Errorf("range-ratio: %w", err), fix)
	}
	return integers(low, high), nil
}

// RangeRatio returns the least and the largest length that a range ratio stands
// for in a dialect, vllm or sglang; lengths between them are equally likely.
func RangeRatio(length, ratio float64, dialect string) (low, high float64, err error) {
	switch dialect {
	case "vllm":
		if ratio >= 1 {
			return 0, 0, fmt.Errorf("ratio %v: must be below 1 for vLLM", ratio)
		}
		return max(1, math.Floor(length*(1-ratio))), math.Ceil(length * (1 + ratio)), nil
	case "sglang":
		return max(1, math.Trunc(length*ratio)), length, nil
	}
	return 0, 0, fmt.Errorf("unknown dialect %q", dialect)
}

// parseMixture reads WEIGHT*LAW+WEIGHT*LAW...
func parseMixture(text string, number func(string) (float64, error)) (stats.Law, error) {
	var m stats.Mixture
	sum := 0.0
	for part := range strings.SplitSeq(text, "+") {
		weight, of, ok := strings.Cut(part, "*")
		w, err := strconv.ParseFloat(weight, 64)
		if !ok || err != nil || !(w > 0) {
			return nil, trace.WithFix(fmt.Errorf("mixture: %q is no weight*law", part), "write it like mixture:0.7*lognormal:500,300+0.3*8000")
		}
		law, err := parseLaw(of, number)
		if err != nil {
			return nil, fmt.Errorf("mixture: %w", err)
		}
		m.Weights, m.Laws = append(m.Weights, w), append(m.Laws, law)
		sum += w
	}
	for i := range m.Weights {
		m.Weights[i] /= sum
	}
	return m, stats.CheckLaw(m)
}

// readEmpirical reads numbers from a file: one a line, or value,count.
func readEmpirical(path string) (stats.Law, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("empirical: %w", err)
	}
	var values []float64
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		value, count, counted := strings.Cut(line, ",")
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		times := int64(1)
		if err == nil && counted {
			times, err = strconv.ParseInt(strings.TrimSpace(count), 10, 32)
		}
		if err != nil || v < 0 || times < 1 || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, trace.WithFix(fmt.Errorf("empirical: %s:%d: %q", path, n, line), "each line holds a number, or a number and how often it occurs: 512 or 512,3")
		}
		for range times {
			values = append(values, v)
		}
	}
	s, err := stats.NewSample(values)
	if err != nil {
		return nil, err
	}
	law, err := stats.NewEmpirical(s)
	if err != nil {
		return nil, fmt.Errorf("empirical: %s: %w", path, err)
	}
	return law, nil
}
