package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"reprise/trace/results"
)

// streamEvery is how often a worker hands over results while the run goes on; where it
// is killed later, those are not lost.
const streamEvery = 5 * time.Second

// stream hands over what has been recorded, again and again. An error is no matter: what
// one time does not bring the next does, or the end, which hands over everything.
func (w *Worker) stream(ctx context.Context) {
	select {
	case <-w.started:
	case <-ctx.Done():
		return
	}
	next := map[int]int{} // part, by leg
	tick := time.NewTicker(w.plan.Stream)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		legs := len(w.legs)
		w.mu.Unlock()
		for leg := range legs {
			if to, err := w.streamLeg(ctx, leg, next[leg]); err == nil {
				next[leg] = to
			}
		}
	}
}

// streamLeg hands over the parts of a leg from one on, as one file, and then what makes
// them readable.
func (w *Worker) streamLeg(ctx context.Context, leg, from int) (to int, err error) {
	name := strconv.Itoa(leg)
	bundle := fmt.Sprintf("stream-%d.parquet", leg)
	defer os.Remove(filepath.Join(w.Dir, bundle))
	if to, err = results.GatherParts(filepath.Join(w.Dir, name), from, filepath.Join(w.Dir, bundle)); err != nil || to == from {
		return from, err
	}
	for _, f := range []struct{ file, as string }{{bundle, name + "/" + results.PartPath(from)}, {name + "/" + results.RunFile, name + "/" + results.RunFile}, {keptFile, keptFile}} {
		if err := w.upload(ctx, f.file, f.as); err != nil {
			return from, err
		}
	}
	return to, nil
}
