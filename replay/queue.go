package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"reprise/replay/protocol"
	"reprise/trace"
)

// A queue is the schedule of a run: flights rendered a little ahead of time.
type queue struct {
	flights *ahead
	taken   *flight
	next    *atomic.Int64 // due time of taken, for those who look
	cancel  context.CancelFunc
	first   chan struct{} // closed when the first flights are there
	ready   func(*flight) // told of each that Next returns
	bytes   atomic.Int64  // of the bodies in flights
	room    chan struct{} // holds one when there is room for many more: flights and bytes have fallen by an eighth
	waits   atomic.Bool   // put waits for room
	once    sync.Once     // for first
	soon    int           // requests of the beginning; set before first is closed
	err     error         // why the trace could not be read on; set before flights is closed
}

// prepare renders the selected rows in order, until ctx ends.
func (r *run) prepare(ctx context.Context) *queue {
	ctx, cancel := context.WithCancel(ctx)
	q := &queue{flights: newAhead(), cancel: cancel, first: make(chan struct{}), room: make(chan struct{}, 1)}
	r.renderer = newRenderer(r.c, r.survey.turns)
	before := map[string]time.Duration{} // by session: recorded end of the turn before
	go func() {
		defer q.flights.close()
		n, first, begun := 0, time.Duration(0), false
		q.err = r.c.each(ctx, func(b *trace.Batch, row int, s start) error {
			f := r.flight(b, row, s)
			f.seq = s.seq
			if r.pacer != nil {
				at := s.due
				if r.c.Selection.Load.Kind == LoadConcurrency {
					at = f.row.Arrival.Value
				}
				f.waits(before, at, r.c.Selection.speed())
			}
			if r.pacer == nil || r.c.ahead() || r.forest != nil && len(f.after) == 0 {
				r.render(f)
			}
			if q.put(ctx, f) != nil {
				return context.Cause(ctx)
			}
			if n == 0 {
				first = s.due
			}
			n++
			later := s.due >= first+beginning
			if !begun && !later {
				q.soon = n
			}
			if begun = begun || later && n >= firstRequests || n == aheadRequests || q.bytes.Load() >= aheadBytes; begun {
				q.filled()
			}
			return nil
		})
		q.filled()
	}()
	return q
}

// beginning is the stretch from the first due time on whose requests are rendered, and
// have connections, before the run begins: they come so soon after one another that
// hardly one is over when the next is due.
const beginning = 50 * time.Millisecond

// connectTime bounds how long a run waits for these connections.
const connectTime = 2 * time.Second

// connect opens connections for the requests of the beginning. One that fails is for
// its request to report.
func (r *run) connect(ctx context.Context, q *queue) {
	n := q.soon
	if l := r.c.Selection.Load; l.Ramp > 0 {
		n = min(n, 1) // the others come one by one
	} else if l.Kind != "" {
		n = min(n, l.N)
	}
	if r.c.MaxInFlight > 0 {
		n = min(n, r.c.MaxInFlight)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	for i, t := range r.targets {
		t.client.Open(ctx, (n+len(r.targets)-1-i)/len(r.targets))
	}
}

// ahead tells whether texts are made before their requests are wanted. Think pacing
// takes in the whole trace, or whole sessions, and live answers are to come.
func (c *Config) ahead() bool {
	return c.History != HistoryLive && (c.pace() != PaceThink || c.Selection.Load.Kind == LoadConcurrency)
}

// flight takes one row.
func (r *run) flight(b *trace.Batch, i int, s start) *flight {
	f, ok := r.spare.Get().(*flight)
	if !ok {
		f = &flight{}
	}
	f.reset(r)
	row, ok := r.rows.Get().(*trace.Request)
	if !ok {
		row = &trace.Request{}
	}
	*row = b.Row(i)
	f.row = row
	f.due, f.eligible, f.hasDue = s.due, s.due, s.known
	f.tree, f.warm, f.last = s.tree, s.warm, s.last
	f.stream, f.choices = r.c.streams(row), row.Choices.Or(1)
	f.x.Limits.Cancel, f.x.Limits.HasCancel = r.c.Cancel.after(r.c.Selection.Seed, row.ID, row.Cancel)
	res := &f.res
	res.Pass, res.ID, res.Protocol, res.Session, res.Turn, res.Agent = s.pass, row.ID, r.record.Protocol, row.Session, row.Turn, row.Agent
	res.RecordedTTFT, res.RecordedE2E = row.RecordedTTFT, row.RecordedE2E
	if s.pass > 0 {
		again(row, s.pass)
	}
	f.session = row.Session.Value
	return f
}

// again makes a row that is sent once more another one to the server: its made text
// and its marker against warm caches are of this pass alone, and share as much
// within it. Literal content stays.
func again(row *trace.Request, pass int32) {
	if row.Session.Known {
		row.Session.Value += fmt.Sprintf("%s%d", passMark, pass)
	}
	key := uint64(pass) * 0x9e3779b97f4a7c15
	for i, id := range row.Blocks {
		row.Blocks[i] = mix(id ^ key)
	}
	row.ID ^= int64(pass) << 40 // names the text behind the blocks
}

// passMark is between a session's name and the pass.
const passMark = "\x00pass "

// mix is a bijection of 64 bits (the finalizer of splitmix64, Steele, Lea and
// Flood, 2014), so that equal blocks stay equal and others stay apart.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// render makes the body of a flight.
func (r *run) render(f *flight) {
	if f.rendered {
		return
	}
	f.rendered = true
	f.converses = r.c.History == HistoryLive && f.row.MessagesMode.Value == trace.MessagesDelta && f.row.Session.Known
	defer func() { r.rows.Put(f.row); f.row = nil }()
	if f.unsent = sendable(f.row); f.unsent != "" {
		return
	}
	buf, ok := r.buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	if cap(*buf) < r.room {
		*buf = make([]byte, r.room, 2*r.room)
	}
	whole, err := r.renderer.body((*buf)[:r.room], f.row, &f.res)
	if err != nil {
		f.unsent = err.Error()
		return
	}
	*buf = whole
	f.buf = buf
}

// waits takes from the row what it comes after. before has the recorded end of
// the last turn of each session; of a turn without a recorded duration, its
// arrival.
func (f *flight) waits(before map[string]time.Duration, at time.Duration, speed float64) {
	f.after = f.row.After
	if d, ok := f.row.Delay.Get(); ok {
		f.delay = trace.Some(time.Duration(float64(d) / speed))
	}
	key := f.row.Session.Or("") + "\x00" + f.row.Agent.Or("")
	if end, ok := before[key]; ok && len(f.after) > 0 {
		f.gap = max(0, at-end)
	}
	before[key] = at + time.Duration(float64(f.row.RecordedE2E.Or(0))/speed)
}

// put adds a flight once there is room for it. What is full is filled again when an
// eighth of it has gone, since waking for each request would cost more than rendering
// it.
func (q *queue) put(ctx context.Context, f *flight) error {
	if q.full(aheadRequests, aheadBytes) {
		q.waits.Store(true)
		for q.full(aheadRequests/8*7, aheadBytes/8*7) {
			select {
			case <-q.room:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		q.waits.Store(false)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	q.bytes.Add(f.size())
	q.flights.add(f)
	return nil
}

// filled says that there is enough to begin with; it may be said again.
func (q *queue) filled() { q.once.Do(func() { close(q.first) }) }

// Next implements Schedule.
func (q *queue) Next() (time.Duration, bool) {
	f, ok := q.take()
	if !ok {
		return 0, false
	}
	q.taken = f
	q.next.Store(int64(f.due))
	q.ready(f)
	return f.due, true
}

// take returns the next flight.
func (q *queue) take() (*flight, bool) {
	f, ok := q.flights.next()
	if !ok {
		return nil, false
	}
	if q.bytes.Add(-f.size()); q.waits.Load() && !q.full(aheadRequests/8*7, aheadBytes/8*7) {
		select {
		case q.room <- struct{}{}:
		default:
		}
	}
	return f, true
}

// full tells whether so many requests or bytes wait.
func (q *queue) full(requests int, bytes int64) bool {
	return q.flights.len() >= requests || q.bytes.Load() >= bytes
}

// fill waits until the first flights are rendered.
func (q *queue) fill() { <-q.first }

// stop ends the rendering and waits for it.
func (q *queue) stop() {
	q.cancel()
	for _, more := q.flights.next(); more; _, more = q.flights.next() {
	}
}

// failed returns why the trace was not read to its end, but for an interrupt.
func (q *queue) failed(ctx context.Context) error {
	if q.err == nil || ctx.Err() != nil || errors.Is(q.err, context.Canceled) {
		return nil
	}
	return q.err
}

// pool keeps response readers, by whether they expect a stream.
type pool struct {
	protocol protocol.Protocol
	pools    [2]sync.Pool
}

func (p *pool) of(stream bool) *sync.Pool {
	if stream {
		return &p.pools[1]
	}
	return &p.pools[0]
}

// Get returns a response reader.
func (p *pool) Get(stream bool) *protocol.Response {
	if r, ok := p.of(stream).Get().(*protocol.Response); ok {
		return r
	}
	return protocol.NewResponse(p.protocol, stream, 0)
}

// Put gives it back.
func (p *pool) Put(stream bool, r *protocol.Response) { p.of(stream).Put(r) }
