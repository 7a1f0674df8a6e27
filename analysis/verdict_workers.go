package analysis

import (
	"fmt"
	"strings"
	"time"

	"reprise/trace/results"
)

// lostShare is the share of the planned requests that may be lost with a worker; a
// run that lost more is no measurement of its load.
const lostShare = 0.01

// silentLimit is how long a worker may be silent before the report says so.
const silentLimit = 2 * time.Second

// workers holds each load host of a run of several to what the whole is held to.
func (v *Verdict) workers(s *Summary) {
	for i := range s.Workers {
		w := &s.Workers[i]
		if !s.Requests.Unconcluded {
			v.lost(w)
		}
		if late := w.LateP99NS; late != nil {
			if ms := *milliseconds(time.Duration(*late)); ms > v.Limit {
				v.worsen(Degraded, "worker %s: its p99 lateness %s ms is above the limit of %s ms", w.Name, decimals(ms), decimals(v.Limit))
			}
		}
		v.clock(w)
		if silence := time.Duration(w.SilentNS); silence > silentLimit {
			v.Remarks = append(v.Remarks, fmt.Sprintf("worker %s was silent for %s, and sent on meanwhile as far as it is not lost", w.Name, shortTime(*milliseconds(silence))))
		}
	}
	if e := s.run.Ended; e != nil && e.Lost > 0 {
		text := fmt.Sprintf("%s of %s planned requests were lost with their workers: nobody knows whether they were sent", Grouped(e.Lost), Grouped(s.Planned.Requests))
		if float64(e.Lost) > lostShare*float64(s.Planned.Requests) {
			v.worsen(Invalid, "%s, more than %s", text, percent(lostShare))
		} else {
			v.worsen(Degraded, "%s", text)
		}
	}
}

// unconcluded says what is known of a run whose coordinator was killed: which workers
// came to their end, and what is missing of the others.
func (v *Verdict) unconcluded(s *Summary) {
	if !s.Requests.Unconcluded {
		return
	}
	groups := map[string][]string{}
	for i := range s.Workers {
		w := &s.Workers[i]
		part := fmt.Sprintf("%s (%s of %s planned requests recorded)", w.Name, Grouped(w.Recorded), Grouped(w.Planned))
		switch {
		case w.Name == results.MissingWorkers && w.State == results.WorkerLost:
			part = fmt.Sprintf("others, which had %s planned requests", Grouped(w.Planned))
		case w.State == results.WorkerLost:
			part = w.Name
		}
		groups[w.State] = append(groups[w.State], part)
	}
	text := "the coordinator did not conclude the run, and its results were assembled from what the workers had kept"
	for _, g := range []struct{ state, words string }{
		{results.WorkerEnded, "complete"}, {results.WorkerStopped, "stopped sending before the end"}, {results.WorkerRestored, "killed, or still going on"}, {results.WorkerLost, "nothing is at hand"},
	} {
		if list := groups[g.state]; list != nil {
			text += fmt.Sprintf("; %s: %s", g.words, strings.Join(list, ", "))
		}
	}
	if q := &s.Requests; q.Unsent > 0 {
		text += fmt.Sprintf("; %s of %s planned requests were not sent", Grouped(q.Unsent), Grouped(s.Planned.Requests))
	}
	v.worsen(Degraded, "%s", text)
}

// lost says that a worker was lost.
func (v *Verdict) lost(w *results.Worker) {
	switch w.State {
	case results.WorkerLost, results.WorkerRestored:
	default:
		return
	}
	when, what := "", "its results are lost"
	if w.LostAtNS != nil {
		when = fmt.Sprintf(", %s after the start", shortTime(*milliseconds(time.Duration(*w.LostAtNS))))
	}
	if w.State == results.WorkerRestored {
		what = Counted(w.Recorded, "result") + " of it at hand"
	}
	v.worsen(Degraded, "worker %s was lost%s (%s); %s", w.Name, when, w.LostWhy, what)
}

// clock: an instant of a worker is no better known than its clock.
func (v *Verdict) clock(w *results.Worker) {
	c := w.Clock
	if c == nil {
		if w.Recorded > 0 {
			v.worsen(Degraded, "worker %s: its clock was never compared with the coordinator's", w.Name)
		}
		return
	}
	if bound := *milliseconds(time.Duration(max(c.BoundNS, c.LastBound))); bound > v.Limit {
		v.worsen(Degraded, "worker %s: its clock is known to %s ms only, more than the limit of lateness of %s ms", w.Name, decimals(bound), decimals(v.Limit))
	}
	if shift := *milliseconds(time.Duration(c.ShiftNS)); shift > v.Limit {
		v.worsen(Degraded, "worker %s: its clock went %s ms apart from the coordinator's in the run; what it sent was that early or late (instants are set right)", w.Name, decimals(shift))
	}
}

// workersText is the table of load hosts.
func (s *Summary) workersText(p *printer) {
	for i := range s.Workers {
		w := &s.Workers[i]
		text := fmt.Sprintf("%s: %s, %s of %s planned requests recorded, %s sent", w.Name, w.State, Grouped(w.Recorded), Grouped(w.Planned), Grouped(w.Sent))
		if w.TookOver > 0 {
			text += fmt.Sprintf(", took over from %d", w.TookOver)
		}
		if w.Lost > 0 {
			text += fmt.Sprintf(", %s lost", Grouped(w.Lost))
		}
		if w.LateP99NS != nil {
			text += fmt.Sprintf("; p99 lateness %s ms", decimals(*milliseconds(time.Duration(*w.LateP99NS))))
		}
		if c := w.Clock; c != nil {
			text += fmt.Sprintf("; clock %+.3f ms ± %.3f", float64(c.OffsetNS)/1e6, float64(c.BoundNS)/1e6)
			if c.DriftPPM != nil {
				text += fmt.Sprintf(", drift %+.1f ± %.1f ppm", *c.DriftPPM, *c.DriftOf)
			}
		}
		p.pair("worker", text)
	}
}
