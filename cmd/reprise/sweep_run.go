package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"reprise/analysis"
	"reprise/replay"
	"reprise/replay/sweep"
	"reprise/synth"
	"reprise/trace"
	"reprise/trace/results"
)

// measure makes the run at a load, or reads the one that is there already.
func (s *sweeper) measure(ctx context.Context, load float64, repeat int) (*sweep.Run, error) {
	name := fmt.Sprintf("%s-%s-%d", s.axis.name, strconv.FormatFloat(load, 'g', -1, 64), repeat+1)
	dir := filepath.Join(s.dir, name)
	again := true
	opened, err := results.OpenRun(dir)
	switch {
	case err != nil || opened.Run.Ended == nil || opened.Run.Ended.Interrupted:
		again = false
	case refusedAtTheEnd(opened):
		again = false
		fmt.Fprintf(s.c.Root().ErrWriter, "reprise: %s: nobody took its last requests, so it is measured again\n", name)
	}
	if !again {
		if err := s.replay(ctx, name, load, repeat); err != nil {
			return nil, err
		}
	}
	summary, err := s.summarize(ctx, dir)
	if err != nil {
		return nil, trace.WithFix(err, fmt.Sprintf("remove %s, and the same command measures it again", dir))
	}
	run := sweep.RunOf(summary, s.attainment)
	run.Dir = name
	s.tell(name, run, again)
	return run, nil
}

// refusedAtTheEnd tells that the endpoint of a run was gone when it ended: its last
// requests, one in ten of all, found nobody to connect to.
func refusedAtTheEnd(run *results.Opened) bool {
	all, last := 0, 0
	for r, err := range run.Results() {
		if err != nil {
			return false // who reads the run says so
		}
		all++
		if last++; r.Outcome != results.OutcomeRefused {
			last = 0
		}
	}
	return all > 0 && last >= max(1, all/10)
}

// tell says how a run went.
func (s *sweeper) tell(name string, run *sweep.Run, again bool) {
	text := "measured"
	if again {
		text = "there already"
	}
	if s.slo != nil {
		text += map[bool]string{true: ", meets the objective", false: ", does not meet the objective"}[run.Met]
	}
	if run.RequestsPerS != nil {
		text += fmt.Sprintf(", %s requests/s", analysis.NumberText(*run.RequestsPerS))
	}
	fmt.Fprintf(s.c.Root().ErrWriter, "reprise: %s: %s, client %s\n", name, text, run.Verdict)
}

// replay makes a run. Its prompts are its own, so that no cache has them from an
// earlier run, and its arrivals are those of its repeat: loads are compared on equal
// luck.
func (s *sweeper) replay(ctx context.Context, name string, load float64, repeat int) error {
	config := *s.config
	s.axis.set(&config.Selection, load)
	config.Selection.Seed += uint64(repeat)
	config.Scope = name
	config.Dir = filepath.Join(s.dir, name)
	config.Begin = func() error { return errors.Join(os.RemoveAll(config.Dir), os.MkdirAll(config.Dir, 0o755)) }
	if s.axis.name == "scale" {
		var err error
		if config.Trace, err = s.scaled(ctx, load); err != nil {
			return err
		}
	}
	run, err := replay.Run(ctx, config)
	switch {
	case run == nil || run.Ended == nil:
		return errors.Join(err, dropEmptyDir(config.Dir))
	case run.Ended.Interrupted:
		return errors.Join(err, errInterrupted)
	case run.Ended.Aborted != "":
		return nil // it is what the load did, and in the run
	}
	return err
}

// scaled makes the trace of a scale, and the report on what it kept, unless they are
// there.
func (s *sweeper) scaled(ctx context.Context, factor float64) (string, error) {
	path := filepath.Join(s.dir, "scale-"+strconv.FormatFloat(factor, 'g', -1, 64)+".parquet")
	report := path + ".fidelity.json"
	if _, err := os.Stat(report); err == nil {
		return path, nil
	}
	in, err := trace.Identify(s.trace)
	if err != nil {
		return "", err
	}
	seed := s.config.Selection.Seed
	scaling := &synth.Scaling{Factor: factor, Seed: seed}
	open := func() (*trace.Reader, error) { return trace.Open(s.trace) }
	f, err := trace.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Abort()
	w := trace.NewWriter(f)
	meta, design, made, err := scaleAndCollect(ctx, scaling, open, w.Write)
	if err != nil {
		return "", err
	}
	meta.History = append(meta.History, trace.Step{Command: "synth", Version: version, Seed: &seed, Flags: map[string]string{"scale": fmt.Sprint(factor)}, Inputs: []trace.Input{in}})
	if err := w.Close(meta); err != nil {
		return "", err
	}
	if err := f.Commit(); err != nil {
		return "", err
	}
	source, err := reference(ctx, scaling, open)
	if err != nil {
		return "", err
	}
	fidelity := analysis.CompareFidelity(source, made.Traffic(), design)
	if fidelity.Lost > 0 {
		fmt.Fprintf(s.c.Root().ErrWriter, "reprise: scale %g: %s of the trace lost, see %s\n", factor, trace.Plural(fidelity.Lost, "property"), report)
	}
	return path, results.WriteJSON(report, fidelity)
}
