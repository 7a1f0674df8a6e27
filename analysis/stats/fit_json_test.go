package stats

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestFitsReadBack: fits of every kind are what they were after JSON.
func TestFitsReadBack(t *testing.T) {
	r := Stream(5)
	var x []float64
	gaps := map[int64]int64{}
	for range 2000 {
		v := Lognormal{5, 1}.Rand(r)
		x = append(x, min(v, 900))
		gaps[int64(v/50)]++
	}
	s := sampleOf(t, x)
	all, err := FitAll(s)
	if err != nil {
		t.Fatal(err)
	}
	capped, err := FitAllCensored(s, 900)
	if err != nil {
		t.Fatal(err)
	}
	ticks, err := NewTicks(0.05, gaps)
	if err != nil {
		t.Fatal(err)
	}
	ticked, err := FitAllTicks(ticks, Triangular)
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := FitMixture(s)
	if err != nil {
		t.Fatal(err)
	}
	below := s.Where(func(x float64) bool { return x < 900 })
	spliced, err := FitSpliced(below)
	if err != nil {
		t.Log(err)
	}
	fits := append(append(append(all, capped...), ticked...), mixed)
	if err == nil {
		fits = append(fits, spliced)
	}
	for _, f := range fits {
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var back Fit
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(f, back) {
			t.Errorf("%s law, %s:\n%+v\n%+v", f.Law.Name(), f.Likelihood, f, back)
		}
	}
	var f Fit
	for _, text := range []string{`{"law":{"family":"gamma","params":{"shape":-1,"scale":1}}}`, `{"law":{"family":"constant","params":{"value":1}},"kss":1}`, `[]`, `{}`} {
		if err := json.Unmarshal([]byte(text), &f); err == nil || !strings.HasPrefix(err.Error(), "fit: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWithComparesAll: the difference of BIC is to the best of all.
func TestWithComparesAll(t *testing.T) {
	fits := Fits{{BIC: 10}, {BIC: 12, DeltaBIC: 2}}.With(Fit{BIC: 7})
	for i, want := range []float64{3, 5, 0} {
		if fits[i].DeltaBIC != want {
			t.Errorf("fit %d: %v, want %v", i, fits[i].DeltaBIC, want)
		}
	}
}

// TestModalSpacing finds the grid that jitter hides.
func TestModalSpacing(t *testing.T) {
	for _, c := range []struct {
		name string
		gaps map[int64]int64
		mode float64
		ok   bool
	}{
		{"3 s with 3 ms of jitter", map[int64]int64{0: 900, 3000: 60, 2999: 12, 3001: 11, 6000: 8, 5998: 3}, 3000, true},
		{"no grid", map[int64]int64{3000: 30, 1234: 20, 777: 20}, 3000, false},
		{"too few", map[int64]int64{3000: 19, 0: 500}, 0, false},
		{"none", nil, 0, false},
	} {
		mode, ok := ModalSpacing(countedSample(c.gaps, 0))
		if ok != c.ok || math.Abs(mode-c.mode) > 0 {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, mode, ok, c.mode, c.ok)
		}
	}
}
