package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"reprise/trace"
)

// A source is what a leg reads: the whole trace, or its share of it.
type source struct {
	trace string
	times string // "" = trace is the whole
}

// findTrace looks whether the trace of the plan is at its path.
func (w *Worker) findTrace() {
	want := w.plan.Base.Trace
	in, err := trace.Identify(w.plan.Path)
	switch {
	case w.Fetch:
	case err == nil && in.SHA256 == want.SHA256:
		w.whole = true
	case err == nil:
		w.Log("%s here has SHA-256 %.12s, and %.12s at the coordinator: fetches its share", w.plan.Path, in.SHA256, want.SHA256)
	}
}

// sourceOf returns what a leg reads; a share is fetched.
func (w *Worker) sourceOf(ctx context.Context, leg int) (source, error) {
	if w.whole {
		return source{trace: w.plan.Path}, nil
	}
	came := make(chan share, 1)
	w.mu.Lock()
	w.wants[leg] = came
	w.mu.Unlock()
	var s share
	select {
	case s = <-came:
	case <-ctx.Done():
		return source{}, context.Cause(ctx)
	}
	if s.Error != "" {
		return source{}, trace.WithFix(errors.New("the coordinator could not make this worker's share of the trace: "+s.Error), s.Fix)
	}
	out := w.shareAt(leg)
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		return source{}, err
	}
	for path, o := range map[string]object{out.trace: s.Rows, out.times: s.Times} {
		if err := w.fetch(ctx, path, o); err != nil {
			return source{}, fmt.Errorf("fetch a share of the trace from the object store: %w", err)
		}
	}
	return out, nil
}

// shareAt is where the share of a leg is kept.
func (w *Worker) shareAt(leg int) source {
	name := "trace"
	if leg > 0 {
		name = fmt.Sprintf("trace-%d", leg)
	}
	return source{trace: filepath.Join(w.Dir, name+".parquet"), times: filepath.Join(w.Dir, name+".times")}
}

// wanted lists the legs whose shares are wanted. The caller holds mu.
func (w *Worker) wanted() []int {
	var legs []int
	for leg := range w.wants {
		legs = append(legs, leg)
	}
	slices.Sort(legs)
	return legs
}

// hasShares hands shares to the legs that want them. The caller holds mu.
func (w *Worker) hasShares(shares []share) {
	for _, s := range shares {
		if came, ok := w.wants[s.Leg]; ok {
			came <- s
			delete(w.wants, s.Leg)
		}
	}
}

// fetch gets an object and checks it.
func (w *Worker) fetch(ctx context.Context, path string, o object) error {
	js, err := jetstream.New(w.nc)
	if err != nil {
		return err
	}
	store, err := js.ObjectStore(ctx, w.plan.Run)
	if err != nil {
		return err
	}
	if err := store.GetFile(ctx, o.Name, path); err != nil {
		return err
	}
	in, err := trace.Identify(path)
	if err == nil && in.SHA256 != o.SHA256 {
		err = fmt.Errorf("%s has SHA-256 %.12s, and not %.12s as the coordinator says", o.Name, in.SHA256, o.SHA256)
	}
	return err
}
