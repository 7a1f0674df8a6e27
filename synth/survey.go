package synth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"reprise/analysis/stats"
	"reprise/trace"
)

// A survey is what must be known of the whole selection before its first copy
// is made. Its memory is bounded but for the sessions and, where they are
// inferred, the distinct blocks.
type survey struct {
	meta  trace.Meta
	units unitCounts

	rows, literal  int64
	maxID          int64
	maxBlock       uint64
	timed, clients bool
	first, last    int64 // arrivals of the selection, since From
	roots          roots
	models         map[string]int64 // rows by model
	dropped        map[int64]struct{}
	picked         idSet
	input, output  int64 // tokens, of rows that know them

	clock     fitClock // of the arrivals
	perSecond *stats.Counter
	perMinute *stats.Counter
	head      []int64                 // counts per second of the first shortSpan
	starts    map[uint64]clientStarts // by client, for GrowRate
	tail      tail
	edge      edges
	bytes     int64 // of blocks and text
}

// clientStarts are session starts of one client.
type clientStarts struct{ first, last int64 }

// shortSpan is the span below which the jitter is less than DefaultJitter.
const shortSpan = 20 * time.Minute

// look surveys the selection.
func (s *Scaling) look(ctx context.Context, open Open) (*survey, error) {
	v := &survey{models: map[string]int64{}, dropped: map[int64]struct{}{}, perSecond: stats.NewCounter(int64(time.Second)), perMinute: stats.NewCounter(int64(DefaultJitter))}
	v.tail.width = int64(s.Jitter.Or(DefaultJitter))
	v.edge.width = v.tail.width
	if s.Grow == GrowRate {
		v.starts = map[uint64]clientStarts{}
	}
	r, err := open()
	if err != nil {
		return nil, err
	}
	total := r.NumRows()
	v.meta = r.Meta()
	r.Close()
	if err := s.clocked(v.meta.Clock); err != nil {
		return nil, err
	}
	sel := newSelector(s)
	err = sel.each(ctx, open, func(b *trace.Batch, rows []picked) error {
		for _, p := range rows {
			if err := v.row(s, b, p); err != nil {
				return err
			}
		}
		if v.meta.Clock == trace.ClockTrace && s.Grow != GrowRate {
			v.tail.keep(b, rows)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.units = sel.counts
	if total == 0 {
		return nil, errors.New("the trace has no rows")
	}
	if v.rows == 0 {
		return nil, trace.WithFix(fmt.Errorf("no row is selected"), "widen --from and --to, or raise --max-input-tokens")
	}
	v.clock.settle(v.meta.TickNS.Or(0))
	return v, s.checkModels(v)
}

// checkModels holds the mix against the models of the trace.
func (s *Scaling) checkModels(v *survey) error {
	for _, model := range slices.Sorted(maps.Keys(s.Mix)) {
		if v.models[model] == 0 && s.Mix[model] > 0 {
			return trace.WithFix(fmt.Errorf("--mix: no row has model %q", model), v.modelsText())
		}
	}
	return nil
}

func (v *survey) row(s *Scaling, b *trace.Batch, p picked) error {
	i := int(p.row)
	id := b.ID.Values[i]
	literal := !b.Prompt.Null[i] || !b.Messages.Null[i] || !b.Body.Null[i]
	input, hasInput := b.InputTokens.Get(i)
	if s.MaxInput > 0 && hasInput && input > s.MaxInput {
		v.dropped[id] = struct{}{}
		return nil
	}
	if literal {
		v.literal++
		if orOne(s.InputScale) != 1 {
			return trace.WithFix(fmt.Errorf("--input-scale: id %d has literal content, whose length cannot be scaled", id), "scale a trace of lengths and block ids")
		}
	}
	v.rows++
	v.picked.add(id)
	v.maxID = max(v.maxID, id)
	v.bytes += b.HeapBytes(i)
	if v.starts == nil && p.at <= v.edge.width {
		v.edge.see(id, p.at)
	}
	if hasInput {
		v.input += input
	}
	output, _ := b.OutputTokens.Get(i)
	v.output += output
	model, _ := b.Model.Get(i)
	v.models[model]++
	v.clients = v.clients || !b.ClientID.Null[i]
	if ids, _ := b.Blocks(i); len(ids) > 0 {
		for _, id := range ids {
			v.maxBlock = max(v.maxBlock, id)
		}
		if p.first {
			v.roots.add(ids)
		}
	}
	if p.timed && v.meta.Clock == trace.ClockTrace {
		v.arrival(p)
	}
	return nil
}

func (v *survey) arrival(p picked) {
	if !v.timed {
		v.first = p.at
	}
	v.timed, v.last = true, p.at
	v.clock.add(p.at)
	v.perSecond.Add(p.at)
	v.perMinute.Add(p.at)
	if k := p.at / int64(time.Second); k < int64(shortSpan/time.Second) {
		for int64(len(v.head)) <= k {
			v.head = append(v.head, 0)
		}
		v.head[k]++
	}
	if v.starts != nil && p.first {
		c, seen := v.starts[p.client]
		if !seen {
			c.first = p.at
		}
		c.last = p.at
		v.starts[p.client] = c
	}
}

// tick returns the effective tick of the arrivals. Times on a grid are taken for
// rounded ones where many rows share them; else they may be regular.
func (v *survey) tick() int64 {
	tick := max(1, v.meta.TickNS.Or(1))
	if c := &v.clock; c.n > 0 && 20*c.ties > c.n {
		tick = max(tick, c.tick)
	}
	return tick
}

// span is the period after which copies wrap: the arrivals and one mean gap, so
// that the end and the beginning do not touch.
func (v *survey) span() int64 {
	if v.rows < 2 || v.last == 0 {
		return 0
	}
	return v.last + max(1, v.last/(v.rows-1))
}

// burst returns how much the rate varies over seconds and over windows of the
// jitter, c(1 s) and c(J); false where the trace is too short to tell.
func (v *survey) burst(jitter time.Duration) (second, wide float64, ok bool) {
	counts := v.perSecond.Counts()
	second, ok = counts.RateCV()
	if !ok || jitter < time.Second {
		return 0, 0, false
	}
	minute := v.perMinute.Counts()
	if jitter != DefaultJitter {
		n := int(jitter / time.Second)
		var sums []int64
		for from := 0; from+n <= len(v.head); from += n {
			var sum int64
			for _, c := range v.head[from : from+n] {
				sum += c
			}
			sums = append(sums, sum)
		}
		var err error
		if minute, err = stats.CountsOf(sums); err != nil {
			return 0, 0, false
		}
	}
	wide, ok = minute.RateCV()
	return second, wide, ok && !math.IsNaN(wide)
}

// An idSet is a set of row ids, dense or not.
type idSet struct{ words map[int64]uint64 }

func (s *idSet) add(id int64) {
	if s.words == nil {
		s.words = map[int64]uint64{}
	}
	s.words[id>>6] |= 1 << (id & 63)
}

func (s *idSet) has(id int64) bool { return s.words[id>>6]&(1<<(id&63)) != 0 }

// modelsText says which models there are to name.
func (v *survey) modelsText() string {
	names := slices.Sorted(maps.Keys(v.models))
	if len(names) == 0 || len(names) == 1 && names[0] == "" {
		return "the trace names no models, so their shares cannot be changed"
	}
	return fmt.Sprintf("the trace has %v", names)
}
