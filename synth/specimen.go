package synth

import (
	"context"
	"math"
	"slices"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// leastSpecimen and mostSpecimen bound the requests of a specimen.
const (
	leastSpecimen = 100_000
	mostSpecimen  = 2_000_000
)

// SpecimenMeta is the metadata of what Specimen makes of w.
func SpecimenMeta(w *model.Workload) trace.Meta {
	if timeless(w) {
		return trace.Meta{Clock: trace.ClockNone}
	}
	return trace.Meta{Clock: trace.ClockTrace}
}

func timeless(w *model.Workload) bool {
	return slices.ContainsFunc(w.Streams, func(s model.Stream) bool { return s.Arrivals == nil })
}

// Specimen generates traffic that can be held against the trace that w was fitted
// to: as long as its rate over time, or several times as long where that is few
// requests, with times in whole ticks of the trace. A model without arrivals gives
// rows without times. Equal models give equal rows.
func Specimen(ctx context.Context, w *model.Workload, emit func(*trace.Batch) error) error {
	g := Generation{Requests: mostSpecimen, Warm: true}
	clockless := timeless(w)
	if clockless {
		w = placedAnywhere(w)
		g.Requests = min(mostSpecimen, max(leastSpecimen, w.Requests))
	} else {
		g.Duration = specimenLength(w)
	}
	tick := specimenTick(w)
	_, err := g.Run(ctx, w, func(b *trace.Batch) error {
		for i := range b.Len() {
			if clockless {
				b.ArrivalNS.Null[i], b.ArrivalNS.Values[i] = true, 0
			} else {
				b.ArrivalNS.Values[i] -= b.ArrivalNS.Values[i] % tick
			}
		}
		return emit(b)
	})
	return err
}

// specimenLength is whole rounds of the rate over time.
func specimenLength(w *model.Workload) time.Duration {
	length := 0.0
	for i := range w.Streams {
		c := newProfileClock(w.Streams[i].Arrivals.Profile)
		length = max(length, c.length())
	}
	length *= math.Ceil(leastSpecimen / float64(min(leastSpecimen, max(1, w.Requests))))
	return time.Duration(min(length*1e9, model.MaxTime/2))
}

// specimenTick is the tick of the trace, or 1.
func specimenTick(w *model.Workload) int64 {
	for i := range w.Streams {
		if a := w.Streams[i].Arrivals; a != nil && a.TickS != nil && *a.TickS >= 1e-9 {
			return int64(math.Round(min(*a.TickS, 1e9) * 1e9))
		}
	}
	return 1
}

// placedAnywhere gives the streams of w arrivals, so that the rest can be drawn.
func placedAnywhere(w *model.Workload) *model.Workload {
	placed := *w
	placed.Streams = slices.Clone(w.Streams)
	for i := range placed.Streams {
		rate := max(1, float64(placed.Streams[i].Requests))
		placed.Streams[i].Arrivals = &model.Arrivals{Of: "request", RateHz: rate, Profile: []model.Rate{{ToS: 1, RateHz: rate}}, Gaps: new(stats.SpecOf(stats.Exponential{Rate: 1}))}
	}
	return &placed
}
