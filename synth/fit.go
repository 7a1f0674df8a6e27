package synth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"reprise/synth/model"
	"reprise/trace"
)

// What FitOptions.By may be.
const (
	FitAll    = "all"
	FitClient = "client"
	FitModel  = "model"
)

// DefaultFitStreams is how many clients or models get a stream of their own.
const DefaultFitStreams = 20

// maxProfile is how many pieces a rate over time may have.
const maxProfile = 100_000

// FitOptions say how to fit a workload model.
type FitOptions struct {
	By        string        // FitAll, FitClient or FitModel; "" = FitAll
	Streams   int           // clients or models with a stream of their own, the others are pooled; 0 = DefaultFitStreams
	Profile   time.Duration // width of the pieces of the rate over time; 0 = where it changes
	Bootstrap int           // draws for intervals, and tests of each family; 0 = none
	Seed      uint64
	MaxBlocks int // distinct blocks kept exactly; 0 = prefix.DefaultMaxBlocks where sessions are inferred, else 8 million
}

// Fit describes the traffic of a trace by a model, which is enough to generate
// more of it. It reads the trace once, once more to find the largest clients or
// models, and once more where it is only seen late how sessions are known. Its
// memory grows with 16 bytes a row, with the sessions, and with the distinct
// blocks up to MaxBlocks. Equal traces, options and seeds give equal models.
//
// Version and trace of the provenance are left to the caller.
func Fit(ctx context.Context, open Open, o FitOptions) (*model.Workload, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	groups, err := o.groups(ctx, open)
	if err != nil {
		return nil, err
	}
	mode := fitMode{infer: true}
	for {
		f := newFitting(o, groups, mode)
		if err := f.read(ctx, open); err != nil {
			return nil, err
		}
		if f.again == nil {
			return f.workload(ctx)
		}
		mode = *f.again
	}
}

// Check fills in the defaults, and returns an error that names the option out of
// range.
func (o *FitOptions) Check() error {
	if o.By == "" {
		o.By = FitAll
	}
	if o.Streams == 0 {
		o.Streams = DefaultFitStreams
	}
	switch {
	case o.By != FitAll && o.By != FitClient && o.By != FitModel:
		return trace.WithFix(fmt.Errorf("--by %q: no such grouping", o.By), "use all, client or model")
	case o.Streams < 1 || o.Streams > 1000:
		return fmt.Errorf("--clients %d: must be from 1 to 1000", o.Streams)
	case o.Bootstrap < 0:
		return fmt.Errorf("--bootstrap %d: must not be below 0", o.Bootstrap)
	case o.Profile < 0:
		return fmt.Errorf("--profile %v: must be above 0", o.Profile)
	}
	return nil
}

// flags are the options that change the model, as they are typed.
func (o *FitOptions) flags() map[string]string {
	set := map[string]string{}
	if o.By != FitAll {
		set["by"] = o.By
		set["clients"] = strconv.Itoa(o.Streams)
	}
	if o.Profile != 0 {
		set["profile"] = o.Profile.String()
	}
	if o.Bootstrap != 0 {
		set["bootstrap"] = strconv.Itoa(o.Bootstrap)
	}
	return set
}

// A fitMode says how sessions are found.
type fitMode struct {
	named bool // by the names in the trace
	infer bool // where there are no names, by prefixes
}

// errAgain ends a reading whose rows need another mode.
var errAgain = errors.New("again in another mode")

// read takes all rows, or stops where another mode is needed.
func (f *fitting) read(ctx context.Context, open Open) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	f.meta = r.Meta()
	err = trace.EachBatch(ctx, r, func(b *trace.Batch) error {
		for i := range b.Len() {
			if err := f.row(b, i); err != nil {
				return err
			}
			if f.again != nil {
				return errAgain
			}
		}
		return nil
	})
	if err == errAgain {
		return nil
	}
	if err != nil {
		return err
	}
	if f.rows == 0 {
		return errors.New("the trace has no rows: there is nothing to fit")
	}
	return nil
}

// workload turns what was collected into a model.
func (f *fitting) workload(ctx context.Context) (*model.Workload, error) {
	if f.clock.last-f.clock.first > math.MaxInt64/4 {
		return nil, trace.WithFix(fmt.Errorf("the last arrival is %.3g s after the first, more than 73 years", float64(f.clock.last-f.clock.first)/1e9), "cut what is wrong with its time off: reprise trace cut --to")
	}
	f.clock.settle(f.meta.TickNS.Or(0))
	if f.clock.period > 0 && f.o.Profile > 0 && f.clock.period/f.o.Profile.Seconds() > maxProfile {
		return nil, trace.WithFix(fmt.Errorf("--profile %v: the rate of a trace of %.0f s would have more than %d pieces", f.o.Profile, f.clock.period, maxProfile), "use a longer --profile, or auto")
	}
	f.settleSessions()
	w := &model.Workload{Kind: model.Kind, Schema: model.Schema, Requests: f.rows}
	w.Provenance = model.Provenance{History: f.meta.History, Flags: f.o.flags(), Seed: f.o.Seed}
	if f.clock.n > 0 && f.meta.Clock == trace.ClockTrace {
		span := float64(f.clock.last-f.clock.first) / 1e9
		w.SpanS = &span
	}
	f.generalNotes()
	for _, s := range f.streams {
		if s.rows == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		stream, err := f.stream(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.title(), err)
		}
		w.Streams = append(w.Streams, *stream)
	}
	w.Provenance.Notes = f.notes
	w.Measures = f.measured.measures(f.hitFactor())
	return w, w.Check()
}

// note keeps a sentence for the provenance.
func (f *fitting) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// noteOn keeps a sentence about a stream, which it names where there are several.
func (f *fitting) noteOn(s *fitStream, format string, args ...any) {
	if len(f.streams) > 1 {
		format = strings.ReplaceAll(s.title(), "%", "%%") + ": " + format
	}
	f.note(format, args...)
}

// generalNotes says what holds for all streams.
func (f *fitting) generalNotes() {
	switch f.meta.Clock {
	case trace.ClockNone:
		f.note("arrivals: not measurable: the trace has no times")
	case trace.ClockSession:
		f.note("arrivals: not measurable: each session has its own clock, so the trace has no common one")
	}
	if f.meta.Clock == trace.ClockTrace && f.clock.n < f.rows {
		f.note("arrivals: %d of %d rows have no arrival time and are left out", f.rows-f.clock.n, f.rows)
	}
	if c := f.clock; c.tick > c.exact && c.exact > 0 {
		f.note("clock: times are multiples of %s s, but at least 90 %% of the spacings are multiples of %s s within 0.2 %%: the effective tick", short(float64(c.exact)/1e9), short(float64(c.tick)/1e9))
	}
	if f.moved > 0 {
		f.note("streams: %d rows belong to another %s than their session began with, and went with the session", f.moved, f.o.By)
	}
	if f.groups.bounded {
		f.note("streams: there are more than %d names, so which ones are the largest is approximate", maxGroupNames)
	}
	if f.mode.named && f.unnamed > 0 {
		f.note("sessions: %d of %d rows name no session, and were taken for sessions of one turn", f.unnamed, f.rows)
	}
	if f.mode.named && int64(len(f.ordinals)) == f.rows-f.unnamed {
		f.note("sessions: every session that is named has one row: rows stand alone")
	}
	if !f.mode.infer && !f.mode.named {
		f.note("sessions: none is recorded, and there are too many distinct blocks to infer them: rows stand alone")
	}
}

// short writes a number with four significant digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
