package stats

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// A RatePiece is a span of time in which a rate goes evenly from one value to
// another; the two are equal where it is constant.
type RatePiece struct {
	FromS, ToS float64 // s
	From, To   float64 // events per second at its ends
}

// Mass is how many events the piece has on average: the area under its rate.
func (p RatePiece) Mass() float64 { return (p.ToS - p.FromS) * (p.From + p.To) / 2 }

// at is the time by which the piece has had mass events on average, s. It solves
// From·x + slope·x²/2 = mass in the form that does not cancel.
func (p RatePiece) at(mass float64) float64 {
	if mass <= 0 {
		return p.FromS
	}
	slope := (p.To - p.From) / (p.ToS - p.FromS)
	return min(p.ToS, p.FromS+2*mass/(p.From+math.Sqrt(max(0, p.From*p.From+2*slope*mass))))
}

// Rates is a rate over time, from 0 s on: pieces that follow one another, and
// what it is after the last of them.
type Rates struct {
	Pieces []RatePiece
	After  float64 // events per second; 0 = none
}

// Unfold returns a function that maps operational time, which has one event per
// unit on average, to seconds: the inverse of the mean number of events until
// then. Its arguments must not decrease. ok is false once there are no more.
// A renewal process of mean 1 becomes one with that rate; a Poisson process the
// inhomogeneous one exactly (Çinlar, Introduction to Stochastic Processes, 1975,
// section 4.7).
func (r *Rates) Unfold() func(u float64) (s float64, ok bool) {
	i, before, end := 0, 0.0, 0.0
	return func(u float64) (float64, bool) {
		for ; i < len(r.Pieces); i++ {
			p := r.Pieces[i]
			if m := p.Mass(); u-before < m {
				return p.at(u - before), true
			} else {
				before, end = before+m, p.ToS
			}
		}
		if r.After <= 0 {
			return 0, false
		}
		return end + (u-before)/r.After, true
	}
}

// ReadRates reads a rate over time: CSV with the columns from_s, to_s and rate_hz,
// and a header or none. Pieces follow one another from 0. Errors name the line.
func ReadRates(name string, in io.Reader) ([]RatePiece, error) {
	r := csv.NewReader(in)
	r.FieldsPerRecord = 3
	r.TrimLeadingSpace = true
	var pieces []RatePiece
	end := 0.0
	for line := 1; ; line++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if line == 1 && record[0] == "from_s" {
			continue
		}
		var v [3]float64
		for i, text := range record {
			if v[i], err = strconv.ParseFloat(text, 64); err != nil || math.IsNaN(v[i]) || math.IsInf(v[i], 0) {
				return nil, fmt.Errorf("%s:%d: %q is no number; the columns are from_s,to_s,rate_hz", name, line, text)
			}
		}
		if v[0] != end || v[1] <= v[0] || v[2] < 0 {
			return nil, fmt.Errorf("%s:%d: %v to %v s at %v/s: pieces follow one another from 0, with rates not below 0", name, line, v[0], v[1], v[2])
		}
		end = v[1]
		pieces = append(pieces, RatePiece{FromS: v[0], ToS: v[1], From: v[2], To: v[2]})
	}
	if len(pieces) == 0 {
		return nil, fmt.Errorf("%s: no pieces", name)
	}
	return pieces, nil
}
