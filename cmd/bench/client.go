package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/results"
)

// A load is what the paced server is asked for.
type load struct {
	streams int           // requests at once
	rounds  int           // one after the other
	tokens  int           // chunks of a response
	iv      int           // microseconds between writes
	k       int           // events of a write
	every   time.Duration // from round to round; 0 = how long one takes
}

func (l load) total() int { return l.streams * l.rounds }

func (l load) body() string {
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"Here we go"}],"stream":true,"max_tokens":%d,"bench_iv":%d,"bench_k":%d}`, l.tokens, l.iv, l.k)
}

// length is how long a round takes.
func (l load) length() time.Duration {
	if l.every > 0 {
		return l.every
	}
	return time.Duration(l.tokens/max(1, l.k)*l.iv)*time.Microsecond + 400*time.Millisecond
}

var (
	pacedLoad  = load{streams: 500, rounds: 2, tokens: 200, iv: 20_000, k: 1}
	packedLoad = load{streams: 200, rounds: 3, tokens: 400, iv: 20_000, k: 4}
	shortLoad  = load{streams: 100, rounds: 300, tokens: 1, every: 8 * time.Millisecond}
)

func clientMeasures() []measure {
	chunk := func(name string, l load, floorGoal, naiveGoal float64) measure {
		return measure{name: name, unit: "chunk", server: true,
			ours: arm{"reprise", func(w *work) error { return runReplay(w, l) }},
			refs: []reference{
				{arm{"epoll floor", func(w *work) error { return runFloor(w, l.streams, l.total(), l.body()) }}, floorGoal, cpuPerUnit, "client CPU a chunk against the epoll floor"},
				{arm{"net/http and encoding/json", func(w *work) error { return runNaive(w, l) }}, 1 / naiveGoal, cpuPerUnit, "client CPU a chunk against net/http, Scanner and encoding/json"},
			},
			bounds: []bound{{"garbage collections", "", 0.5, func(s Sample) float64 { return s.Extra["gc"] }}},
		}
	}
	perRequest := func(s Sample) float64 { return s.CPU / s.Extra["requests"] }
	return []measure{
		chunk("stream, one chunk a read", pacedLoad, 1.25, 1.8),
		chunk("stream, four chunks a read", packedLoad, 1.5, 2.5),
		{name: "short requests, the client", unit: "request", server: true,
			ours: arm{"reprise", func(w *work) error { return runEngine(w, shortLoad) }},
			refs: []reference{
				{arm{"epoll floor", func(w *work) error { return runFloor(w, shortLoad.streams, shortLoad.total(), shortLoad.body()) }}, 1.3, perRequest, "CPU a request against the epoll floor"},
				{arm{"net/http and encoding/json", func(w *work) error { return runNaive(w, shortLoad) }}, 0.25, perRequest, "CPU a request against net/http"},
			}},
		{name: "short requests, from the trace to the results", unit: "request", server: true,
			ours: arm{"reprise", func(w *work) error { return runReplay(w, shortLoad) }},
			refs: []reference{
				{arm{"net/http and encoding/json", func(w *work) error { return runNaive(w, shortLoad) }}, 0.25, perRequest, "CPU a request against net/http, which has neither"},
			}},
		{name: "allocations in the run phase", unit: "chunk", server: true, pairs: 3,
			ours: arm{"reprise", runAllocations},
			bounds: []bound{
				{"of a request", "", 2, func(s Sample) float64 { return s.Extra["request"] }},
				{"of a chunk", "", 0.01, func(s Sample) float64 { return s.Extra["chunk"] }},
			}},
		{name: "10 million chunks", unit: "chunk", server: true, pairs: 1,
			ours: arm{"reprise", func(w *work) error { return runReplay(w, manyLoad) }},
			bounds: []bound{
				{"garbage collections", "", 0.5, func(s Sample) float64 { return s.Extra["gc"] }},
			}},
		{name: "memory of 5,000 open streams", unit: "stream", server: true, pairs: 3,
			ours:   arm{"reprise", func(w *work) error { return runReplay(w, openLoad) }},
			refs:   []reference{{arm{"net/http and encoding/json", func(w *work) error { return runNaive(w, openLoad) }}, 1.0 / 6, grown, "resident memory a stream against net/http"}},
			bounds: []bound{{"resident memory a stream", "KB", 8, grown}},
		},
	}
}

// openLoad holds streams open; its chunks are few.
var openLoad = load{streams: 5000, rounds: 1, tokens: 20, iv: 200_000, k: 1}

// manyLoad is ten million chunks, eight to a write.
var manyLoad = load{streams: 200, rounds: 25, tokens: 2000, iv: 10_000, k: 8, every: 4 * time.Second}

// grown is what the process had grown by for each stream while all were open,
// KB: its resident size over that after a small load.
func grown(s Sample) float64 { return s.Extra["grown_kb"] }

// runReplay replays a trace against the server: the whole path, from the trace
// file to the results on disk.
func runReplay(w *work, l load) error {
	dir := filepath.Join(w.dir, fmt.Sprintf("run-%d-%d", os.Getpid(), l.streams))
	if err := writeLoad(dir+".parquet", l); err != nil {
		return err
	}
	config := benchConfig(w.address, dir, l.iv, l.k)
	if l == openLoad {
		if err := runReplay(w, warmLoad); err != nil {
			return err
		}
	}
	w.begin()
	before := statm()
	most := openRSS(l)
	run, err := replay.Run(context.Background(), config)
	if err != nil {
		return err
	}
	opened, err := results.OpenRun(dir)
	if err != nil {
		return err
	}
	w.end(0)
	chunks, shared, ok := 0, 0, 0
	for r, err := range opened.Results() {
		if err != nil {
			return err
		}
		if r.Outcome == results.OutcomeOK {
			ok++
		}
		s, n := results.SharedReads(r.Ledger)
		chunks, shared = chunks+n, shared+s
	}
	if ok != l.total() {
		return fmt.Errorf("%d of %d requests are ok", ok, l.total())
	}
	w.Units = float64(chunks)
	w.extra("reads", float64(chunks-shared)/float64(chunks))
	w.extra("requests", float64(ok))
	w.extra("gc", float64(run.Ended.Client.GCCycles))
	w.extra("grown_kb", (<-most-before)/float64(l.streams))
	return nil
}

// benchConfig replays dir.parquet into dir, and asks for chunks iv microseconds
// apart, k to a write.
func benchConfig(address, dir string, iv, k int) replay.Config {
	return replay.Config{
		Trace: dir + ".parquet", Dir: dir, URLs: []string{"http://" + address}, Model: "m", NoProbe: true, Output: replay.OutputCap,
		ExtraBody: [][]byte{fmt.Appendf(nil, `{"bench_iv":%d,"bench_k":%d}`, iv, k)}, Version: "bench",
		Begin: func() error { return os.MkdirAll(dir, 0o755) },
	}
}

// writeLoad makes the trace of a load: each round at one instant.
func writeLoad(path string, l load) error {
	rows := make([]trace.Request, l.total())
	for i := range rows {
		rows[i] = trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(i/l.streams) * l.length()), InputTokens: trace.Some(int64(9)), OutputTokens: trace.Some(int64(l.tokens))}
	}
	return writeRows(path, rows)
}

func writeRows(path string, rows []trace.Request) error {
	f, err := trace.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	out := trace.NewWriter(f)
	b := trace.NewBatch()
	for i := range rows {
		b.Append(&rows[i])
	}
	if err := out.Write(b); err != nil {
		return err
	}
	if err := out.Close(trace.Meta{Clock: trace.ClockTrace}); err != nil {
		return err
	}
	return f.Commit()
}

// runNaive is the client that people write first.
func runNaive(w *work, l load) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.streams, DisableCompression: true}}
	if l == openLoad {
		if err := runNaive(w, warmLoad); err != nil {
			return err
		}
	}
	w.begin()
	before := statm()
	most := openRSS(l)
	var chunks, reads, failed atomic.Int64
	var wait sync.WaitGroup
	for range l.streams {
		wait.Go(func() {
			times := make([]int64, 0, 256)
			for range l.rounds {
				response, err := client.Post("http://"+w.address+"/v1/chat/completions", "application/json", strings.NewReader(l.body()))
				if err != nil {
					failed.Add(1)
					continue
				}
				times = times[:0]
				lines := bufio.NewScanner(response.Body)
				for lines.Scan() {
					data, ok := strings.CutPrefix(lines.Text(), "data: ")
					if !ok || data == "[DONE]" {
						continue
					}
					var c naiveChunk
					if json.Unmarshal([]byte(data), &c) == nil && len(c.Choices) > 0 {
						times = append(times, time.Now().UnixNano())
						chunks.Add(1)
						reads.Add(1)
					}
				}
				response.Body.Close()
			}
		})
	}
	wait.Wait()
	w.end(float64(chunks.Load()))
	w.extra("requests", float64(l.total()))
	w.extra("grown_kb", (<-most-before)/float64(l.streams))
	if want := l.total() * l.tokens; failed.Load() > 0 || int(chunks.Load()) != want {
		return fmt.Errorf("%d of %d chunks, %d requests failed", chunks.Load(), want, failed.Load())
	}
	return nil
}

// statm is the resident size, KB; 0 where the system does not say.
func statm() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident float64
	fmt.Sscan(string(text), &size, &resident)
	return resident * float64(os.Getpagesize()) / 1024
}

// openRSS gives the resident size when four fifths of a round are over, KB.
func openRSS(l load) <-chan float64 {
	at := make(chan float64, 1)
	go func() {
		time.Sleep(l.length() * 4 / 5)
		at <- statm()
	}()
	return at
}

// warmLoad makes what a process makes once.
var warmLoad = load{streams: 50, rounds: 1, tokens: 20, iv: 20_000, k: 1}

// startServer starts the paced server as a process of its own.
func startServer() (stop func(), address string, err error) {
	cmd := exec.Command(os.Args[0], "arm", "server", "server", "-")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	stop = func() { cmd.Process.Kill(); cmd.Wait() }
	if err != nil {
		stop()
		return nil, "", fmt.Errorf("the paced server did not start: %w", err)
	}
	return stop, strings.TrimSpace(line), nil
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
