package stats_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"reprise/analysis/stats"
)

func ExampleFitAll() {
	r := rand.New(rand.NewPCG(1, 2))
	gaps := make([]float64, 5000)
	for i := range gaps {
		gaps[i] = stats.Gamma{Shape: 0.5, Scale: 2}.Rand(r)
	}
	sample, err := stats.NewSample(gaps)
	if err != nil {
		panic(err)
	}
	fits, err := stats.FitAll(sample)
	if err != nil {
		panic(err)
	}
	for _, fit := range fits {
		fmt.Printf("%-16s KS %.3f %s\n", fit.Law.Name(), fit.KS, fit.Grade)
	}
	best, _ := fits.Best()
	fmt.Printf("best: %s, shape %.2f +- %.2f\n", best.Law.Name(), best.Law.Params()[0].Value, best.StdErr[0])
	// Output:
	// exponential      KS 0.159 empirical only
	// gamma            KS 0.009 good
	// weibull          KS 0.027 good
	// lognormal        KS 0.098 empirical only
	// hyperexponential KS 0.052 usable
	// best: gamma, shape 0.51 +- 0.01
}

// Stamps on a 3 s grid with 3.4 arrivals per second show the rate, and no shape.
func ExampleFitTicks() {
	ticks, err := stats.NewTicks(3, map[int64]int64{0: 10851, 1: 1179})
	if err != nil {
		panic(err)
	}
	fit, err := stats.FitTicks(stats.FamilyGamma, ticks, stats.Triangular)
	if err != nil {
		panic(err)
	}
	mean, _ := fit.Law.Mean()
	fmt.Printf("mean %.3f s, identified %v\n%s\n", mean, fit.Identified, fit.Reason)
	// Output:
	// mean 0.294 s, identified false
	// the tick of 3 s is longer than the mean gap of 0.294015 s: single gaps do not show the shape, only the rate
}

func ExampleLawSpec() {
	var spec stats.LawSpec
	if err := json.Unmarshal([]byte(`{"family": "lognormal", "params": {"mu": 6, "sigma": 0.8}}`), &spec); err != nil {
		panic(err)
	}
	law, err := spec.Law()
	if err != nil {
		panic(err)
	}
	fmt.Printf("median %.0f, p99 %.0f tokens\n", law.Quantile(0.5), law.Quantile(0.99))
	_, err = stats.LawSpec{Family: "gamma", Params: map[string]float64{"shape": 1}}.Law()
	fmt.Println(err)
	// Output:
	// median 403, p99 2594 tokens
	// gamma law: params has no scale
}
