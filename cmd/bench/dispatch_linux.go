package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/results"

	"golang.org/x/sys/unix"
)

// A timing is a schedule of short requests with Poisson arrivals, and streams
// that are read meanwhile.
type timing struct {
	rate    float64 // requests a second
	length  time.Duration
	streams int // open streams, at 50 chunks a second each
}

func dispatchMeasures() []measure {
	quiet := func(rate float64) measure {
		t := timing{rate: rate, length: 3 * time.Second}
		return measure{name: fmt.Sprintf("dispatch of %g requests/s", rate), unit: "request", server: true,
			ours: arm{"reprise", t.replay},
			refs: []reference{
				{arm{"hiccup meter", t.hiccups}, 2, lateP99, "p99 of the lateness against a hiccup meter"},
				{arm{"time.Sleep", t.sleeps}, 1.0 / 200, lateP50, "p50 of the lateness against a time.Sleep loop"},
			},
			bounds: []bound{
				{"p50 of the lateness", "us", 1, lateP50},
				{"p50 from dispatched to the first byte written", "us", 3, func(s Sample) float64 { return s.Extra["write_p50"] }},
			}}
	}
	loaded := timing{rate: 1000, length: 4 * time.Second, streams: 500}
	return []measure{quiet(1000), quiet(5000), quiet(20000), {
		name: "dispatch of 1000 requests/s while 25,000 chunks/s are read", unit: "request", server: true,
		ours: arm{"reprise", loaded.replay},
		refs: []reference{{arm{"hiccup meter beside the load", loaded.hiccupsBeside}, 3, lateP99, "p99 of the lateness against a hiccup meter beside such a load"}},
	}, {
		name: "load alone", unit: "request", server: true, hidden: true,
		ours: arm{"reprise", timing{rate: 1, length: loaded.length, streams: loaded.streams}.replay},
	}}
}

func lateP50(s Sample) float64 { return s.Extra["p50"] }
func lateP99(s Sample) float64 { return s.Extra["p99"] }

// dues are the same for all arms.
func (t timing) dues() []time.Duration {
	r := rand.New(rand.NewPCG(1, 2))
	var out []time.Duration
	for at := 0.1; at < t.length.Seconds(); at += r.ExpFloat64() / t.rate {
		out = append(out, time.Duration(at*1e9))
	}
	return out
}

// replay sends the schedule by a replay, and takes the lateness from its
// results.
func (t timing) replay(w *work) error {
	dir := filepath.Join(w.dir, fmt.Sprint("run-", os.Getpid()))
	config := benchConfig(w.address, dir, 20_000, 1)
	if err := t.write(config.Trace); err != nil {
		return err
	}
	w.begin()
	if _, err := replay.Run(context.Background(), config); err != nil {
		return err
	}
	w.end(float64(len(t.dues())))
	opened, err := results.OpenRun(dir)
	if err != nil {
		return err
	}
	var late, write []time.Duration
	for r, err := range opened.Results() {
		if err != nil {
			return err
		}
		if r.Outcome != results.OutcomeOK {
			return fmt.Errorf("request %d: %s: %s", r.ID, r.Outcome, r.Cause.Value)
		}
		if r.ID < int64(t.streams) {
			continue
		}
		d, ok := results.Lateness(&r)
		if !ok {
			return fmt.Errorf("request %d has no lateness", r.ID)
		}
		late = append(late, d)
		if r.ConnReused.Value {
			write = append(write, r.Sent.Value-r.Dispatched.Value)
		}
	}
	w.lateness(late)
	if len(write) > 0 {
		slices.Sort(write)
		w.extra("write_p50", micros(write[len(write)/2]))
	}
	return nil
}

// write makes the trace: first the streams, then the short requests.
func (t timing) write(path string) error {
	var rows []trace.Request
	for i := range t.streams {
		rows = append(rows, shortRow(i, 0, int64(50*t.length.Seconds())))
	}
	for _, due := range t.dues() {
		rows = append(rows, shortRow(len(rows), due, 1))
	}
	return writeRows(path, rows)
}

func shortRow(id int, at time.Duration, tokens int64) trace.Request {
	return trace.Request{ID: int64(id), Operation: trace.OpChat, Arrival: trace.Some(at), InputTokens: trace.Some(int64(9)), OutputTokens: trace.Some(tokens)}
}

func (w *work) lateness(late []time.Duration) {
	slices.Sort(late)
	at := func(q float64) float64 { return micros(late[min(len(late)-1, int(q*float64(len(late))))]) }
	w.extra("p50", max(at(0.5), 0.05)) // the clock shows no less
	w.extra("p99", at(0.99))
	w.extra("max", at(1))
}

// hiccups is what the machine itself does to a thread that sleeps and spins to
// the same instants and does nothing there.
func (t timing) hiccups(w *work) error {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	dues := t.dues()
	late := make([]time.Duration, 0, len(dues))
	w.begin()
	start := time.Now()
	for _, due := range dues {
		for {
			left := due - time.Since(start)
			if left <= 0 {
				late = append(late, -left)
				break
			}
			if left > 60*time.Microsecond {
				ts := unix.NsecToTimespec(int64(left - 60*time.Microsecond))
				unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
			}
		}
	}
	w.end(float64(len(dues)))
	w.lateness(late)
	return nil
}

// hiccupsBeside is hiccups while another process reads the streams.
func (t timing) hiccupsBeside(w *work) error {
	load := exec.Command(os.Args[0], "arm", "load alone", "reprise", w.dir, w.address)
	load.Stderr = os.Stderr
	if err := load.Start(); err != nil {
		return err
	}
	time.Sleep(400 * time.Millisecond) // until the streams are open
	err := t.hiccups(w)
	if lerr := load.Wait(); err == nil {
		err = lerr
	}
	return err
}

// sleeps is the loop that people write first.
func (t timing) sleeps(w *work) error {
	dues := t.dues()
	late := make([]time.Duration, 0, len(dues))
	w.begin()
	start := time.Now()
	for _, due := range dues {
		time.Sleep(due - time.Since(start))
		late = append(late, time.Since(start)-due)
	}
	w.end(float64(len(dues)))
	w.lateness(late)
	return nil
}
