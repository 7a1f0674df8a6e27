package cluster

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/results"
)

// An assembly makes one run directory of the results of workers.
type assembly struct {
	run     results.Run // what is known of the whole run
	dir     string
	parts   []part
	stopped bool
	aborted error // why it was stopped, if it was --abort-if
	keep    bool  // sessions stay together
	orphan  bool  // the coordinator did not conclude the run

	seen     map[requestKey]struct{}
	sessions map[sessionKey][]flight
	owner    [replay.Slots]int // which part had it at the start, +1
	ended    results.Ended
	in, out  *int64 // tokens that were planned for what was sent; nil if none is known
}

// A part is what is known of one worker, and its results, if they are there.
type part struct {
	name, dir string // dir "" = there are none
	host      results.Host
	slots     slotSet // at the start
	planned   int64
	silent    time.Duration
	lost      bool
	lostAt    time.Duration // 0 = not known
	lostWhy   string
	took      int
	cut       bool // it did not come to the end of its sending
	killed    bool // nor of its run: what it had in flight is not known
	stopped   bool // by itself, when it heard no coordinator

	kept     kept
	runs     []*results.Opened
	shifts   bool
	shift    int64
	late     []int64
	recorded int64
	sent     int64
	told     int64 // what it had sent by its last beat
	own      int64 // results of its shard at the start, whoever sent them
}

type requestKey struct {
	id   int64
	pass int32
}

type sessionKey struct {
	name string
	pass int32
}

// A flight is when a request of a session was on its way.
type flight struct{ from, to time.Duration }

// sort sets the parts in the order of their names, w2 before w10: workers join as it
// happens.
func (a *assembly) sort() {
	slices.SortStableFunc(a.parts, func(x, y part) int { return byNumbers(x.name, y.name) })
}

// byNumbers compares names, numbers in them by their value.
func byNumbers(a, b string) int {
	digits := func(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
	for a != "" && b != "" {
		n, m := digits(a), digits(b)
		if n == 0 || m == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:n], "0"), strings.TrimLeft(b[:m], "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
			return c
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

// flushRows is how many results are gathered between two parts of the file.
const flushRows = 1 << 15

// write reads what is there and writes the run directory.
func (a *assembly) write(ctx context.Context) (*results.Run, error) {
	a.seen, a.sessions = map[requestKey]struct{}{}, map[sessionKey][]flight{}
	for i := range a.parts {
		if err := a.open(i); err != nil {
			return nil, err
		}
	}
	for i := range a.parts {
		a.parts[i].judge(a)
	}
	if err := a.describe(); err != nil {
		return nil, err
	}
	out, err := results.NewRecorder(a.dir)
	if err != nil {
		return nil, err
	}
	for r, err := range a.rows() {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		if err := a.take(&r.Result, r.part); err != nil {
			return nil, err
		}
		if out.Add(&r.Result); out.Pending() == flushRows {
			if err := out.Flush(); err != nil {
				return nil, err
			}
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	a.conclude()
	return &a.run, results.WriteRun(a.dir, &a.run)
}

// judge says how a part ended, by the runs in it.
func (p *part) judge(a *assembly) {
	switch {
	case p.lost:
	case a.orphan && (p.killed || len(p.runs) == 0):
		p.lost, p.lostWhy = true, "it was killed, or goes on"
	case a.orphan && p.cut:
		p.stopped = true
	case p.cut && !a.stopped:
		p.lost, p.lostWhy = true, "it stopped before its end"
	}
}

// open opens the runs of a part.
func (a *assembly) open(i int) error {
	p := &a.parts[i]
	for slot := range uint16(replay.Slots) {
		if p.slots.has(slot) {
			a.owner[slot] = i + 1
		}
	}
	if p.dir == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(p.dir, keptFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &p.kept); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(p.dir, keptFile), err)
	}
	p.shifts = len(p.kept.Clock.Estimates) > 0 && p.kept.Clock.shifts(p.kept.First)
	for n := range p.kept.Legs {
		leg := filepath.Join(p.dir, strconv.Itoa(n))
		if _, err := os.Stat(filepath.Join(leg, results.RunFile)); err != nil {
			continue // it was killed before the run began
		}
		run, err := results.OpenRun(leg)
		if err != nil {
			return err
		}
		p.runs = append(p.runs, run)
		p.killed = p.killed || run.Run.Ended == nil
		p.cut = p.cut || p.killed || run.Run.Ended.Interrupted
	}
	return nil
}

// A row is a result and whose it is.
type row struct {
	results.Result
	part int
}

// rows merges the results of all workers in the order in which they ended.
func (a *assembly) rows() iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		var open streams
		for i := range a.parts {
			for _, run := range a.parts[i].runs {
				next, stop := iter.Pull2(run.Results())
				defer stop()
				open = append(open, &stream{next: next, now: row{part: i}})
			}
		}
		advance := func(s *stream) (bool, error) {
			r, err, ok := s.next()
			if ok && err == nil {
				a.parts[s.now.part].move(&r)
				s.now.Result, s.end = r, int64(ends(&r))
			}
			return ok, err
		}
		for i := 0; i < len(open); {
			ok, err := advance(open[i])
			switch {
			case err != nil:
				yield(row{}, err)
				return
			case !ok:
				open = slices.Delete(open, i, i+1)
			default:
				i++
			}
		}
		for heap.Init(&open); len(open) > 0; {
			if !yield(open[0].now, nil) {
				return
			}
			switch ok, err := advance(open[0]); {
			case err != nil:
				yield(row{}, err)
				return
			case !ok:
				heap.Pop(&open)
			default:
				heap.Fix(&open, 0)
			}
		}
	}
}

// A stream is one run that is read, at one of its results.
type stream struct {
	next func() (results.Result, error, bool)
	now  row
	end  int64 // of now
}

// streams is a heap by the end of results, and by the worker where those are equal.
type streams []*stream

func (s streams) Len() int { return len(s) }

func (s streams) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(s[i].end, s[j].end), cmp.Compare(s[i].now.part, s[j].now.part)) < 0
}

func (s streams) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

func (s *streams) Push(x any) { *s = append(*s, x.(*stream)) }

func (s *streams) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	*s = (*s)[:last]
	return x
}

// ends is when a result was there.
func ends(r *results.Result) time.Duration {
	return r.End.Or(r.Dispatched.Or(r.Eligible.Or(r.Due.Or(0))))
}

// move sets a result on the coordinator's clock, and names its worker. What is due,
// and eligible with it, is of the plan and stays. Instants move only where the offset
// of the clocks has changed by more than its bounds leave open: within them, a shift
// would be noise.
func (p *part) move(r *results.Result) {
	r.Worker = trace.Some(p.name)
	if !p.shifts {
		return
	}
	planned := r.Eligible == r.Due
	instants := []*trace.Optional[time.Duration]{&r.Dispatched, &r.Connected, &r.Sent, &r.SentEnd, &r.FirstByte, &r.FirstToken, &r.FirstOutput, &r.LastToken, &r.End}
	if !planned {
		instants = append(instants, &r.Eligible)
	}
	for _, t := range instants {
		if t.Known {
			by := p.kept.Clock.at(p.kept.Start+int64(t.Value)) - p.kept.First.Offset
			t.Value += time.Duration(by)
			p.shift = max(p.shift, abs(by))
		}
	}
}

// take counts a result.
func (a *assembly) take(r *results.Result, from int) error {
	key := requestKey{r.ID, r.Pass}
	if _, twice := a.seen[key]; twice {
		return fmt.Errorf("request %d (pass %d) is in the results of two workers, the second is %s", r.ID, r.Pass, a.parts[from].name)
	}
	a.seen[key] = struct{}{}
	p := &a.parts[from]
	p.recorded++
	if o := a.owner[replay.Slot(r.ID, r.Session.Value, r.Session.Known && a.keep)]; o > 0 {
		a.parts[o-1].own++
	}
	if r.End.Known {
		a.ended.DurationNS = max(a.ended.DurationNS, int64(r.End.Value))
	}
	if !r.Dispatched.Known {
		return nil
	}
	p.sent++
	a.ended.Sent++
	add(&a.in, r.PlannedInputTokens)
	add(&a.out, r.PlannedOutputTokens)
	if late, ok := results.Lateness(r); ok {
		p.late = append(p.late, int64(late))
	}
	if r.Session.Known && r.End.Known {
		s := sessionKey{r.Session.Value, r.Pass}
		a.sessions[s] = append(a.sessions[s], flight{r.Dispatched.Value, r.End.Value})
	}
	return nil
}

// add sums what is known.
func add(sum **int64, n trace.Optional[int64]) {
	if !n.Known {
		return
	}
	if *sum == nil {
		*sum = new(int64)
	}
	**sum += n.Value
}

// overlaps counts requests that were sent while an earlier one of their session was
// on its way, whichever workers sent them.
func (a *assembly) overlaps() int64 {
	n := int64(0)
	for _, list := range a.sessions {
		slices.SortFunc(list, func(x, y flight) int { return cmp.Compare(x.from, y.from) })
		last := time.Duration(-1)
		for i, f := range list {
			if i > 0 && f.from < last {
				n++
			}
			last = max(last, f.to)
		}
	}
	return n
}

var errNothing = errors.New("no worker has left results")
