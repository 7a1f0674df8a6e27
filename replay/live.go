package replay

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/trace/results"
)

// Bounds of what is followed while a run goes on.
const (
	RecentWindow = 10 * time.Second       // what Recent quantiles and rates are over, at most
	liveCauses   = 64                     // different causes that are told apart
	topCauses    = 5                      // of these, in a Progress
	HeldAfter    = 100 * time.Millisecond // a request that is due for longer is held by others, or by a cap
	liveMost     = int64(time.Hour / time.Microsecond)
)

// Progress is how far a run is. What came of requests is known when they end: an
// answer that is under way is in flight and in no other number.
type Progress struct {
	Elapsed  time.Duration
	Planned  int64         // requests; of an endless load, those of one pass
	Endless  bool          // how many there will be is for the endpoint to say
	Length   time.Duration // first to last due, or until nothing more begins; 0 = not known
	Sending  bool          // false once the last was sent, or sending was stopped
	Stopped  bool          // sending was stopped before its end
	Sent     int64
	InFlight int64
	Done     int64
	Failed   int64         // of Done
	Errors   int64         // of Failed: what was not given up on purpose
	NextDue  time.Duration // of the next request, on the run's clock; below 0 where none is known
	Unheard  bool          // what is next is not known here: a worker has to say so first
	Lost     int           // workers that were lost; what they had in flight is in no number
	Lateness time.Duration // largest of the last second

	// What has ended, without the warm-up; latencies of the successful ones.
	Late, TTFT, ITL          Quantiles // of the whole run
	RecentTTFT, RecentITL    Quantiles // of the last 5 to 10 s
	Input, Output            int64     // tokens, where they were counted
	InputPerS, OutputPerS    float64   // of answers that ended in the last 5 to 10 s
	Outcomes                 map[string]int64
	Causes                   []Cause // of what was not successful, the most frequent first
	OtherCauses, OtherFailed int64   // kinds that are not in Causes (those beyond 64 count as one), and their requests
}

// Quantiles are of a histogram whose values are at most 1 % too high.
type Quantiles struct {
	N             int64
	Sum           time.Duration
	P50, P95, P99 time.Duration

	// Values are the histogram, in the V2 compressed form of HdrHistogram, to be merged
	// with those of other workers; nil unless Config.Histograms.
	Values []byte
	merged *hdrhistogram.Histogram // of which Values are not made yet
}

// A Cause is why requests were not successful.
type Cause struct {
	Name string // outcome: cause
	N    int64
}

// live follows the results of a run. The recorder's goroutine feeds it, after a
// request has ended: nothing of it is on the way of a chunk.
type live struct {
	whole    bool // hand out histograms
	mu       sync.Mutex
	now      func() time.Duration
	outcomes map[string]int64
	causes   map[string]int64
	late     summed
	total    spell    // of the whole run
	recent   [2]spell // of half a window each; the second is being filled
	half     int64    // number of the half window that recent[1] is of
}

// A spell is what ended within a time.
type spell struct {
	ttft, itl     summed
	input, output int64
	from          time.Duration
}

// summed is a histogram in us, with the sum of its values.
type summed struct {
	h   *hdrhistogram.Histogram
	sum time.Duration
}

func newSummed() summed { return summed{h: hdrhistogram.New(1, liveMost, 2)} }

func (s *summed) add(d time.Duration, n int64) {
	s.h.RecordValues(min(max(int64(d/time.Microsecond), 1), liveMost), n) // within its range: no error
	s.sum += d * time.Duration(n)
}

func (s *summed) quantiles(whole bool) Quantiles {
	at := func(q float64) time.Duration {
		return time.Duration(s.h.ValueAtQuantile(q)) * time.Microsecond
	}
	q := Quantiles{N: s.h.TotalCount(), Sum: s.sum, P50: at(50), P95: at(95), P99: at(99)}
	if whole && q.N > 0 {
		q.Values, _ = s.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase) // of a histogram in memory: no error
	}
	return q
}

func newSpell() spell { return spell{ttft: newSummed(), itl: newSummed()} }

func (s *spell) reset(from time.Duration) {
	s.ttft.h.Reset()
	s.itl.h.Reset()
	s.ttft.sum, s.itl.sum, s.input, s.output, s.from = 0, 0, 0, 0, from
}

// newLive follows a run on its clock.
func newLive(now func() time.Duration) *live {
	return &live{now: now, outcomes: map[string]int64{}, causes: map[string]int64{}, late: newSummed(), total: newSpell(), recent: [2]spell{newSpell(), newSpell()}}
}

// add takes a result.
func (l *live) add(r *results.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	if r.Phase.Known && r.Phase.Value == results.PhaseWarmUp {
		return
	}
	l.outcomes[r.Outcome]++
	if late, ok := results.Lateness(r); ok {
		l.late.add(late, 1)
	}
	if r.Outcome != results.OutcomeOK && r.Outcome != results.OutcomeNotStreamed {
		name := r.Outcome + ": " + r.Cause.Or("no cause recorded")
		if _, seen := l.causes[name]; !seen && len(l.causes) >= liveCauses-1 {
			name = "other causes"
		}
		l.causes[name]++
		return
	}
	for _, s := range []*spell{&l.total, &l.recent[1]} {
		s.input += r.CountedInputTokens.Or(0)
		s.output += r.OutputTokens.Or(0)
		if ttft, ok := results.TTFT(r); ok {
			s.ttft.add(ttft, 1)
		}
	}
	for gap, tokens := range results.ITL(r) {
		l.total.itl.add(gap, int64(tokens))
		l.recent[1].itl.add(gap, int64(tokens))
	}
}

// turn begins another half window when it is time.
func (l *live) turn() {
	half := int64(max(0, l.now()) / (RecentWindow / 2))
	if half == l.half {
		return
	}
	l.recent[0], l.recent[1] = l.recent[1], l.recent[0]
	if half > l.half+1 { // nothing ended for a whole one
		l.recent[0].reset(time.Duration(half-1) * RecentWindow / 2)
	}
	l.recent[1].reset(time.Duration(half) * RecentWindow / 2)
	l.half = half
}

// fill says what is known.
func (l *live) fill(p *Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	p.Late, p.TTFT, p.ITL = l.late.quantiles(l.whole), l.total.ttft.quantiles(l.whole), l.total.itl.quantiles(l.whole)
	p.Input, p.Output = l.total.input, l.total.output
	both := func(of func(*spell) *summed) Quantiles {
		a, b := of(&l.recent[0]), of(&l.recent[1])
		s := summed{h: hdrhistogram.Import(a.h.Export()), sum: a.sum + b.sum}
		s.h.Merge(b.h)
		return s.quantiles(l.whole)
	}
	p.RecentTTFT = both(func(s *spell) *summed { return &s.ttft })
	p.RecentITL = both(func(s *spell) *summed { return &s.itl })
	if seconds := (l.now() - l.recent[0].from).Seconds(); seconds > 0 {
		p.InputPerS = float64(l.recent[0].input+l.recent[1].input) / seconds
		p.OutputPerS = float64(l.recent[0].output+l.recent[1].output) / seconds
	}
	p.Outcomes = map[string]int64{}
	for name, n := range l.outcomes {
		p.Outcomes[name] = n
	}
	for name, n := range l.causes {
		p.Causes = append(p.Causes, Cause{name, n})
	}
	slices.SortFunc(p.Causes, func(a, b Cause) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	for _, c := range p.Causes[min(topCauses, len(p.Causes)):] {
		p.OtherCauses++
		p.OtherFailed += c.N
	}
	p.Causes = p.Causes[:min(topCauses, len(p.Causes))]
}

// progress reports once a second until stop is called; the last report, with all
// results, is for the caller.
func (r *run) progress() (stop func()) {
	if r.c.Progress == nil {
		return func() {}
	}
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.c.Progress(r.state())
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-over }
}

func (r *run) state() Progress {
	sent, done := r.sent.Load(), r.done.Load()
	p := Progress{
		Elapsed: r.now(), Planned: r.survey.Planned.Requests, Endless: r.survey.Endless, Length: time.Duration(r.survey.Planned.DurationNS),
		Sending: !r.allSent.Load(), Stopped: r.stopped.Load(), Sent: sent, InFlight: sent - done, Done: done, Failed: r.failed.Load(), Errors: r.errors.Load(),
		NextDue: time.Duration(r.nextDue.Load()), Lateness: time.Duration(r.worst.Swap(0)),
	}
	if d := r.c.Selection.Duration; d > 0 && (r.survey.Endless || p.Length == 0) {
		p.Length = d
	}
	if r.live != nil {
		r.live.fill(&p)
	}
	return p
}
