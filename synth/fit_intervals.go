package synth

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"reprise/analysis/stats"
	"reprise/synth/model"
)

// maxBootBlocks is how many blocks are resampled at most; beyond, neighbours are
// joined.
const maxBootBlocks = 2000

// bootSeconds is the length of a block in time.
const bootSeconds = 60

// A keyedValue is a value and what it depends on: a session, or a minute.
type keyedValue struct {
	key   int64
	value float64
}

// A keyedLength is a first turn.
type keyedLength struct {
	session, at   int64
	input, output int64
}

// intervals adds tests and intervals to the fits of a stream.
func (f *fitting) intervals(ctx context.Context, s *fitStream, m *model.Stream) error {
	if a := m.Arrivals; a != nil && len(a.Gap.Fits) > 0 {
		starts, _ := f.times(s, a.Of)
		if err := f.gapIntervals(ctx, starts, a.Gap, s.ordinal); err != nil {
			return err
		}
	}
	if m.Sessions != nil && m.Sessions.ThinkFit != nil && len(m.Sessions.ThinkFit.Fits) > 0 {
		of := &s.gaps
		if s.delays.tally.N() > 0 {
			of = &s.delays
		} else if s.thinks.tally.N() > 0 {
			of = &s.thinks
		}
		if err := f.thinkIntervals(ctx, of, m.Sessions.ThinkFit, s.ordinal); err != nil {
			return err
		}
	}
	for side, fitted := range []*model.Fitted{m.Lengths.Input, m.Lengths.Output} {
		if fitted != nil && len(fitted.Fits) > 0 {
			if err := f.lengthIntervals(ctx, s, m.Sessions != nil, side, fitted); err != nil {
				return err
			}
		}
	}
	return nil
}

// seedOf gives each of the fits of a stream its own draws.
func (f *fitting) seedOf(purpose, ordinal, part uint64) uint64 {
	return stats.Hash(f.o.Seed, purpose, ordinal, part)
}

// gapIntervals takes blocks of a minute.
func (f *fitting) gapIntervals(ctx context.Context, starts []int64, m *model.Fitted, ordinal uint64) error {
	values := make([]keyedValue, 0, len(starts)-1)
	for i := 1; i < len(starts); i++ {
		k := f.clock.index(starts[i]+f.clock.first) - f.clock.index(starts[i-1]+f.clock.first)
		values = append(values, keyedValue{starts[i] / (bootSeconds * 1e9), float64(k)})
	}
	return f.tickIntervals(ctx, values, fmt.Sprintf("blocks of %d s", bootSeconds), f.clock.tickS(), m, ordinal, 0)
}

// thinkIntervals takes sessions as blocks.
func (f *fitting) thinkIntervals(ctx context.Context, t *fitTimes, m *model.Fitted, ordinal uint64) error {
	values := make([]keyedValue, len(t.keyed))
	for i, v := range t.keyed {
		values[i] = keyedValue{v.key, v.value / float64(t.tick)}
	}
	return f.tickIntervals(ctx, values, "sessions", float64(t.tick)/1e9, m, ordinal, 1)
}

// tickIntervals tests and resamples times in ticks.
func (f *fitting) tickIntervals(ctx context.Context, values []keyedValue, unit string, tick float64, m *model.Fitted, ordinal, part uint64) error {
	blocks, how, err := bootBlocks(values, unit)
	if err != nil {
		return err
	}
	all, err := stats.SampledTicks(tick, stats.Merge(blocks, ones(len(blocks))))
	if err != nil {
		return err
	}
	refit := map[stats.Family]func(stats.Sample) (stats.Law, error){}
	for _, fit := range m.Fits {
		family := stats.Family(fit.Law.Name())
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !fit.Identified {
			continue
		}
		if p, err := stats.BootstrapTicksP(family, all, stats.Triangular, f.seedOf(fitTest, ordinal, part)); err == nil {
			setP(m, family, p)
		}
		refit[family] = func(s stats.Sample) (stats.Law, error) {
			t, err := stats.SampledTicks(tick, s)
			if err != nil {
				return nil, err
			}
			fit, err := stats.FitTicks(family, t, stats.Triangular)
			return fit.Law, err
		}
	}
	return f.resample(ctx, blocks, how, refit, m, f.seedOf(fitBlocks, ordinal, part))
}

// lengthIntervals tests and resamples input (side 0) or output lengths.
func (f *fitting) lengthIntervals(ctx context.Context, s *fitStream, sessions bool, side int, m *model.Fitted) error {
	var values []keyedValue
	unit := "sessions"
	for _, k := range s.keyed {
		v := keyedValue{k.session, float64(k.input)}
		if !sessions {
			if unit = "rows"; k.at >= 0 {
				v.key, unit = k.at/(bootSeconds*1e9), fmt.Sprintf("blocks of %d s", bootSeconds)
			}
		}
		if side == 1 {
			v.value = float64(k.output)
		}
		if v.value > 0 {
			values = append(values, v)
		}
	}
	blocks, how, err := bootBlocks(values, unit)
	if err != nil {
		return err
	}
	all := stats.Merge(blocks, ones(len(blocks)))
	refit := map[stats.Family]func(stats.Sample) (stats.Law, error){}
	for _, fit := range m.Fits {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		family := stats.Family(fit.Law.Name())
		if c, ok := fit.Law.(stats.Capped); ok {
			family = stats.Family(c.Of.Name())
			refit[family] = func(s stats.Sample) (stats.Law, error) {
				fit, err := stats.FitCensored(family, s, c.Cap)
				if err != nil {
					return nil, err
				}
				return fit.Law.(stats.Capped).Of, nil
			}
			continue
		}
		switch family {
		case "mixture":
			refit[family] = lawOfFit(stats.FitMixture)
			continue
		case "spliced":
			continue // its threshold moves from draw to draw
		}
		if p, err := stats.BootstrapP(family, all, f.seedOf(fitTest, s.ordinal, 2+uint64(side))); err == nil {
			setP(m, family, p)
		}
		refit[family] = lawOfFit(func(s stats.Sample) (stats.Fit, error) { return stats.FitLaw(family, s) })
	}
	return f.resample(ctx, blocks, how, refit, m, f.seedOf(fitBlocks, s.ordinal, 2+uint64(side)))
}

func lawOfFit(fit func(stats.Sample) (stats.Fit, error)) func(stats.Sample) (stats.Law, error) {
	return func(s stats.Sample) (stats.Law, error) {
		f, err := fit(s)
		return f.Law, err
	}
}

func setP(m *model.Fitted, family stats.Family, p stats.BootstrapTest) {
	if m.BootstrapP == nil {
		m.BootstrapP = map[string]float64{}
	}
	m.BootstrapP[string(family)] = p.P
}

// bootBlocks collects the values of equal key, and of neighbours where there are
// too many keys.
func bootBlocks(values []keyedValue, unit string) (blocks []stats.Sample, how string, err error) {
	slices.SortStableFunc(values, func(a, b keyedValue) int { return cmp.Compare(a.key, b.key) })
	keys := 0
	for i := range values {
		if i == 0 || values[i].key != values[i-1].key {
			keys++
		}
	}
	each := max(1, (keys+maxBootBlocks-1)/maxBootBlocks)
	var block []float64
	seen := 0
	for i, v := range values {
		block = append(block, v.value)
		if i < len(values)-1 && values[i+1].key == v.key {
			continue
		}
		if seen++; seen%each != 0 && i < len(values)-1 {
			continue
		}
		s, err := stats.NewSample(block)
		if err != nil {
			return nil, "", err
		}
		blocks, block = append(blocks, s), block[:0]
	}
	if each > 1 {
		unit = fmt.Sprintf("runs of %d %s", each, unit)
	}
	return blocks, unit, nil
}

func ones(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// resample draws blocks, refits each family, and keeps the middle 95 % of each
// parameter.
func (f *fitting) resample(ctx context.Context, blocks []stats.Sample, how string, refit map[stats.Family]func(stats.Sample) (stats.Law, error), m *model.Fitted, seed uint64) error {
	if len(blocks) < 2 {
		m.Notes = append(m.Notes, fmt.Sprintf("no intervals: there are %d %s to resample", len(blocks), how))
		return nil
	}
	drawn := map[string][]float64{}
	_, err := stats.BootstrapSamples(blocks, f.o.Bootstrap, 0.95, seed, func(s stats.Sample) (float64, bool) {
		for family, of := range refit {
			if ctx.Err() != nil {
				return 0, false
			}
			law, err := of(s)
			if err != nil {
				continue
			}
			for _, p := range law.Params() {
				name := string(family) + "." + p.Name
				drawn[name] = append(drawn[name], p.Value)
			}
		}
		return 0, true
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		m.Notes = append(m.Notes, "no intervals: "+err.Error())
		return nil
	}
	for name, values := range drawn {
		if len(values) < 2 {
			continue
		}
		slices.Sort(values)
		lo, _ := stats.Quantile7(values, 0.025)
		hi, _ := stats.Quantile7(values, 0.975)
		if m.Intervals == nil {
			m.Intervals = map[string][2]float64{}
		}
		m.Intervals[name] = [2]float64{lo, hi}
	}
	m.IntervalsHow = fmt.Sprintf("95 %%, percentile, %d draws of %d %s", f.o.Bootstrap, len(blocks), how)
	return nil
}
