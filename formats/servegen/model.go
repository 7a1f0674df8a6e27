package servegen

import (
	"context"
	"fmt"
	"math"

	"reprise/analysis/stats"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/synth/model"
	"reprise/trace"
)

// pairs is how many pairs of lengths are drawn for each client of a model.
const pairs = 2000

// Workload returns the data as a workload model: a stream per client, with its rate
// over time, the law of gaps that most of its requests have, the CV beside it, and
// pairs of lengths drawn by the seed. reject gets lines that are no windows.
func Workload(ctx context.Context, src []*source.Source, seed uint64, version string, reject func(*trace.RowError) error) (*model.Workload, error) {
	s := rows.New(func(*trace.Batch) error { return nil }, reject)
	clients, err := read(ctx, s, src)
	if err != nil {
		return nil, err
	}
	w := &model.Workload{Kind: model.Kind, Schema: model.Schema, Provenance: model.Provenance{Version: version, Seed: seed}}
	step := trace.Step{Command: "trace import", Version: version, Seed: &seed, Flags: map[string]string{"format": "servegen"}}
	for _, f := range src {
		in, err := f.Input()
		if err != nil {
			return nil, err
		}
		step.Inputs = append(step.Inputs, in)
	}
	w.Provenance.History = []trace.Step{step}
	span, idle, ratios := 0.0, 0, false
	for n, c := range clients {
		stream, ok := c.stream(n, seed)
		if !ok {
			idle++
			continue
		}
		ratios = ratios || len(c.lengths["reason_ratio"]) > 0
		w.Streams = append(w.Streams, stream)
		w.Requests += stream.Requests
		span = max(span, c.windows[len(c.windows)-1].to)
	}
	w.SpanS = &span
	w.Provenance.Notes = []string{
		fmt.Sprintf("of ServeGen's data, %d clients: rates, laws of gaps and histograms of lengths, no requests; requests counts what the rates make", len(clients)),
		"lengths are pairs drawn from the histograms of each window: input and output are independent within a window",
		"gaps are the law that most requests of a client have, its shape weighted by requests; residual has the recorded CV, which that law need not have",
	}
	if idle > 0 {
		w.Provenance.Notes = append(w.Provenance.Notes, fmt.Sprintf("%d clients without traffic are left out", idle))
	}
	if ratios {
		w.Provenance.Notes = append(w.Provenance.Notes, "shares of reasoning tokens have no place in a model; trace import -o draws them")
	}
	return w, w.Check()
}

// stream returns a client as a stream; false if it has no traffic.
func (c *client) stream(order int, seed uint64) (model.Stream, bool) {
	a := &model.Arrivals{Of: "request"}
	byLaw, shape := map[string]float64{}, map[string]float64{}
	var mass, cv, implied, off float64
	end := 0.0
	for i := range c.windows {
		w := &c.windows[i]
		for _, piece := range []model.Rate{{FromS: end, ToS: w.from}, {FromS: w.from, ToS: w.to, RateHz: w.rate}} {
			a.Profile = extended(a.Profile, piece)
		}
		end = w.to
		m := w.mass()
		if m == 0 {
			continue
		}
		mass += m
		cv += m * w.cv
		implied += m * w.impliedCV()
		byLaw[w.law] += m
		shape[w.law] += m * w.shape
		if r := w.impliedCV() / w.cv; !(r > 0.9 && r < 1.1) {
			off += m
		}
	}
	if mass == 0 {
		return model.Stream{}, false
	}
	best := ""
	for _, law := range []string{"gamma", "weibull", "exponential", ""} {
		if byLaw[law] > byLaw[best] || best == "" && byLaw[law] > 0 {
			best = law
		}
	}
	w := window{law: best, shape: shape[best] / byLaw[best]}
	gaps := stats.SpecOf(w.gaps())
	cv /= mass
	implied /= mass
	a.N, a.RateHz, a.Gaps = int64(math.Round(mass)), mass/end, &gaps
	a.GapsWhy = fmt.Sprintf("%s in the windows of %.0f %% of the requests, mean shape %.4g", w.gaps().Name(), 100*byLaw[best]/mass, w.shape)
	a.Rest = &model.Fitted{Unit: "mean gaps", N: a.N, CV: &cv, Fits: []stats.Fit{}, Notes: []string{fmt.Sprintf("recorded CV %.4g, CV of the recorded laws %.4g, both weighted by requests; they differ by more than 10 %% in the windows of %.0f %% of the requests", cv, implied, 100*off/mass)}}
	name := c.name
	if c.model != "" {
		name = c.model + "/" + c.name
	}
	s := model.Stream{Name: name, Client: name, Model: c.model, Requests: a.N, Arrivals: a, Lengths: model.Lengths{Of: "request", Sampled: true}}
	s.Lengths.Pairs = c.pairs(order, seed, mass)
	return s, true
}

// extended appends a piece, or makes the last one longer if the rate is the same.
func extended(profile []model.Rate, piece model.Rate) []model.Rate {
	if piece.ToS <= piece.FromS {
		return profile
	}
	if n := len(profile); n > 0 && profile[n-1].RateHz == piece.RateHz {
		profile[n-1].ToS = piece.ToS
		return profile
	}
	return append(profile, piece)
}

// pairs draws pairs of lengths, spread over the windows by their requests.
func (c *client) pairs(order int, seed uint64, mass float64) []model.Pair {
	f := c.start(order, seed, 0)
	count := map[model.Pair]int64{}
	var kinds []model.Pair // in order of their first draw
	done, due := 0, 0.0
	for i := range c.windows {
		w := &c.windows[i]
		due += pairs * w.mass() / mass
		for f.next = w.from; float64(done) < due && done < pairs; done++ {
			p := model.Pair{Input: -1, Output: -1}
			if in, ok := f.prompt(); ok {
				p.Input = in
			}
			if out, ok := f.length("output_tokens"); ok {
				p.Output = int64(math.Round(out))
			}
			if count[p]++; count[p] == 1 {
				kinds = append(kinds, p)
			}
		}
	}
	for i := range kinds {
		kinds[i].N = count[kinds[i]]
	}
	return kinds
}
