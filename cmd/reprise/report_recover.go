package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"reprise/replay/cluster"
	"reprise/trace"
	"reprise/trace/results"
)

// recovered assembles what workers have kept, and returns the run directory.
func recovered(ctx context.Context, c *cli.Command) (string, error) {
	dirs := c.Args().Slice()
	if len(dirs) == 0 {
		return "", misuse("name the run directory, or those of the workers", "nothing to recover")
	}
	var kept []string
	for _, dir := range dirs {
		found := cluster.Kept(dir)
		if len(found) == 0 {
			return "", notRecoverable(dir)
		}
		kept = append(kept, found...)
	}
	out := dirs[0]
	run, err := cluster.Recover(ctx, kept, out)
	if err != nil {
		return "", err
	}
	there := len(run.Workers)
	if there > 0 && run.Workers[there-1].Name == results.MissingWorkers {
		there--
	}
	fmt.Fprintf(c.Root().ErrWriter, "reprise: the results of %s are assembled in %s; what was kept of them is still there\n", trace.Plural(there, "worker"), out)
	return out, nil
}

// holdsParts tells whether a run of one process has written results in dir: the
// coordinator of several writes none until the end.
func holdsParts(dir string) bool {
	list, err := filepath.Glob(filepath.Join(dir, "parts", "*"))
	return err == nil && len(list) > 0
}

// notRecoverable says why there is nothing of workers to assemble in dir.
func notRecoverable(dir string) error {
	const name = "name the directory of the run, or those that reprise worker has written with -o"
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return trace.WithFix(fmt.Errorf("%s: no such directory", dir), name)
	case err != nil:
		return err
	case !info.IsDir():
		return trace.WithFix(fmt.Errorf("%s: no directory", dir), name)
	case !holdsRun(dir):
		return trace.WithFix(fmt.Errorf("%s: neither a run nor what a worker has kept is here", dir), name)
	}
	run, err := results.OpenRun(dir)
	switch {
	case err != nil:
		return err
	case run.Run.Ended != nil:
		return trace.WithFix(fmt.Errorf("%s: the run was concluded, and there is nothing to recover", dir), "reprise report "+dir)
	case holdsParts(dir):
		return trace.WithFix(fmt.Errorf("%s: a run of one process, which was killed or goes on; the report reads it as it is", dir), "reprise report "+dir)
	}
	return trace.WithFix(fmt.Errorf("%s: the run was not concluded, and no worker has left results here", dir), "workers on other hosts keep theirs: name the directories that reprise worker has written with -o")
}
