package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"

	"reprise/replay"
	"reprise/trace/results"
)

// A soak is a long replay of many streams at once.
type soak struct {
	bin, dir string
	length   time.Duration
	streams  int
}

// A stream has a token every soakStep; its length is so that few requests a
// second keep all streams busy.
const (
	soakStep   = 200 * time.Millisecond
	soakTokens = 100

	flatWithin = 0.10 // RSS of the last third against the middle third
)

func (s *soak) run(ctx context.Context) error {
	if err := empty(s.dir); err != nil {
		return err
	}
	tokens := min(soakTokens, max(5, int(s.length/soakStep/4))) // a short soak has short streams
	stream := time.Duration(tokens) * soakStep
	n := int(float64(s.streams) * float64(s.length) / float64(stream))
	path := filepath.Join(s.dir, "t.parquet")
	if err := steady(path, n, s.length, 32, int64(tokens)); err != nil {
		return err
	}
	url, stop, err := s.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	return s.replay(ctx, path, url, stream)
}

// serve starts the mock in a process of its own.
func (s *soak) serve(ctx context.Context) (url string, stop func(), err error) {
	file := filepath.Join(s.dir, "addr")
	cmd := exec.CommandContext(ctx, s.bin, "mock", "--listen", "127.0.0.1:0", "--port-file", file, "--prefill-rate", "1e7",
		"--step-base", soakStep.String(), "--step-per-sequence", "0", "--max-batch", strconv.Itoa(4*s.streams), "--kv-tokens", "100000000", "--cache-tokens", "1000000")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { cmd.Process.Signal(os.Interrupt); cmd.Wait() }
	for range 200 {
		if addr, err := os.ReadFile(file); err == nil && len(addr) > 0 {
			return "http://" + string(addr), stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, errors.New("the mock does not listen after 10 s")
}

func (s *soak) replay(ctx context.Context, path, url string, stream time.Duration) error {
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors()
	var memory, live []float64 // MB, once a second
	peak, next := int64(0), time.Duration(0)
	config := replay.Config{
		Trace: path, Dir: filepath.Join(s.dir, "run"), URLs: []string{url}, Model: "mock", NoProbe: true,
		Begin: func() error { return os.MkdirAll(filepath.Join(s.dir, "run"), 0o755) },
		Progress: func(p replay.Progress) {
			if mb, ok := residentMB(); ok && p.Elapsed > stream && p.NextDue >= 0 { // all streams are busy
				memory, live = append(memory, mb), append(live, runtimeMB("/gc/heap/live:bytes"))
			}
			peak = max(peak, p.InFlight)
			if p.Elapsed >= next {
				next += max(time.Second, s.length/20)
				mb, _ := residentMB()
				fmt.Printf("%8s  in flight %d, done %d, failed %d; %.1f MB resident, %.1f MB of heap live, %.1f MB stacks\n", p.Elapsed.Round(time.Second), p.InFlight, p.Done, p.Failed,
					mb, runtimeMB("/gc/heap/live:bytes"), runtimeMB("/memory/classes/heap/stacks:bytes"))
			}
		},
	}
	run, err := replay.Run(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(s.account(config.Dir, run, peak), flat(memory, live, run.Ended.Client.GCCycles), leaks(goroutines, descriptors))
}

// account holds what is recorded against the plan, and each ledger against its
// usage.
func (s *soak) account(dir string, run *results.Run, peak int64) error {
	opened, err := results.OpenRun(dir)
	if err != nil {
		return err
	}
	var rows, failed, unequal, chunks int64
	for r, err := range opened.Results() {
		if err != nil {
			return err
		}
		rows++
		chunks += int64(len(r.Ledger))
		if r.Outcome != results.OutcomeOK {
			failed++
		}
		if sum, ok := results.LedgerTokens(r.Ledger); !ok || sum != r.OutputTokens.Or(-1) || r.OutputTokens != r.PlannedOutputTokens {
			unequal++
		}
	}
	fmt.Printf("requests     %d planned, %d recorded, %d not ok, %d whose ledger is not their usage; %d chunks, up to %d in flight\n", run.Planned.Requests, rows, failed, unequal, chunks, peak)
	if rows != run.Planned.Requests || failed > 0 || unequal > 0 {
		return fmt.Errorf("the account is not right: %d planned, %d recorded, %d not ok, %d ledgers that are not their usage", run.Planned.Requests, rows, failed, unequal)
	}
	if peak < int64(s.streams)*9/10 {
		return fmt.Errorf("only %d requests were in flight at once, want %d", peak, s.streams)
	}
	return nil
}

// flatAfter is how many collections it takes until resident memory has its size:
// before, it grows by the garbage that a run has room for, whatever it leaks.
const flatAfter = 6

// flat holds the last third of the samples against the third before it. A soak
// that is too short for that is held by the live heap.
func flat(memory, live []float64, collections uint32) error {
	n := len(memory) / 3
	if n == 0 {
		fmt.Println("memory       not measured: it needs Linux, and a run of some seconds with all streams busy")
		return nil
	}
	mean := func(list []float64) (sum float64) {
		for _, v := range list {
			sum += v / float64(len(list))
		}
		return sum
	}
	of := func(what string, list []float64) (grows error) {
		first, middle, last := mean(list[:n]), mean(list[n:2*n]), mean(list[2*n:])
		fmt.Printf("memory       %.1f MB %s in the first third, %.1f in the middle, %.1f in the last (n %d, one a second); %d collections\n", first, what, middle, last, len(list), collections)
		if last > middle*(1+flatWithin) {
			grows = fmt.Errorf("memory grows: %.1f MB %s in the middle third, %.1f in the last", middle, what, last)
		}
		return grows
	}
	resident, alive := of("resident", memory), of("of live heap", live)
	switch {
	case collections >= flatAfter:
		return errors.Join(resident, alive)
	case collections < 3:
		fmt.Println("             too short to tell: the collector has to come a few times")
		return nil
	}
	return alive
}

// leaks compares with what was there before the run.
func leaks(goroutines, descriptors int) error {
	var nowG, nowD int
	for range 50 { // what has been told to end may need a moment
		if nowG, nowD = runtime.NumGoroutine(), openDescriptors(); nowG <= goroutines && nowD <= descriptors {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Printf("left over    %d goroutines (%d before), %d descriptors (%d before)\n", nowG, goroutines, nowD, descriptors)
	if nowG > goroutines || nowD > descriptors {
		return fmt.Errorf("leaked: %d goroutines, %d descriptors", nowG-goroutines, nowD-descriptors)
	}
	return nil
}

// openDescriptors counts those of this process; 0 where that cannot be told.
func openDescriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// runtimeMB reads one of the sizes that the runtime keeps.
func runtimeMB(name string) float64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return float64(sample[0].Value.Uint64()) / 1e6
}

// residentMB is the resident memory of this process.
func residentMB() (float64, bool) {
	f, err := os.Open("/proc/self/statm") // proc(5): total and resident pages
	if err != nil {
		return 0, false
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return float64(pages) * float64(syscall.Getpagesize()) / 1e6, err == nil
}
