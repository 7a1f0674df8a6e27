package synth

import (
	"math"
	"sort"

	"reprise/analysis/stats"
	"reprise/synth/model"
)

// A randStream draws numbers of the open interval (0, 1).
type randStream struct{ source stats.Source }

func (r *randStream) reset(seed uint64, keys ...uint64) { r.source.Reset(seed, keys...) }

func (r *randStream) uniform() float64 {
	return (float64(r.source.Uint64()>>12) + 0.5) / (1 << 52)
}

// A profileClock turns operational time, in which arrivals come at rate 1, into
// time by the inverse of the cumulated rate. The profile repeats after its end,
// and before its beginning.
type profileClock struct {
	rates []model.Rate
	mass  []float64 // cumulated at the end of each piece
}

func newProfileClock(rates []model.Rate) profileClock {
	c := profileClock{rates: rates}
	sum := 0.0
	for _, r := range rates {
		sum += (r.ToS - r.FromS) * r.RateHz
		c.mass = append(c.mass, sum)
	}
	return c
}

func (c *profileClock) total() float64  { return c.mass[len(c.mass)-1] }
func (c *profileClock) length() float64 { return c.rates[len(c.rates)-1].ToS }

// at returns the time at which the cumulated rate is mass.
func (c *profileClock) at(mass float64) float64 {
	rounds := math.Floor(mass / c.total())
	mass -= rounds * c.total()
	i := sort.SearchFloat64s(c.mass, mass)
	if i == len(c.mass) {
		i--
	}
	before := 0.0
	if i > 0 {
		before = c.mass[i-1]
	}
	r := c.rates[i]
	at := r.FromS
	if r.RateHz > 0 {
		at += (mass - before) / r.RateHz
	}
	return rounds*c.length() + min(at, r.ToS)
}

// A lengthLaw draws an input and an output length. One below 0 is not known.
type lengthLaw struct {
	pairs         []model.Pair
	cumulated     []int64
	input, output stats.Law
	rho           float64
	bins          []binLaw
}

type binLaw struct {
	to     float64
	output stats.Law
}

func newLengthLaw(l *model.Lengths) (lengthLaw, error) {
	var d lengthLaw
	if l.InputLaw == nil || l.OutputLaw == nil {
		d.pairs = l.Pairs
		sum := int64(0)
		for _, p := range l.Pairs {
			sum += p.N
			d.cumulated = append(d.cumulated, sum)
		}
		return d, nil
	}
	var err error
	if d.input, err = l.InputLaw.Law(); err != nil {
		return d, err
	}
	if d.output, err = l.OutputLaw.Law(); err != nil || l.Copula == nil {
		return d, err
	}
	if d.rho = l.Copula.Rho; l.Copula.Monotone {
		return d, nil
	}
	for _, b := range l.Copula.Bins {
		law, err := b.Output.Law()
		if err != nil {
			return d, err
		}
		d.bins = append(d.bins, binLaw{b.InputTo, law})
	}
	return d, nil
}

// draw takes two numbers of r, whatever the law.
func (d *lengthLaw) draw(r *randStream) (input, output int64) {
	u, v := r.uniform(), r.uniform()
	if d.input == nil {
		at := int64(u * float64(d.cumulated[len(d.cumulated)-1]))
		p := d.pairs[sort.Search(len(d.cumulated), func(i int) bool { return d.cumulated[i] > at })]
		return p.Input, p.Output
	}
	in := d.input.Quantile(u)
	law := d.output
	for _, b := range d.bins {
		law = b.output
		if in <= b.to {
			break
		}
	}
	if d.rho != 0 && len(d.bins) == 0 {
		v = normal(d.rho*score(u) + math.Sqrt(1-d.rho*d.rho)*score(v))
	}
	return whole(in), whole(law.Quantile(v))
}

// whole makes a length of a drawn number: at least one token.
func whole(x float64) int64 { return max(1, int64(math.Round(min(x, model.MaxTokens)))) }

// score is the inverse of normal, the CDF of the normal law.
func score(u float64) float64  { return math.Sqrt2 * math.Erfinv(2*u-1) }
func normal(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }
