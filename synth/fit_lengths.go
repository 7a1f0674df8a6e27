package synth

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// maxPairs is how many distinct pairs of lengths a model holds; of more, a sample
// of as many rows.
const maxPairs = 20_000

// fitLengths collects lengths of requests, or of first turns. One below 0 is not
// known.
type fitLengths struct {
	n        int64 // rows that did not fail
	failed   int64
	noInput  int64                // rows of 0 tokens
	tooLong  int64                // rows with a length above stats.MaxPaired
	distinct map[model.Pair]int64 // by pair of N 0; nil when there are too many
	sample   []model.Pair
	rng      *rand.Rand
	input    stats.Tally
	output   stats.Tally
	both     *stats.Pairs
}

func (l *fitLengths) begin(seed, ordinal uint64) {
	l.distinct = map[model.Pair]int64{}
	l.rng = stats.Stream(seed, fitReservoir, ordinal)
	l.both = stats.NewPairs(0)
}

func (l *fitLengths) add(r fitRow) {
	switch {
	case r.input > 0:
		l.input.Add(r.input)
	case r.input == 0:
		l.noInput++
	}
	if r.failed {
		l.failed++
		return
	}
	if r.output > 0 {
		l.output.Add(r.output)
	}
	if r.input >= 0 && r.output >= 0 && l.both.Add(r.input, r.output) != nil {
		l.tooLong++
	}
	l.pair(model.Pair{Input: r.input, Output: r.output})
}

// pair keeps the pair, and a sample of all rows (algorithm R, Vitter 1985).
func (l *fitLengths) pair(p model.Pair) {
	l.n++
	if l.distinct != nil {
		l.distinct[p]++
		if len(l.distinct) > maxPairs {
			l.distinct = nil
		}
	}
	if len(l.sample) < maxPairs {
		l.sample = append(l.sample, p)
	} else if at := l.rng.Int64N(l.n); at < maxPairs {
		l.sample[at] = p
	}
}

// pairs returns the joint lengths in order; sampled says that they are a sample.
func (l *fitLengths) pairs() (pairs []model.Pair, sampled bool) {
	counts := l.distinct
	if counts == nil {
		counts, sampled = map[model.Pair]int64{}, true
		for _, p := range l.sample {
			counts[p]++
		}
	}
	for p := range maps.Keys(counts) {
		pairs = append(pairs, model.Pair{Input: p.Input, Output: p.Output, N: counts[p]})
	}
	slices.SortFunc(pairs, func(a, b model.Pair) int {
		return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.Output, b.Output))
	})
	return pairs, sampled
}

// lengthsResult describes the lengths of first turns.
func (s *fitStream) lengthsResult(f *fitting) model.Lengths {
	l := &s.firsts
	var m model.Lengths
	m.Pairs, m.Sampled = l.pairs()
	if l.failed > 0 {
		f.noteOn(s, "%d of %d rows failed or ended without a token; they are left out of the lengths of answers and of the pairs", l.failed, l.failed+l.n)
	}
	if len(m.Pairs) == 0 { // all failed
		f.noteOn(s, "no request was answered, so lengths of answers are not known")
		m.Pairs = []model.Pair{{Input: -1, Output: -1, N: l.failed}}
	}
	m.Input, m.Output = fitLength(&l.input), fitLength(&l.output)
	if l.noInput > 0 && m.Input != nil {
		m.Input.Notes = append(m.Input.Notes, fmt.Sprintf("left out, since they have 0 tokens: %s", trace.Plural(l.noInput, "row")))
	}
	for _, side := range []struct {
		name   string
		fitted *model.Fitted
	}{{"input", m.Input}, {"output", m.Output}} {
		if side.fitted == nil {
			f.noteOn(s, "%s lengths: not measurable: no row has one above 0", side.name)
		}
	}
	if m.Sampled {
		f.noteOn(s, "pairs of lengths are a sample of %d of %d rows", len(l.sample), l.n)
	}
	if l.tooLong > 0 {
		f.noteOn(s, "%d rows with a length above %d are left out of the dependence", l.tooLong, int64(stats.MaxPaired))
	}
	m.Copula = l.copula(m.Pairs)
	return m
}

// fitLength fits every family to lengths, under a cap where there is one; nil
// without any.
func fitLength(t *stats.Tally) *model.Fitted {
	if t.N() == 0 {
		return nil
	}
	m := &model.Fitted{Unit: "tokens", N: t.N(), Mean: number(t.Series().Mean()), CV: number(t.Series().CV()), Fits: []stats.Fit{}}
	s := t.Sample(1)
	if !t.Exact() {
		m.Notes = append(m.Notes, fmt.Sprintf("there are more than %d distinct lengths; of the fits each is off by at most %.2g", stats.TallyLimit, stats.TallyError))
	}
	fits, err := lengthLaws(s, m)
	if err != nil {
		m.Refuse = reasonOf(err)
		return m
	}
	m.Fits = fits
	if best, ok := fits.Best(); ok {
		m.Best = best.Law.Name()
		if c, ok := best.Law.(stats.Capped); ok {
			m.Best = c.Of.Name()
		}
	}
	m.Notes = append(m.Notes, spikeNotes(s)...)
	return m
}

// lengthLaws fits the families; those that refuse say why in the notes.
func lengthLaws(s stats.Sample, m *model.Fitted) (stats.Fits, error) {
	if c, ok := stats.DetectCap(s); ok {
		if fits, err := stats.FitAllCensored(s, c.Value); err == nil {
			m.Notes = append(m.Notes, fmt.Sprintf("%d values (%.2g %%) are at the end, from %.0f up: taken for a cap, of which the fits only know that values are at least as large", c.Count, 100*c.Share, c.Value))
			return fits, nil
		}
	}
	var fits stats.Fits
	var first error
	for _, family := range stats.Families() {
		if family == stats.FamilyHyperexponential {
			continue
		}
		fit, err := stats.FitLaw(family, s)
		if err == nil {
			fits = append(fits, fit)
		} else if first == nil {
			first = err
		}
	}
	if fits == nil {
		return nil, first
	}
	for _, of := range []func(stats.Sample) (stats.Fit, error){stats.FitMixture, stats.FitSpliced} {
		if fit, err := of(s); err == nil {
			fits = append(fits, fit)
		} else {
			m.Notes = append(m.Notes, err.Error())
		}
	}
	return fits.With(), nil
}

// namedSpikes is how many spikes a note names.
const namedSpikes = 5

func spikeNotes(s stats.Sample) []string {
	spikes := stats.Spikes(s)
	slices.SortStableFunc(spikes, func(a, b stats.Spike) int { return cmp.Compare(b.Count, a.Count) })
	var notes []string
	for i, k := range spikes {
		if i == namedSpikes {
			notes = append(notes, fmt.Sprintf("%d smaller spikes", len(spikes)-i))
			break
		}
		notes = append(notes, fmt.Sprintf("spike at %.0f: %d values (%.2g %%), where its neighbours have %.0f each", k.Value, k.Count, 100*k.Share, k.Usual))
	}
	return notes
}

// copulaBins is how many bins of equal count there are, and binRows how many rows
// each has at least.
const (
	copulaBins = 20
	binRows    = 50
)

// copula describes how output goes with input; nil where one of them is the same
// in all rows.
func (l *fitLengths) copula(pairs []model.Pair) *model.Copula {
	d, ok := l.both.Dependence()
	if !ok {
		return nil
	}
	m := &model.Copula{Rho: d.NormalScores, Bins: outputBins(pairs)}
	var medians []float64
	for _, b := range l.both.Bins(10) {
		medians = append(medians, b.MedianY)
	}
	m.Monotone = monotone(medians)
	if len(m.Bins) == 0 {
		m.Monotone = true // there is nothing else to draw from
	}
	return m
}

// monotone tells whether values rise, or fall, but for steps back of a tenth of
// their range, which noise makes.
func monotone(v []float64) bool {
	if len(v) < 2 {
		return true
	}
	slack := (slices.Max(v) - slices.Min(v)) / 10
	up, down := true, true
	for i := 1; i < len(v); i++ {
		up = up && v[i] >= v[i-1]-slack
		down = down && v[i] <= v[i-1]+slack
	}
	return up || down
}

// outputBins cuts the pairs, in order of input, into bins of equal count. Equal
// inputs stay together.
func outputBins(pairs []model.Pair) []model.Bin {
	var rows int64
	for _, p := range pairs {
		if p.Input >= 0 && p.Output >= 0 {
			rows += p.N
		}
	}
	k := min(copulaBins, rows/binRows)
	if k < 2 {
		return nil
	}
	var bins []model.Bin
	var seen int64
	var outputs stats.Tally
	from := int64(-1)
	for i, p := range pairs {
		if p.Input < 0 || p.Output < 0 {
			continue
		}
		if from < 0 {
			from = p.Input
		}
		outputs.AddN(p.Output, p.N)
		seen += p.N
		last := i == len(pairs)-1
		if !last && (pairs[i+1].Input == p.Input || seen < rows*int64(len(bins)+1)/k || outputs.N() < binRows || rows-seen < binRows) {
			continue
		}
		bins = append(bins, model.Bin{InputFrom: float64(from), InputTo: float64(p.Input), N: outputs.N(), Output: *empiricalOf(&outputs, 1)})
		outputs, from = stats.Tally{}, -1
	}
	return bins
}
