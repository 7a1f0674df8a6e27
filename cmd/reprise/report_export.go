package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/analysis/export"
	"reprise/analysis/otlp"
	"reprise/trace"
	"reprise/trace/results"
)

// benchstatFile is the file of --export benchstat.
const benchstatFile = "benchmark.txt"

// exportFormats are what --export takes, and the files of each.
var exportFormats = []struct {
	name  string
	files []string
}{
	{"aiperf", []string{export.AIPerfRecords, export.AIPerfJSON, export.AIPerfCSV}},
	{"benchstat", []string{benchstatFile}},
	{"requests-csv", []string{export.RequestsCSV}},
	{"requests-parquet", []string{export.RequestsParquet}},
}

func exportNames() string {
	var names []string
	for _, f := range exportFormats {
		names = append(names, f.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// exports are the files of --export: they appear together, when all is written.
type exports struct {
	formats map[string]bool
	dir     string
	stdout  io.Writer
	printed bool // what was asked for goes to standard output
	files   map[string]*trace.File
	aiperf  *export.AIPerf
	otlp    *otlp.Client // nil = none
	spans   *otlp.Spans
	stderr  io.Writer
	rows    []export.RowWriter
}

// exportsOf reads --export and --export-to.
func exportsOf(c *cli.Command, run string) (*exports, error) {
	e := &exports{formats: map[string]bool{}, dir: run, stdout: c.Root().Writer, stderr: c.Root().ErrWriter, files: map[string]*trace.File{}}
	if base := c.String("otlp"); base != "" {
		var err error
		if e.otlp, err = otlp.New(base, os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), nil); err != nil {
			return nil, misused{err, trace.Fix(err)}
		}
	}
	files := 0
	for _, name := range c.StringSlice("export") {
		known := false
		for _, f := range exportFormats {
			if f.name == name {
				known = true
				files += len(f.files)
			}
		}
		if !known {
			return nil, misuse("use "+exportNames(), "--export %q", name)
		}
		e.formats[name] = true
	}
	to := c.String("export-to")
	switch {
	case to == "":
		return e, nil
	case files == 0:
		return nil, misuse("name what to write with --export "+exportNames(), "--export-to without --export")
	case to != "-":
		e.dir = to
		return e, nil
	case files > 1:
		return nil, misuse("name a directory", "--export-to -: %d files do not go to standard output", files)
	case c.Bool("json") || c.Bool("csv") || c.String("html") == "-":
		return nil, misuse("name a directory", "--export-to - writes to standard output, as --json, --csv and --html - do")
	}
	e.printed = true
	return e, nil
}

// open begins the files, and the spans.
func (e *exports) open(ctx context.Context, run *results.Run) error {
	if e.otlp != nil {
		var err error
		if e.spans, err = e.otlp.NewSpans(ctx, run); err != nil {
			return err
		}
	}
	if len(e.formats) > 0 && !e.printed {
		if err := os.MkdirAll(e.dir, 0o755); err != nil {
			return err
		}
	}
	for _, f := range exportFormats {
		if !e.formats[f.name] || e.printed {
			continue
		}
		for _, name := range f.files {
			file, err := trace.Create(filepath.Join(e.dir, name))
			if err != nil {
				e.abort()
				return err
			}
			e.files[name] = file
		}
	}
	if e.formats["aiperf"] {
		e.aiperf = export.NewAIPerf(run, e.file(export.AIPerfRecords))
	}
	if e.formats["requests-csv"] {
		e.rows = append(e.rows, export.NewRequestsCSV(e.file(export.RequestsCSV)))
	}
	if e.formats["requests-parquet"] {
		e.rows = append(e.rows, export.NewRequestsParquet(e.file(export.RequestsParquet)))
	}
	return nil
}

// file is where a file's text goes.
func (e *exports) file(name string) io.Writer {
	if e.printed {
		return e.stdout
	}
	return e.files[name]
}

func (e *exports) add(r *results.Result) {
	if e.aiperf != nil {
		e.aiperf.Add(r)
	}
	if e.spans != nil {
		e.spans.Add(r)
	}
	for _, w := range e.rows {
		w.Add(r)
	}
}

// write ends the files with what is known when all requests are.
func (e *exports) write(ctx context.Context, s *analysis.Summary, run *results.Run) error {
	for _, w := range e.rows {
		if err := w.Close(); err != nil {
			return err
		}
	}
	if e.aiperf != nil {
		if err := e.aiperf.Close(); err != nil {
			return err
		}
		if err := e.aiperf.WriteJSON(e.file(export.AIPerfJSON), s); err != nil {
			return err
		}
		if err := e.aiperf.WriteCSV(e.file(export.AIPerfCSV), s); err != nil {
			return err
		}
	}
	if e.formats["benchstat"] {
		if err := export.WriteBenchstat(e.file(benchstatFile), s, run.Host); err != nil {
			return err
		}
	}
	for _, f := range e.files {
		if err := f.Commit(); err != nil {
			return err
		}
	}
	return e.send(ctx, s, run)
}

// send sends the rest of the spans, and the metrics.
func (e *exports) send(ctx context.Context, s *analysis.Summary, run *results.Run) error {
	if e.otlp == nil {
		return nil
	}
	if err := e.spans.Close(); err != nil {
		return err
	}
	n, err := e.otlp.SendSummary(ctx, s, run)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "reprise: sent %s and %s\n", trace.Plural(e.spans.N, "span"), trace.Plural(n, "metric"))
	return nil
}

// abort takes away files that were not ended.
func (e *exports) abort() {
	for _, f := range e.files {
		f.Abort()
	}
}
