package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/formats/servegen"
	"reprise/formats/source"
)

// runImportModel writes what ServeGen publishes as a workload model.
func runImportModel(ctx context.Context, c *cli.Command) error {
	out := c.String("model")
	if c.IsSet("output") || c.IsSet("from") || c.IsSet("duration") {
		return misuse("leave it out; reprise synth makes a trace of the model", "--model writes a model of all data: -o, --from and --duration are for a trace")
	}
	sources, _, err := source.Find(c.Args().Slice(), c.Root().Reader)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range sources {
			s.Close()
		}
	}()
	for _, s := range sources {
		if err := notInput(out, s.Name); err != nil {
			return err
		}
	}
	format, _, err := chooseFormat(c.String("format"), false, sources[0])
	if err != nil {
		return err
	}
	if format.Name != "servegen" {
		return misuse("import a trace with -o, then: reprise fit TRACE -o "+out, "--model: format %s has requests, and a model of them is fitted", format.Name)
	}
	if err := applies(c, format); err != nil {
		return err
	}
	path := c.String("rejects")
	if path == "" {
		path = out + ".rejects.jsonl"
	}
	rejects := &rejects{path: path, strict: c.Bool("strict")}
	defer rejects.abort()
	w, err := servegen.Workload(ctx, sources, c.Uint64("seed"), version, rejects.add)
	if err != nil {
		return err
	}
	if err := rejects.commit(); err != nil {
		return err
	}
	if err := writeModel(out, w); err != nil {
		return err
	}
	if c.Bool("json") {
		return writeJSON(c.Root().Writer, map[string]any{"model": out, "streams": len(w.Streams), "requests": w.Requests, "notes": w.Provenance.Notes})
	}
	return table(c.Root().Writer, func(y func(string, string) bool) {
		_ = y("model", fmt.Sprintf("%s, about %s in %s s", analysis.Counted(int64(len(w.Streams)), "stream"), analysis.Counted(w.Requests, "request"), analysis.Grouped(int64(*w.SpanS)))) &&
			y("wrote", out) && y("rejects", rejects.text())
	})
}
