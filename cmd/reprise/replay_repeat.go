package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/replay"
	"reprise/trace"
	"reprise/trace/results"
)

// repeatFile is the spread of repeated runs in their directory.
const repeatFile = "repeat.json"

// replayRepeated makes the same run several times, each in a run directory of its own
// and with prompts of its own, so that no run finds another's in a prefix cache, and
// says how far the runs lie apart.
func replayRepeated(ctx context.Context, c *cli.Command, config *replay.Config, n int, b *beside) error {
	dir := c.String("output")
	if err := repeatDir(c, dir); err != nil {
		return err
	}
	j, err := judgingOf(c)
	if err != nil {
		return err
	}
	var runs []*analysis.Summary
	var failed, invalid, gate error
	for i := range n {
		s, err := oneRepeat(ctx, c, config, b, filepath.Join(dir, fmt.Sprint(i+1)), j)
		if s == nil {
			return err
		}
		failed = errors.Join(failed, err)
		runs = append(runs, s)
		fmt.Fprintf(c.Root().ErrWriter, "reprise: run %d of %d: client %s, %d of %d requests successful\n", i+1, n, s.Verdict.Result, s.Requests.Successful, s.Requests.Ended())
		if v, ok := errors.AsType[verdict](judged(s)); ok && v.code == analysis.CodeInvalid {
			invalid = verdict{v.code, fmt.Errorf("run %d: %w", i+1, v)}
		} else if ok {
			gate = verdict{v.code, fmt.Errorf("run %d: %w", i+1, v)}
		}
		if err != nil {
			break
		}
	}
	spread := analysis.SpreadOf(runs)
	if err := results.WriteJSON(filepath.Join(dir, repeatFile), spread); err != nil {
		return errors.Join(failed, err)
	}
	w := c.Root().Writer
	if c.Bool("json") {
		err = writeJSON(w, spread)
	} else {
		fmt.Fprintf(w, "%s\n", runs[0].Label)
		err = spread.WriteText(w)
	}
	switch {
	case failed != nil || err != nil:
		return errors.Join(failed, err)
	case invalid != nil:
		return invalid
	}
	return gate
}

// oneRepeat makes one of the runs. The summary is nil if it did not begin.
func oneRepeat(ctx context.Context, c *cli.Command, base *replay.Config, b *beside, dir string, j judging) (*analysis.Summary, error) {
	config := *base
	config.Dir, config.Scope = dir, "repeat-"+filepath.Base(dir)
	config.Begin = func() error { return beginRun(c, config.Trace, dir) }
	b.attach(c, &config)
	run, err := replay.Run(ctx, config)
	b.board.stop()
	if run == nil || run.Ended == nil {
		return nil, errors.Join(err, dropEmptyDir(dir))
	}
	s, serr := j.summarize(ctx, dir)
	if run.Ended.Interrupted {
		err = errors.Join(err, errInterrupted)
	}
	return s, errors.Join(err, serr)
}

// repeatDir makes the directory of repeated runs.
func repeatDir(c *cli.Command, dir string) error {
	if dir == "" {
		return misuse("name one with -o, such as -o run/", "no run directory to write")
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return os.MkdirAll(dir, 0o755)
	case err != nil:
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, repeatFile)); err != nil || !c.Bool("force") {
		return trace.WithFix(fmt.Errorf("%s: not empty", dir), "name another directory; --force replaces repeated runs")
	}
	return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
}
