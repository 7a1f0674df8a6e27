package stats

import (
	"math"
	"strings"
	"testing"
)

// The map to seconds is the inverse of the area under the rate.
func TestRatesUnfold(t *testing.T) {
	for name, c := range map[string]struct {
		rates Rates
		u     []float64
		want  []float64 // NaN: no more
	}{
		"constant":         {Rates{After: 4}, []float64{0, 1, 8}, []float64{0, 0.25, 2}},
		"a ramp from 0":    {Rates{Pieces: []RatePiece{{0, 10, 0, 20}}, After: 20}, []float64{0, 1, 25, 100, 120}, []float64{0, 1, 5, 10, 11}},
		"a ramp to 0":      {Rates{Pieces: []RatePiece{{0, 10, 20, 0}}}, []float64{0, 75, 99.99, 100}, []float64{0, 5, 9.9, math.NaN()}},
		"nothing between":  {Rates{Pieces: []RatePiece{{0, 1, 2, 2}, {1, 5, 0, 0}, {5, 6, 3, 3}}}, []float64{1, 2, 3.5, 5}, []float64{0.5, 5, 5.5, math.NaN()}},
		"a ramp, then end": {Rates{Pieces: []RatePiece{{0, 2, 1, 3}}}, []float64{1.25, 4}, []float64{(-1 + math.Sqrt(1+2*1.25)), math.NaN()}},
	} {
		at := c.rates.Unfold()
		for i, u := range c.u {
			got, ok := at(u)
			switch {
			case math.IsNaN(c.want[i]):
				if ok {
					t.Errorf("%s: event %v at %v, want none", name, u, got)
				}
			case !ok || math.Abs(got-c.want[i]) > 1e-9:
				t.Errorf("%s: event %v at %v (%v), want %v", name, u, got, ok, c.want[i])
			}
		}
	}
}

func TestReadRates(t *testing.T) {
	pieces, err := ReadRates("r.csv", strings.NewReader("from_s, to_s, rate_hz\n0,10,2\n10, 20, 0\n"))
	if err != nil || len(pieces) != 2 || pieces[0] != (RatePiece{0, 10, 2, 2}) || pieces[1].Mass() != 0 {
		t.Errorf("%v, %v", pieces, err)
	}
	for text, want := range map[string]string{
		"":                "r.csv: no pieces",
		"0,10,2\n11,20,2": "r.csv:2: 11 to 20 s at 2/s: pieces follow one another from 0",
		"0,10,-1":         "rates not below 0",
		"0,x,1":           `r.csv:1: "x" is no number; the columns are from_s,to_s,rate_hz`,
		"0,10,NaN":        "is no number",
		"0,10":            "wrong number of fields",
	} {
		if _, err := ReadRates("r.csv", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
