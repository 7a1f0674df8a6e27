package main

import (
	"context"
	"fmt"
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
			return "", trace.WithFix(fmt.Errorf("%s: no worker has left results here", dir), "name the directory of the run, or those that reprise worker has written with -o")
		}
		kept = append(kept, found...)
	}
	out := dirs[0]
	if _, err := os.Stat(filepath.Join(out, results.RequestsFile)); err == nil {
		return "", trace.WithFix(fmt.Errorf("%s: is assembled already", out), "reprise report "+out)
	}
	run, err := cluster.Recover(ctx, kept, out)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(c.Root().ErrWriter, "reprise: assembled %d of %d workers into %s; what they kept is still there\n", len(kept), len(run.Workers), out)
	return out, nil
}
