package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"reprise/replay/mock"
	"reprise/replay/mock/batch"
	"reprise/trace/results"
)

// A killer ends replays at random moments.
type killer struct {
	bin, dir        string
	kills, parallel int
	seed            uint64

	mu                                   sync.Mutex
	opened, early, whole, finished, kept int
	worst                                time.Duration
	faults                               []error
}

// What each replay does: requests that take some 20 ms, evenly.
const (
	killRate   = 200 // requests/s
	killLength = 2 * time.Second
	lossLimit  = time.Second // of finished requests, that a killed run may lose
)

func (k *killer) run(ctx context.Context) error {
	if err := empty(k.dir); err != nil {
		return err
	}
	path := filepath.Join(k.dir, "t.parquet")
	if err := steady(path, int(killRate*killLength/time.Second), killLength, 20, 8); err != nil {
		return err
	}
	begin := time.Now()
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range k.parallel {
		workers.Go(func() {
			for i := range jobs {
				if err := k.one(ctx, path, i); err != nil {
					k.fault(fmt.Errorf("replay %d: %w", i, err))
				}
			}
		})
	}
	for i := 0; i < k.kills && ctx.Err() == nil; i++ {
		jobs <- i
	}
	close(jobs)
	workers.Wait()
	k.print(time.Since(begin))
	return errors.Join(append(k.faults, ctx.Err())...)
}

func (k *killer) fault(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults = append(k.faults, err)
}

func (k *killer) print(took time.Duration) {
	fmt.Printf("kills        %d in %v, %d at once (seed %d)\n", k.kills, took.Round(time.Second), k.parallel, k.seed)
	fmt.Printf("runs         %d opened by reprise report, %d of them complete; %d killed before the run began\n", k.opened, k.whole, k.early)
	fmt.Printf("requests     %d finished by the server before the kill, %d of them in the results\n", k.finished, k.kept)
	fmt.Printf("worst loss   %d ms from a lost request's end to the kill (limit %d ms)\n", k.worst.Milliseconds(), lossLimit.Milliseconds())
	fmt.Printf("broken       %d\n", len(k.faults))
}

// one kills one replay and looks at what it left.
func (k *killer) one(ctx context.Context, path string, i int) error {
	draws := rand.New(rand.NewPCG(k.seed, uint64(i)))
	moment := time.Duration(draws.Int64N(int64(killLength + 300*time.Millisecond)))
	if i%4 == 3 { // its end, where the parts are gathered, is short
		moment = killLength + time.Duration(draws.Int64N(int64(400*time.Millisecond)))
	}
	server := mock.New(mock.Config{Engine: batch.Config{StepBase: 2 * time.Millisecond, PrefillRate: 1e6}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, l) }()
	defer func() { stop(); <-served }()

	dir := filepath.Join(k.dir, fmt.Sprintf("run-%03d", i))
	killed, err := k.killAt(ctx, moment, server, "replay", path, "--url", "http://"+l.Addr().String(), "--model", mock.DefaultModel, "--probe=false", "--progress", "none", "-o", dir)
	if err != nil {
		return err
	}
	stop()
	if err := k.look(ctx, dir, server, killed); err != nil {
		return fmt.Errorf("killed %v after its first request: %w", moment.Round(time.Millisecond), err)
	}
	return os.RemoveAll(dir)
}

// killAt runs the program and kills it at a moment after its first request; a
// moment within the first 50 ms is one after its start.
func (k *killer) killAt(ctx context.Context, moment time.Duration, server *mock.Server, args ...string) (time.Time, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, k.bin, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return time.Time{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if moment > 50*time.Millisecond {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if list, _ := server.Account(); len(list) > 0 {
				moment -= time.Since(server.Start().Add(list[0].Arrival))
				break
			}
		}
	}
	select {
	case <-time.After(moment):
	case <-ended: // it was faster
		return time.Now(), nil
	}
	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return killed, err
	}
	<-ended
	if strings.Contains(out.String(), "error:") && !strings.Contains(out.String(), "not a valid measurement") {
		return killed, fmt.Errorf("the replay failed by itself: %s", out.Bytes())
	}
	return killed, nil
}

// look opens the run, and holds its results against what the server had
// finished.
func (k *killer) look(ctx context.Context, dir string, server *mock.Server, killed time.Time) error {
	finished := map[string]time.Time{}
	list, _ := server.Account()
	for _, r := range list {
		if end := server.Start().Add(r.End); r.Outcome == mock.OutcomeCompleted && end.Before(killed) {
			finished[r.RequestID] = end
		}
	}
	if _, err := os.Stat(filepath.Join(dir, results.RunFile)); errors.Is(err, fs.ErrNotExist) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.early++
		if len(finished) > 0 {
			return fmt.Errorf("no %s, though %d requests were finished", results.RunFile, len(finished))
		}
		return nil
	}
	report := exec.CommandContext(ctx, k.bin, "report", dir)
	if out, err := report.CombinedOutput(); err != nil && report.ProcessState.ExitCode() != 3 {
		return fmt.Errorf("reprise report: %w\n%s", err, out)
	}
	run, err := results.OpenRun(dir)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for r, err := range run.Results() {
		if err != nil {
			return err
		}
		id := fmt.Sprintf("reprise-%d", r.ID)
		if kept[id] {
			return fmt.Errorf("request %d is there twice", r.ID)
		}
		kept[id] = true
	}
	return k.count(finished, kept, killed, run.Run.Ended != nil)
}

func (k *killer) count(finished map[string]time.Time, kept map[string]bool, killed time.Time, whole bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opened++
	if whole {
		k.whole++
	}
	k.finished += len(finished)
	var worst time.Duration
	for id, end := range finished {
		if kept[id] {
			k.kept++
			continue
		}
		worst = max(worst, killed.Sub(end))
	}
	k.worst = max(k.worst, worst)
	if worst > lossLimit {
		return fmt.Errorf("a request that was finished %v before the kill is lost", worst)
	}
	return nil
}
