package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// Kept lists the directories of workers at and below dir whose results were not
// assembled: dir itself, or those of a run whose coordinator was killed.
func Kept(dir string) []string {
	var out []string
	for _, pattern := range []string{keptFile, filepath.Join(receivedDir, "*", keptFile), filepath.Join(workersDir, "*", keptFile)} {
		list, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range list {
			out = append(out, filepath.Dir(path))
		}
	}
	return out
}

// Recover assembles the results of workers, dirs, into the run directory out, which
// must exist. Workers of which nothing is there are lost.
func Recover(ctx context.Context, dirs []string, out string) (*results.Run, error) {
	if len(dirs) == 0 {
		return nil, trace.WithFix(errNothing, "name the directories of the workers, or that of the run")
	}
	a := assembly{dir: out, orphan: true}
	var first kept
	for i, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, keptFile))
		if err != nil {
			return nil, err
		}
		var k kept
		if err := json.Unmarshal(text, &k); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, keptFile), err)
		}
		if i == 0 {
			first = k
		}
		if k.Plan.Run != first.Plan.Run {
			return nil, trace.WithFix(fmt.Errorf("%s and %s are of two runs", dirs[0], dir), "assemble each by itself")
		}
		p := part{name: k.Worker, dir: dir, host: k.Host, slots: k.Plan.Slots, planned: k.Plan.Mine, took: max(0, k.Legs-1)}
		at := slices.IndexFunc(a.parts, func(p part) bool { return p.name == k.Worker })
		if at < 0 {
			a.parts = append(a.parts, p)
			continue
		}
		// It had handed them over, and has them still, and those of its last seconds too.
		had, err := resultsIn(a.parts[at].dir)
		if err != nil {
			return nil, err
		}
		has, err := resultsIn(dir)
		if err != nil {
			return nil, err
		}
		if has > had {
			a.parts[at] = p
		}
	}
	here := len(a.parts)
	a.sort()
	a.run, a.keep = first.Plan.Base, first.Plan.Sessions
	a.run.Started = time.Unix(0, first.Start+first.First.Offset).UTC().Format(time.RFC3339Nano)
	a.missing(first.Plan.Of)
	run, err := a.write(ctx)
	if err == nil {
		a.run.Warnings = append(a.run.Warnings, fmt.Sprintf("assembled without the coordinator, from the results of %d of %s", here, trace.Plural(first.Plan.Of, "worker")))
		err = results.WriteRun(out, run)
	}
	return run, err
}

// resultsIn counts what a directory of a worker holds.
func resultsIn(dir string) (n int, err error) {
	legs, err := filepath.Glob(filepath.Join(dir, "*", results.RunFile))
	if err != nil {
		return 0, err
	}
	for _, leg := range legs {
		run, err := results.OpenRun(filepath.Dir(leg))
		if err != nil {
			return 0, err
		}
		for _, err := range run.Results() {
			if err != nil {
				return 0, err
			}
			n++
		}
	}
	return n, nil
}

// missing adds what no worker at hand had as the part of one that is lost.
func (a *assembly) missing(of int) {
	rest := part{name: results.MissingWorkers, slots: newSlotSet(), planned: a.run.Planned.Requests, lost: true, lostWhy: errMissing.Error()}
	for i := range rest.slots {
		rest.slots[i] = 0xff
		for _, p := range a.parts {
			rest.slots[i] &^= p.slots[i]
		}
	}
	for _, p := range a.parts {
		rest.planned -= p.planned
	}
	if len(a.parts) < of {
		a.parts = append(a.parts, rest)
	}
}

var errMissing = errors.New("no results of it are at hand")
