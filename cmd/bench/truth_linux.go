package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/results"
)

var truthLoad = load{streams: 200, rounds: 1, tokens: 150, iv: 20_000, k: 1}

func truthMeasures() []measure {
	errors := []bound{
		{"median error", "us", published, func(s Sample) float64 { return s.Extra["p50"] }},
		{"p99 error", "us", published, func(s Sample) float64 { return s.Extra["p99"] }},
		{"p99 of the receive delay", "us", published, func(s Sample) float64 { return s.Extra["receive_p99"] }},
	}
	return []measure{
		{name: "ITL against the server's own send stamps", unit: "gap", server: true, ours: arm{"reprise", func(w *work) error { return runTruth(w, false) }}, bounds: errors},
		{name: "the same beside a CPU hog", unit: "gap", server: true, ours: arm{"reprise", func(w *work) error { return runTruth(w, true) }}, bounds: errors},
		{name: "a stall of the client of 5 ms", unit: "trial", server: true, pairs: 1, ours: arm{"reprise", runStalls}, bounds: []bound{
			{"share of 20 trials in which the kernel's stamps do not show it", "", 0, func(s Sample) float64 { return s.Extra["missed"] }},
			{"share of 20 trials without a stall in which they show one", "", published, func(s Sample) float64 { return s.Extra["false"] }},
		}},
	}
}

// A sentStream is what the paced server logs of a response.
type sentStream struct {
	ID string  `json:"id"`
	At []int64 `json:"at"` // Unix ns, just before each write
}

// runTruth replays paced streams and holds the time between chunks on the ledger
// against that between the server's writes.
func runTruth(w *work, hog bool) error {
	dir := filepath.Join(w.dir, fmt.Sprint("truth-", os.Getpid()))
	log := dir + ".log"
	config := benchConfig(w.address, dir, truthLoad.iv, truthLoad.k)
	config.ExtraBody = append(config.ExtraBody, fmt.Appendf(nil, `{"bench_log":%q}`, log))
	if err := writeRows(config.Trace, spread(truthLoad)); err != nil {
		return err
	}
	if hog {
		stop, err := startHogs(2)
		if err != nil {
			return err
		}
		defer stop()
	}
	w.begin()
	run, err := replay.Run(context.Background(), config)
	if err != nil {
		return err
	}
	w.end(float64(truthLoad.streams * (truthLoad.tokens - 1)))
	sent, err := readSent(log)
	if err != nil {
		return err
	}
	opened, err := results.OpenRun(dir)
	if err != nil {
		return err
	}
	var off []float64
	for r, err := range opened.Results() {
		if err != nil {
			return err
		}
		at := sent["reprise-"+strconv.FormatInt(r.ID, 10)]
		if len(at) != truthLoad.tokens || len(r.Ledger) != len(at) {
			return fmt.Errorf("request %d: %d chunks sent, %d booked", r.ID, len(at), len(r.Ledger))
		}
		for i := 1; i < len(at); i++ {
			ours := float64(r.Ledger[i].At - r.Ledger[i-1].At)
			off = append(off, math.Abs(ours-float64(at[i]-at[i-1])/1e3))
		}
	}
	slices.Sort(off)
	w.extra("p50", off[len(off)/2])
	w.extra("p99", off[len(off)*99/100])
	if d := run.Ended.Client.ReceiveDelay; d != nil {
		w.extra("receive_p99", float64(d.P99NS)/1e3)
	}
	return nil
}

// spread are the streams of a load, begun one after the other within the
// interval between their chunks.
func spread(l load) []trace.Request {
	rows := make([]trace.Request, l.streams)
	for i := range rows {
		at := time.Duration(i) * time.Duration(l.iv) * time.Microsecond / time.Duration(len(rows))
		rows[i] = shortRow(i, at, int64(l.tokens))
	}
	return rows
}

func readSent(path string) (map[string][]int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sent := map[string][]int64{}
	d := json.NewDecoder(bufio.NewReader(f))
	for d.More() {
		var s sentStream
		if err := d.Decode(&s); err != nil {
			return nil, err
		}
		sent[s.ID] = s.At
	}
	return sent, nil
}

// startHogs keeps n processors busy.
func startHogs(n int) (stop func(), err error) {
	var all []*exec.Cmd
	stop = func() {
		for _, c := range all {
			c.Process.Kill()
			c.Wait()
		}
	}
	for range n {
		c := exec.Command(os.Args[0], "arm", "hog", "hog", "-")
		if err := c.Start(); err != nil {
			stop()
			return nil, err
		}
		all = append(all, c)
	}
	return stop, nil
}

// hog computes for at most a minute.
func hog() error {
	for begin := time.Now(); time.Since(begin) < time.Minute; {
	}
	return nil
}

const (
	stallTrials = 20
	stallLength = 5 * time.Millisecond
	stallShown  = 4 * time.Millisecond // a chunk need not come in its first moment
)

// runStalls stops this process for 5 ms in the middle of short replays, and
// looks for that in the receive delay of the run.
func runStalls(w *work) error {
	missed, wrong := 0, 0
	w.begin()
	for i := range 2 * stallTrials {
		stalled := i%2 == 0
		longest, err := stallTrial(w, i, stalled)
		if err != nil {
			return err
		}
		switch shown := longest >= stallShown; {
		case stalled && !shown:
			missed++
		case !stalled && shown:
			wrong++
		}
	}
	w.end(stallTrials)
	w.extra("missed", float64(missed)/stallTrials)
	w.extra("false", float64(wrong)/stallTrials)
	return nil
}

func stallTrial(w *work, i int, stalled bool) (longest time.Duration, err error) {
	dir := filepath.Join(w.dir, fmt.Sprintf("stall-%d-%d", os.Getpid(), i))
	l := load{streams: 50, rounds: 1, tokens: 50, iv: 10_000, k: 1}
	if err := writeRows(dir+".parquet", spread(l)); err != nil {
		return 0, err
	}
	if stalled {
		c := exec.Command(os.Args[0], "arm", "stall", strconv.Itoa(os.Getpid()), "-")
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, c.Wait()) }()
	}
	run, err := replay.Run(context.Background(), benchConfig(w.address, dir, l.iv, l.k))
	if err != nil {
		return 0, err
	}
	d := run.Ended.Client.ReceiveDelay
	if d == nil {
		return 0, errors.New("the kernel gives no stamps")
	}
	return time.Duration(d.MaxNS), nil
}

// stall stops a process for a moment.
func stall(pid string) error {
	id, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	time.Sleep(200 * time.Millisecond)
	if err := syscall.Kill(id, syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(stallLength)
	return syscall.Kill(id, syscall.SIGCONT)
}
