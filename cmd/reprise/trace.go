package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/formats/source/cloud"
	"reprise/trace"
)

func traceCommand() *cli.Command {
	return &cli.Command{
		Name:     "trace",
		Usage:    "import, look at, check and export traces",
		Commands: []*cli.Command{importCommand(), infoCommand(), checkCommand(), headCommand(), exportCommand(), dequantizeCommand(), cutCommand(), mergeCommand(), anonymizeCommand(), mapInitCommand(), fetchCommand()},
	}
}

// oneArg returns the only argument.
func oneArg(c *cli.Command, what string) (string, error) {
	if n := c.Args().Len(); n != 1 {
		return "", misuse("see: "+c.FullName()+" --help", "%s takes one %s, got %s", c.FullName(), what, trace.Plural(n, "argument"))
	}
	return c.Args().First(), nil
}

// notInput refuses to write over what is read.
func notInput(out, in string) error {
	a, aerr := os.Stat(cloud.Local(out))
	b, berr := os.Stat(cloud.Local(in))
	if aerr == nil && berr == nil && a.Mode().IsRegular() && os.SameFile(a, b) {
		return misuse("name another file", "%s is read here: it would be written over", out)
	}
	return nil
}

// ownFiles refuses outputs that are the input, or one another.
func ownFiles(in string, outs ...string) error {
	for i, out := range outs {
		if out == "" || out == "-" {
			continue
		}
		if err := notInput(out, in); err != nil {
			return err
		}
		for _, other := range outs[:i] {
			if filepath.Clean(out) == filepath.Clean(other) {
				return misuse("name another file", "two outputs are called %s: one would be written over the other", out)
			}
		}
	}
	return nil
}

// openTrace opens the canonical trace at path; "-" is spooled from standard
// input first, since Parquet is read from its end.
func openTrace(c *cli.Command, path string) (*trace.Reader, error) {
	if path = cloud.Local(path); cloud.IsRemote(path) {
		return openRemote(path)
	}
	if path != "-" {
		return trace.Open(path)
	}
	f, err := os.CreateTemp("", "reprise-stdin-*")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	size, err := io.Copy(f, c.Root().Reader)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return trace.NewReader(f, size, "standard input")
}

// onTrace is the action of a command on one canonical trace, which it opens.
func onTrace(action func(ctx context.Context, c *cli.Command, r *trace.Reader, path string) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		path, err := oneArg(c, "trace")
		if err != nil {
			return err
		}
		r, err := openTrace(c, path)
		if err != nil {
			return err
		}
		defer r.Close()
		return action(ctx, c, r, path)
	}
}

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "test all invariants of a canonical trace; exit code 1 if one is broken",
		ArgsUsage: "TRACE",
		Description: `Reads the trace as a stream and prints every row at fault.

Example:
   reprise trace check prod.parquet`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "max", Value: 20, Usage: "violations to print; all are counted"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: onTrace(runCheck),
	}
}

func runCheck(ctx context.Context, c *cli.Command, r *trace.Reader, path string) error {
	type violation struct {
		Row   int64  `json:"row,omitempty"` // from 1; 0 for the file
		Field string `json:"field"`
		What  string `json:"what"`
	}
	var found []violation
	count := map[string]int64{}
	var total int64
	rows, err := trace.Check(ctx, r, func(e *trace.RowError) {
		total++
		count[e.Field]++
		if len(found) < c.Int("max") {
			found = append(found, violation{e.Line, e.Field, e.Err.Error()})
		}
	})
	if err != nil {
		return err
	}
	w := c.Root().Writer
	if c.Bool("json") {
		err := writeJSON(w, struct {
			Rows       int64            `json:"rows"`
			Violations int64            `json:"violations"`
			ByField    map[string]int64 `json:"by_field,omitempty"`
			First      []violation      `json:"first,omitempty"`
		}{rows, total, count, found})
		if err != nil {
			return err
		}
	} else {
		for _, v := range found {
			fmt.Fprintf(w, "row %d: %s: %s\n", v.Row, v.Field, v.What)
		}
		if total == 0 {
			if _, err := fmt.Fprintf(w, "%s, all invariants hold\n", trace.Plural(rows, "row")); err != nil {
				return err
			}
		}
	}
	if total == 0 {
		return nil
	}
	var parts []string
	for _, field := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s %d", field, count[field]))
	}
	return trace.WithFix(fmt.Errorf("%s: %s in %s (%s)", path, trace.Plural(total, "violation"), trace.Plural(rows, "row"), strings.Join(parts, ", ")), "import the source again, or report this if reprise wrote the file")
}

func headCommand() *cli.Command {
	return &cli.Command{
		Name:      "head",
		Usage:     "print canonical rows as JSON lines",
		ArgsUsage: "TRACE",
		Description: `Column names are those of the canonical schema; what is unknown is left out.

Example:
   reprise trace head -n 3 prod.parquet`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 10, Usage: "rows to print; 0 = all"},
			&cli.BoolFlag{Name: "json", Usage: "the default; rows are always JSON lines"},
		},
		Action: onTrace(func(ctx context.Context, c *cli.Command, r *trace.Reader, _ string) error {
			left := c.Int("n")
			for req, err := range r.Rows() {
				if err != nil {
					return err
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				line, err := trace.AppendJSON(nil, &req)
				if err != nil {
					return err
				}
				if _, err := c.Root().Writer.Write(append(line, '\n')); err != nil {
					return err
				}
				if left--; left == 0 {
					break
				}
			}
			return nil
		}),
	}
}

func infoCommand() *cli.Command {
	return &cli.Command{
		Name:      "info",
		Usage:     "say what a canonical trace holds and how it came to be",
		ArgsUsage: "TRACE",
		Description: `Rows, span, sessions, turns, tokens, models, block rule, prefix reuse and
provenance. Tokens are sums over the rows that know them.

Example:
   reprise trace info prod.parquet`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: onTrace(func(ctx context.Context, c *cli.Command, r *trace.Reader, _ string) error {
			info, err := analysis.Describe(ctx, r)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return writeJSON(c.Root().Writer, info)
			}
			return printInfo(c.Root().Writer, info)
		}),
	}
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table prints pairs of a name and a value; an empty value is left out.
func table(w io.Writer, pairs iter.Seq2[string, string]) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for name, value := range pairs {
		if value != "" {
			fmt.Fprintf(tw, "%s\t%s\n", name, value)
		}
	}
	return tw.Flush()
}
