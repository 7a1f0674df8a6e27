package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"reprise/trace"
)

// A whole is a session with all its rows, in the order of the trace. A row without
// a session is one of its own.
type whole struct {
	rows []trace.Request
	pass int32
}

// wholes gives the sessions of the selection, pass after pass with Recycle. It
// groups their rows on disk if need be. order says where a session stands in its
// pass, given its place in the trace.
func (d *drawing) wholes(ctx context.Context, order func(pass int32, ordinal int64) int64) iter.Seq2[*whole, error] {
	return func(yield func(*whole, error) bool) {
		for ; ; d.pass++ {
			before, more := d.n, true
			err := d.onePass(ctx, order, func(w *whole) bool { more = yield(w, nil); return more })
			if err != nil && !errors.Is(err, errEnough) {
				yield(nil, err)
				return
			}
			if !more || err != nil || !d.Recycle || d.n == before || d.full() {
				return
			}
		}
	}
}

// onePass reads the trace once, and gives its sessions. It returns errEnough if
// there are as many rows as are wanted.
func (d *drawing) onePass(ctx context.Context, order func(int32, int64) int64, yield func(*whole) bool) error {
	r, err := d.opened()
	if err != nil {
		return err
	}
	defer r.Close()
	sorter := &trace.Sorter{}
	defer sorter.Close()
	ordinals, next := map[string]int64{}, int64(0)
	rerr := d.rows(ctx, r, func(b *trace.Batch, row int) error {
		session, known := b.SessionID.Get(row)
		n, seen := ordinals[session]
		if !seen || !known {
			n, next = next, next+1
			if known {
				ordinals[session] = n
			}
		}
		return sorter.Add(b, row, trace.Key{Major: order(d.pass, n), Minor: n})
	})
	if rerr != nil {
		return rerr
	}
	return d.group(sorter, yield)
}

// group gives the sorted rows, session by session, as many as are wanted.
func (d *drawing) group(sorter *trace.Sorter, yield func(*whole) bool) error {
	w := &whole{pass: d.pass}
	d.sessions = map[string]struct{}{}
	give := func() error {
		full := w
		w = &whole{pass: d.pass}
		if len(full.rows) > 0 && !yield(full) {
			return errEnough
		}
		return nil
	}
	err := sorter.Sorted(func(b *trace.Batch) error {
		for i := range b.Len() {
			session, known := b.SessionID.Get(i)
			if n := len(w.rows); n > 0 && (!known || w.rows[n-1].Session != trace.Some(session)) {
				if err := give(); err != nil {
					return err
				}
			}
			ok, err := d.take(session, known)
			if err != nil {
				return errors.Join(give(), err)
			}
			if ok {
				w.rows = append(w.rows, b.Row(i))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return give()
}

// bySession hands on the rows of users, or of whole sessions.
func (d *drawing) bySession(ctx context.Context) error {
	if d.Load.Kind == LoadUsers {
		return d.users(ctx)
	}
	return d.trees(ctx)
}

// A user goes through sessions one after the other.
type user struct {
	session *whole
	at      int // in its rows
	gone    bool
}

// lateAnswer is the cause of a hold by a user who waits for the answer to the turn
// before when the next is due.
const lateAnswer = "late answer"

// users gives each user a turn every N/Rate seconds, one user after the other, so
// that turns begin at Rate in all from the first second on: the first sessions of the
// users have a virtual history, of 0 to all but one of their turns, which are not
// sent. A turn comes after the answer to the one before; the times of the turns after
// it stay.
func (d *drawing) users(ctx context.Context) error {
	next, stop := iter.Pull2(d.wholes(ctx, func(_ int32, n int64) int64 { return n }))
	defer stop()
	users := make([]user, d.Load.N)
	b := trace.NewBatch()
	for i, left := 0, len(users); left > 0; i++ {
		u := &users[i%len(users)]
		if u.gone {
			continue
		}
		begins := u.session == nil || u.at == len(u.session.rows)
		if begins {
			w, err, ok := next()
			if err != nil {
				return err
			}
			if !ok {
				u.gone = true
				left--
				continue
			}
			*u = user{session: w}
			if i < len(users) {
				u.at = i * len(w.rows) / len(users)
			}
		}
		row := u.session.rows[u.at]
		row.After, row.Delay = []trace.Dependency{}, trace.Some(time.Duration(0))
		if !begins {
			row.After = append(row.After, trace.Dependency{ID: u.session.rows[u.at-1].ID, Kind: lateAnswer})
		}
		u.at++
		b.Reset()
		b.Append(&row)
		if err := d.hand(b, 0, start{due: seconds(float64(i) / d.Load.Rate), known: true, pass: u.session.pass}); err != nil {
			return err
		}
	}
	return nil
}

// trees hands on the rows of one session after the other, in an order that the
// seed makes. Due times are offsets from the start of the session, or with
// Load.Inside, of the first ones, from the point of their life at which they begin.
func (d *drawing) trees(ctx context.Context) error {
	random := func(pass int32, n int64) *rand.Rand {
		return rand.New(rand.NewPCG(d.Seed^uint64(pass)<<48^uint64(n), streamTrees))
	}
	b := trace.NewBatch()
	tree := int64(0)
	for w, err := range d.wholes(ctx, func(pass int32, n int64) int64 { return int64(random(pass, n).Uint64() >> 1) }) {
		if err != nil {
			return err
		}
		rows := w.whole()
		if tree < int64(d.Load.N) && d.Load.Inside[1] > 0 {
			u := rand.New(rand.NewPCG(d.Seed^uint64(tree), streamInside)).Float64()
			if rows, err = w.inside(d.Load.Inside[0] + u*(d.Load.Inside[1]-d.Load.Inside[0])); err != nil {
				return fmt.Errorf("%s: %w", d.path, err)
			}
		}
		for i, p := range rows {
			b.Reset()
			b.Append(p.row)
			if err := d.hand(b, 0, start{due: d.due(p.at), known: p.known, pass: w.pass, warm: p.warm, tree: tree, last: i == len(rows)-1}); err != nil {
				return err
			}
		}
		tree++
	}
	return nil
}

// A plannedRow is a row of a session and when it is to be sent, from the session's
// start.
type plannedRow struct {
	row   *trace.Request
	at    time.Duration
	known bool
	warm  bool
}

// whole is the session from its beginning.
func (w *whole) whole() []plannedRow {
	rows := make([]plannedRow, len(w.rows))
	first := w.rows[0].Arrival.Value
	for i := range w.rows {
		r := &w.rows[i]
		rows[i] = plannedRow{row: r, at: max(0, r.Arrival.Value-first), known: r.Arrival.Known}
	}
	return rows
}

// inside is the session from a share of its recorded life on, from its first
// arrival to its last: what came before is not sent. For each of its agents that
// goes on, the last request before is sent with an output of one token, so that the
// server's cache has what it had then. What came after requests before that point
// goes out when it did.
func (w *whole) inside(share float64) ([]plannedRow, error) {
	rows := w.whole()
	for _, p := range rows {
		session := p.row.Session.Or(fmt.Sprint("of id ", p.row.ID))
		switch {
		case !p.known:
			return nil, trace.WithFix(fmt.Errorf("--start-inside: session %s has a request without a recorded time, id %d", session, p.row.ID), "leave it out: sessions then begin at their beginning")
		case p.row.MessagesMode.Value == trace.MessagesDelta:
			return nil, trace.WithFix(fmt.Errorf("--start-inside: session %s has its content as what each turn adds, so it has to be played from its beginning", session), "leave it out")
		}
	}
	last := rows[len(rows)-1].at
	point := time.Duration(share * float64(last))
	lived, latest, goesOn := map[int64]bool{}, map[string]*trace.Request{}, map[string]bool{}
	var agents []string
	for _, p := range rows {
		agent := p.row.Agent.Or("")
		if p.at < point {
			if latest[agent] == nil {
				agents = append(agents, agent)
			}
			lived[p.row.ID], latest[agent] = true, p.row
		} else {
			goesOn[agent] = true
		}
	}
	var out []plannedRow
	for _, agent := range agents {
		if goesOn[agent] {
			row := *latest[agent]
			row.After, row.OutputTokens, row.MaxOutputTokens = nil, trace.Some(int64(1)), trace.Optional[int64]{}
			out = append(out, plannedRow{row: &row, warm: true})
		}
	}
	for _, p := range rows {
		if lived[p.row.ID] {
			continue
		}
		var after []trace.Dependency
		for _, a := range p.row.After {
			if !lived[a.ID] {
				after = append(after, a)
			}
		}
		p.row.After = after
		p.at -= point
		out = append(out, p)
	}
	return out, nil
}
