package stats

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Pairs are two integer quantities of the same things, such as the input and
// output lengths of requests, packed into 8 bytes a pair.
type Pairs struct {
	packed []uint64 // x in the high half
}

// MaxPaired is the largest value that Pairs hold.
const MaxPaired = math.MaxUint32

// NewPairs makes room for n pairs.
func NewPairs(n int64) *Pairs { return &Pairs{packed: make([]uint64, 0, n)} }

// Add counts a pair. A value below 0 or above MaxPaired is an error.
func (p *Pairs) Add(x, y int64) error {
	if x < 0 || y < 0 || x > MaxPaired || y > MaxPaired {
		return fmt.Errorf("pair (%d, %d): values must be from 0 to %d", x, y, int64(MaxPaired))
	}
	p.packed = append(p.packed, uint64(x)<<32|uint64(y))
	return nil
}

// N returns how many pairs were counted.
func (p *Pairs) N() int64 { return int64(len(p.packed)) }

// All returns the pairs, in no order that can be relied on.
func (p *Pairs) All() iter.Seq2[int64, int64] {
	return func(yield func(x, y int64) bool) {
		for _, v := range p.packed {
			if !yield(int64(v>>32), int64(uint32(v))) {
				return
			}
		}
	}
}

// A Dependence says how two quantities go together, by several measures that
// see different things: Pearson lines, Spearman and Kendall any monotone
// relation, the normal scores what a Gaussian copula needs.
type Dependence struct {
	N            int64
	Pearson      float64
	Spearman     float64 // Pearson of mid-ranks
	KendallTauB  float64 // corrected for ties
	CopulaRho    float64 // 2 sin(pi Spearman / 6): of the Gaussian copula with this Spearman
	NormalScores float64 // Pearson of the normal quantiles of midrank/(n+1)

	LogN       int64   // pairs with both values above 0
	PearsonLog float64 // Pearson of the logarithms of these
	LogOK      bool    // false if there are too few of them or one side is constant
}

// Dependence computes all measures. False if there are fewer than two pairs, or
// all values of one side are equal. It sorts p, and takes as much memory again
// as p holds.
func (p *Pairs) Dependence() (Dependence, bool) {
	slices.Sort(p.packed)
	x, y := p.margin(), newMargin()
	ys := make([]uint32, len(p.packed))
	for i, v := range p.packed {
		ys[i] = uint32(v)
	}
	discordant := inversions(ys, make([]uint32, len(ys)))
	y.fill(ys) // sorted now
	if len(x.values) < 2 || len(y.values) < 2 {
		return Dependence{}, false
	}
	d := Dependence{N: p.N()}
	d.KendallTauB = p.tauB(x, y, discordant)
	d.Pearson = p.pearson(x, y, func(m *margin, i int) float64 { return float64(m.values[i]) })
	d.Spearman = p.pearson(x, y, (*margin).midrank)
	d.NormalScores = p.pearson(x, y, (*margin).normalScore)
	d.CopulaRho = 2 * math.Sin(math.Pi*d.Spearman/6)
	d.PearsonLog, d.LogN, d.LogOK = p.pearsonLog()
	return d, true
}

// A margin is one side of the pairs: its distinct values in order, and how many
// pairs lie before each.
type margin struct {
	values []uint32
	before []uint32 // one longer than values
	last   int      // where find looks first
	scores []float64
}

func newMargin() *margin { return &margin{before: []uint32{0}} }

// margin returns the first side; p is sorted.
func (p *Pairs) margin() *margin {
	m := newMargin()
	for i, v := range p.packed {
		m.add(uint32(v>>32), uint32(i)+1)
	}
	return m
}

func (m *margin) fill(sorted []uint32) {
	for i, v := range sorted {
		m.add(v, uint32(i)+1)
	}
}

// add takes the next value, after which upto values have been seen.
func (m *margin) add(v, upto uint32) {
	if k := len(m.values); k == 0 || m.values[k-1] != v {
		m.values, m.before = append(m.values, v), append(m.before, 0)
	}
	m.before[len(m.values)] = upto
}

func (m *margin) find(v uint32) int {
	if m.values[m.last] != v {
		m.last, _ = slices.BinarySearch(m.values, v)
	}
	return m.last
}

// midrank returns the mean rank, from 1, of the i-th distinct value.
func (m *margin) midrank(i int) float64 {
	return (float64(m.before[i]) + float64(m.before[i+1]) + 1) / 2
}

func (m *margin) normalScore(i int) float64 {
	n := float64(m.before[len(m.values)])
	return math.Sqrt2 * math.Erfinv(2*m.midrank(i)/(n+1)-1)
}

// ties returns the number of pairs of pairs that are equal on this side.
func (m *margin) ties() float64 {
	var sum int64
	for i := range m.values {
		k := int64(m.before[i+1] - m.before[i])
		sum += k * (k - 1) / 2
	}
	return float64(sum)
}

// scored caches a score per distinct value where there are few.
const scored = 1 << 20

func (m *margin) score(of func(*margin, int) float64) func(v uint32) float64 {
	if len(m.values) > scored {
		return func(v uint32) float64 { return of(m, m.find(v)) }
	}
	m.scores = m.scores[:0]
	for i := range m.values {
		m.scores = append(m.scores, of(m, i))
	}
	return func(v uint32) float64 { return m.scores[m.find(v)] }
}

// meanScore returns the mean over all pairs.
func (m *margin) meanScore(of func(*margin, int) float64) float64 {
	var t total
	for i := range m.values {
		t.add(of(m, i) * float64(m.before[i+1]-m.before[i]))
	}
	return t.value() / float64(m.before[len(m.values)])
}

// pearson returns the correlation of the scores of both sides, centred first.
func (p *Pairs) pearson(x, y *margin, of func(*margin, int) float64) float64 {
	mx, my := x.meanScore(of), y.meanScore(of)
	fx, fy := x.score(of), y.score(of)
	var xx, yy, xy total
	for _, v := range p.packed {
		a, b := fx(uint32(v>>32))-mx, fy(uint32(v))-my
		xx.add(a * a)
		yy.add(b * b)
		xy.add(a * b)
	}
	return correlation(xy.value(), xx.value(), yy.value())
}

func correlation(xy, xx, yy float64) float64 {
	return min(1, max(-1, xy/(math.Sqrt(xx)*math.Sqrt(yy))))
}

func (p *Pairs) pearsonLog() (r float64, n int64, ok bool) {
	var sx, sy total
	for _, v := range p.packed {
		if x, y := v>>32, uint32(v); x > 0 && y > 0 {
			sx.add(math.Log(float64(x)))
			sy.add(math.Log(float64(y)))
			n++
		}
	}
	if n < 2 {
		return 0, n, false
	}
	mx, my := sx.value()/float64(n), sy.value()/float64(n)
	var xx, yy, xy total
	for _, v := range p.packed {
		if x, y := v>>32, uint32(v); x > 0 && y > 0 {
			a, b := math.Log(float64(x))-mx, math.Log(float64(y))-my
			xx.add(a * a)
			yy.add(b * b)
			xy.add(a * b)
		}
	}
	// A side that is constant leaves only the rounding of its mean.
	if floor := 1e-24 * float64(n); xx.value() <= floor || yy.value() <= floor {
		return 0, n, false
	}
	return correlation(xy.value(), xx.value(), yy.value()), n, true
}
