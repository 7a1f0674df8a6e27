package cluster

import (
	"regexp"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/trace/results"
)

// ofRows is a warning that counts rows of a shard; that of the whole run counts all.
var ofRows = regexp.MustCompile(`^[0-9]+ of [0-9]+ requests `)

// describe takes what the endpoint said from the workers' runs.
func (a *assembly) describe() error {
	var first *results.Run
	for i := range a.parts {
		for _, o := range a.parts[i].runs {
			run := &o.Run
			if first == nil {
				first = run
				a.run.HTTP, a.run.Host = run.HTTP, run.Host
				if p := run.Probe; p != nil {
					probe := *p
					probe.Requests = 0
					a.run.Probe = &probe
				}
			}
			if run.Planned.UntilNS != nil {
				a.run.Planned.UntilNS = run.Planned.UntilNS
			}
			if a.run.Probe != nil && run.Probe != nil {
				a.run.Probe.Requests += run.Probe.Requests
			}
			for from, to := range run.Models {
				if a.run.Models == nil {
					a.run.Models = map[string]string{}
				}
				a.run.Models[from] = to
			}
			for _, w := range run.Warnings {
				if !ofRows.MatchString(w) && !slices.Contains(a.run.Warnings, w) {
					a.run.Warnings = append(a.run.Warnings, w)
				}
			}
		}
	}
	if first == nil {
		return errNothing
	}
	return nil
}

// conclude says how the whole run ended.
func (a *assembly) conclude() {
	e := &a.ended
	first := true
	for i := range a.parts {
		for n, o := range a.parts[i].runs {
			if o.Run.Ended != nil {
				a.add(o.Run.Ended, first, n == 0)
				first = false
			}
		}
	}
	for i := range a.parts {
		a.run.Workers = append(a.run.Workers, a.worker(&a.parts[i]))
		if p := &a.parts[i]; p.lost {
			e.Lost += a.lostOf(p)
		}
	}
	if p := &a.run.Planned; p.UntilNS != nil { // how many there would be was for the endpoint to say
		p.Requests, p.InputTokens, p.OutputTokens, p.ReuseTokens = e.Sent+e.Lost, a.in, a.out, nil
	}
	e.Overlaps = a.overlaps()
	if e.Interrupted = a.stopped && a.aborted == nil; a.aborted != nil {
		e.Aborted = a.aborted.Error()
	}
	e.Unconcluded = a.orphan
	e.Unsent = max(0, a.run.Planned.Requests-e.Sent-e.Lost)
	a.run.Ended = e
}

// add sums how the runs of the workers ended.
func (a *assembly) add(e *results.Ended, first, ownShard bool) {
	to := &a.ended
	to.Capped += e.Capped
	to.RecordsLost += e.RecordsLost
	to.RecordError = strings.Trim(to.RecordError+"; "+e.RecordError, "; ")
	if h := e.Holds; h != nil {
		if to.Holds == nil {
			to.Holds = &results.Holds{}
		}
		s := to.Holds
		s.Held, s.HeldNS, s.NoDelay, s.GapsCut, s.GapsCutNS = s.Held+h.Held, s.HeldNS+h.HeldNS, s.NoDelay+h.NoDelay, s.GapsCut+h.GapsCut, s.GapsCutNS+h.GapsCutNS
		s.Outside, s.LeftOut, s.Joins, s.JoinWaitNS, s.NeverEligible = s.Outside+h.Outside, s.LeftOut+h.LeftOut, s.Joins+h.Joins, s.JoinWaitNS+h.JoinWaitNS, s.NeverEligible+h.NeverEligible
	}
	c, d := &to.Client, &e.Client
	c.Realtime = d.Realtime && (first || c.Realtime)
	c.ConnsOpened += d.ConnsOpened
	c.ConnsReused += d.ConnsReused
	c.OutOfDescriptors += d.OutOfDescriptors
	c.OutOfPorts += d.OutOfPorts
	if first {
		c.ReceiveDelay = d.ReceiveDelay
	} else {
		c.ReceiveDelay = mergeDelay(c.ReceiveDelay, d.ReceiveDelay)
	}
	if !ownShard {
		return // beside another run of its process, which has counted what the process used
	}
	c.GCCycles += d.GCCycles
	c.GCPauseNS += d.GCPauseNS
	switch {
	case first:
		c.CPUSeconds, c.RunQueue = d.CPUSeconds, d.RunQueue
	case c.CPUSeconds != nil && d.CPUSeconds != nil:
		sum := *c.CPUSeconds + *d.CPUSeconds
		c.CPUSeconds, c.RunQueue = &sum, nil // its buckets are not kept, and quantiles do not add up
	default:
		c.CPUSeconds, c.RunQueue = nil, nil
	}
}

// mergeDelay merges two distributions; nil where one is not known.
func mergeDelay(a, b *results.Delay) *results.Delay {
	if a == nil || b == nil {
		return nil
	}
	x, errA := hdrhistogram.Decode([]byte(a.Histogram))
	y, errB := hdrhistogram.Decode([]byte(b.Histogram))
	if a.Histogram == "" || b.Histogram == "" || errA != nil || errB != nil || x.Merge(y) > 0 {
		return nil
	}
	most := max(a.MaxNS, b.MaxNS)
	d := &results.Delay{N: x.TotalCount(), P50NS: x.ValueAtQuantile(50), P99NS: x.ValueAtQuantile(99), P999NS: x.ValueAtQuantile(99.9), MaxNS: most}
	text, err := x.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil
	}
	d.Histogram = string(text)
	return d
}

// lostOf is how many requests were lost with a part: of its shard; or, where nobody knows
// how many there would have been, of those that it had sent by its last beat.
func (a *assembly) lostOf(p *part) int64 {
	if a.run.Planned.UntilNS != nil {
		return max(0, p.told-p.sent)
	}
	return max(0, p.planned-p.own)
}

// worker is a part's row of the table of workers.
func (a *assembly) worker(p *part) results.Worker {
	w := results.Worker{
		Name: p.name, State: results.WorkerEnded, Planned: p.planned, Recorded: p.recorded, Sent: p.sent,
		TookOver: p.took, SilentNS: int64(p.silent), Host: p.host,
	}
	switch {
	case p.lost && len(p.runs) > 0:
		w.State = results.WorkerRestored
	case p.lost:
		w.State = results.WorkerLost
	case a.stopped, p.stopped:
		w.State = results.WorkerStopped
	}
	if p.lost {
		w.LostWhy = p.lostWhy
		w.Lost = a.lostOf(p)
		if p.lostAt > 0 {
			at := int64(p.lostAt)
			w.LostAtNS = &at
		}
	}
	if n := len(p.late); n > 0 {
		slices.Sort(p.late)
		p99 := p.late[(99*n+99)/100-1] // nearest rank
		w.LateP99NS = &p99
	}
	if p.dir != "" {
		if w.Clock = p.kept.Clock.clock(p.kept.First); w.Clock != nil {
			w.Clock.ShiftNS = p.shift
		}
	}
	return w
}
