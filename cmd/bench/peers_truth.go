package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"reprise/replay/mock"
)

// A shape is a trace of equal requests at a constant rate.
type shape struct {
	rate     float64 // requests/s
	requests int
	tokens   int // of an answer, one to a chunk
}

// promptTokens is the length of every prompt, in words, which are the mock's
// tokens. Probes are shorter, and not in the account for that.
const promptTokens = 100

// step is the time of a step of the mock: every answer has a chunk in each.
const step = 5 * time.Millisecond

// due is when request i is due. AIPerf's rows have milliseconds, but may have
// fractions.
func (s shape) due(i int) time.Duration {
	return time.Duration(float64(i) / s.rate * 1e9).Round(time.Microsecond)
}

func (s shape) write(path string) error {
	words := strings.Fields("gamma table beta river light cloud delta alpha stone green")
	var out []byte
	for i := range s.requests {
		text := make([]string, promptTokens)
		for k := range text {
			text[k] = words[(i*7+k*k+k)%len(words)]
		}
		line, err := json.Marshal(map[string]any{"timestamp": float64(s.due(i).Microseconds()) / 1e3, "text_input": strings.Join(text, " "), "output_length": s.tokens})
		if err != nil {
			return err
		}
		out = append(append(out, line...), '\n')
	}
	return os.WriteFile(path, out, 0o644)
}

// A mockServer is reprise mock as a process of its own.
type mockServer struct {
	cmd     *exec.Cmd
	url     string
	account string
}

func startMock(binary, dir string) (*mockServer, error) {
	port := filepath.Join(dir, "mock.addr")
	m := &mockServer{account: filepath.Join(dir, "account.jsonl")}
	m.cmd = exec.Command(binary, "mock", "--listen", "127.0.0.1:0", "--port-file", port, "--account", m.account,
		"--step-base", step.String(), "--step-per-sequence", "0s", "--prefill-rate", "10000000", "--max-batch", "100000")
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		if text, err := os.ReadFile(port); err == nil && len(text) > 0 {
			m.url = "http://" + string(text)
			return m, nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	m.cmd.Process.Kill()
	m.cmd.Wait()
	return nil, errors.New("reprise mock does not start")
}

// stop ends the server and returns what it saw of the trace, in the order of
// arrivals.
func (m *mockServer) stop() ([]mock.Record, error) {
	m.cmd.Process.Signal(os.Interrupt)
	m.cmd.Wait() // its account says how it went
	f, err := os.Open(m.account)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []mock.Record
	for d := json.NewDecoder(f); d.More(); {
		var r mock.Record
		if err := d.Decode(&r); err != nil {
			return nil, err
		}
		if r.PromptTokens == promptTokens && r.Outcome == mock.OutcomeCompleted {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b mock.Record) int { return int(a.Arrival - b.Arrival) })
	return all, nil
}

// A spent is what a command and all its descendants used.
type spent struct {
	CPU  float64 `json:"cpu_s"`      // user and system
	User float64 `json:"user_s"`     // of these
	RSS  float64 `json:"max_rss_mb"` // of the largest process
	Wall float64 `json:"wall_s"`
	Code int     `json:"code"` // exit code of the command itself
}

// spend runs the tool in a process that reaps all its descendants.
func (t *tool) spend(j job, limit time.Duration) (s spent, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"arm", "account", "-", j.dir}, t.command(j)...)...)
	cmd.Env = append(os.Environ(), t.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that a limit ends all of it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	log, err := os.Create(j.dir + ".log")
	if err != nil {
		return s, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	r, w, err := os.Pipe()
	if err != nil {
		return s, err
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	err = cmd.Run()
	w.Close()
	if ctx.Err() != nil {
		return s, fmt.Errorf("%s took more than %v", t.name, limit)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w, its last words: %s", t.name, err, lastWords(log.Name()))
	}
	if err := json.NewDecoder(r).Decode(&s); err != nil {
		return s, err
	}
	if s.Code != 0 && s.Code != t.invalid {
		return s, fmt.Errorf("%s: exit code %d, its last words: %s", t.name, s.Code, lastWords(log.Name()))
	}
	return s, nil
}

// A held is how a run looks from the server.
type held struct {
	Arrived int     `json:"arrived"`
	Rate    float64 `json:"arrived_per_s"` // over the span of arrivals
	OffP50  float64 `json:"off_p50_ms"`    // of |arrival - due|, less its median
	OffP99  float64 `json:"off_p99_ms"`
	OnTime  bool    `json:"on_time"`
}

// onTime is the bound on the p99 of the distance between arrivals and due times.
const onTime = 10.0 // ms

// hold compares arrivals with due times, in order: the k-th to arrive is taken
// for the k-th due, which favours a client that overtakes itself. What all share
// (start-up, the way to the server) is no error, so the median is taken off.
func (s shape) hold(account []mock.Record) held {
	h := held{Arrived: len(account)}
	if len(account) < 2 {
		return h
	}
	off := make([]float64, len(account))
	for i := range account {
		off[i] = float64(account[i].Arrival-s.due(i)) / 1e6
	}
	middle := quantile(off, 0.5)
	for i := range off {
		off[i] = math.Abs(off[i] - middle)
	}
	h.Rate = float64(len(account)-1) / (account[len(account)-1].Arrival - account[0].Arrival).Seconds()
	h.OffP50, h.OffP99 = quantile(off, 0.5), quantile(off, 0.99)
	h.OnTime = h.Arrived == s.requests && h.OffP99 <= onTime
	return h
}

// A truth is how far a tool's figures are from the server's own stamps.
type truth struct {
	N       int     `json:"requests"`
	TTFT    float64 `json:"ttft_error_p50_us"` // |reported - (first chunk's write - arrival)|
	TTFTP99 float64 `json:"ttft_error_p99_us"`
	ITL     float64 `json:"itl_error_p50_us"` // |reported mean - mean of the server's gaps|, by request
	ITLP99  float64 `json:"itl_error_p99_us"`
}

func compareTruth(account []mock.Record, said []reported) (t truth, err error) {
	of := map[string]*mock.Record{}
	for i := range account {
		of[account[i].RequestID] = &account[i]
	}
	var ttft, itl []float64
	for i, s := range said {
		r := of[s.id]
		if s.id == "" && i < len(account) {
			r = &account[i]
		}
		if r == nil || len(r.Chunks) == 0 {
			return t, fmt.Errorf("request %s is not in the server's account", s.id)
		}
		first, last := r.Chunks[0], r.Chunks[len(r.Chunks)-1]
		ttft = append(ttft, math.Abs(micros(s.ttft-(first.At-r.Arrival))))
		if n := time.Duration(r.SentTokens - 1); n > 0 {
			itl = append(itl, math.Abs(micros(s.itl-(last.At-first.At)/n)))
		}
	}
	t.N = len(ttft)
	t.TTFT, t.TTFTP99 = quantile(ttft, 0.5), quantile(ttft, 0.99)
	t.ITL, t.ITLP99 = quantile(itl, 0.5), quantile(itl, 0.99)
	return t, nil
}

// quantile is the nearest-rank one; 0 of nothing.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[max(0, int(math.Ceil(q*float64(len(s))))-1)]
}
