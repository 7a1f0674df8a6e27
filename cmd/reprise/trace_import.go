package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/formats"
	"reprise/formats/source"
	"reprise/formats/source/cloud"
	"reprise/trace"
)

func importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "read foreign traces into one canonical Parquet file",
		ArgsUsage: "IN...",
		Description: importFormats() + `
--format auto asks each of them, in this order, about the container and the columns
or keys of the first file; exactly one must take it, and it is printed why. With
--map the container decides. csv, parquet, guidellm and inference-perf are named.

IN is a file, a glob, a directory (all data files below it), an address (file://;
s3:// and gs:// in a build with the tag cloud) or - for standard input; gzip, zstd
and bzip2 are found by content. Rows that cannot be used, or that went into another
row, go to OUT.rejects.jsonl with file, line, field and reason. What was read, kept,
rejected and decided is printed.

Example:
   reprise trace import conversation_trace.jsonl -o prod.parquet`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "canonical trace to write; - for standard output (needed but with --model)"},
			&cli.StringFlag{Name: "format", Value: "auto", Usage: "auto (by content), " + strings.Join(formats.Names(false), ", ")},
			&cli.StringFlag{Name: "rejects", Usage: "file for rejected and merged rows (default OUT.rejects.jsonl); needed with -o -"},
			&cli.BoolFlag{Name: "strict", Usage: "stop at the first row that cannot be used"},
			&cli.StringFlag{Name: "memory", Value: "512MB", Usage: "bytes that sorting may hold before it goes to disk"},
			&cli.IntFlag{Name: "block-tokens", Usage: "tokens per prefix block (mooncake: default found from the file; bailian: default 16; baseten, weka: where the file does not say)"},
			&cli.StringFlag{Name: "time-unit", Usage: "s, ms, us or ns of source times (mooncake, default ms; lmcache, default us)"},
			&cli.StringFlag{Name: "input-lengths", Usage: "cumulative or incremental: what input_length of later turns counts (mooncake; default: by rule)"},
			&cli.StringFlag{Name: "nested-time", Usage: "relative or absolute: basis of sub-agent times (weka; default: decided per file)"},
			&cli.BoolFlag{Name: "keep-pairs", Usage: "keep duplicate n/s rows apart (weka; default: merged and counted)"},
			&cli.DurationFlag{Name: "gap-cap", Usage: "longest gap within a session, the rest is cut out and counted (weka; default: none)"},
			&cli.StringFlag{Name: "session-column", Usage: "column or attribute that names the session (baseten; otel, also trace or none; default: by rule)"},
			&cli.StringFlag{Name: "map", Usage: "mapping of columns, a YAML file (csv, jsonl, parquet; see: reprise trace map-init)"},
			&cli.StringFlag{Name: "zone", Usage: "offset such as +08:00 of calendar times that name no zone (default UTC)"},
			&cli.BoolFlag{Name: "keep-private", Usage: "keep users, keys, addresses and metadata, which are left out by default (litellm)"},
			&cli.BoolFlag{Name: "single-turn", Usage: "only the first turn of each conversation (sharegpt)"},
			&cli.StringFlag{Name: "tokenizer", Usage: "tokenizer.json of the model: counts the tokens of texts (sharegpt, lmcache; baseten with --recount)"},
			&cli.BoolFlag{Name: "recount", Usage: "count tokens with --tokenizer in place of the recorded counts, which stay in attributes (baseten)"},
			&cli.Uint64Flag{Name: "seed", Usage: "seed of the requests that are drawn (servegen; default: 0)"},
			&cli.DurationFlag{Name: "from", Usage: "draw from this time of the data on (servegen)"},
			&cli.DurationFlag{Name: "duration", Usage: "length of time to draw (servegen; default: to the end of the data)"},
			&cli.StringFlag{Name: "model", Usage: "workload model to write instead of a trace, for reprise synth (servegen)"},
			&cli.BoolFlag{Name: "json", Usage: "print the account as one JSON object"},
		},
		Action: runImport,
	}
}

func importFormats() string {
	var b strings.Builder
	b.WriteString("Formats:\n")
	for _, f := range formats.All {
		fmt.Fprintf(&b, "   %-13s %s\n", f.Name, f.Doc)
	}
	return b.String()
}

// importFlags are the flags that change what an import gives; they stand in the
// history.
var importFlags = []string{"block-tokens", "time-unit", "input-lengths", "nested-time", "keep-pairs", "gap-cap", "session-column", "zone", "keep-private", "single-turn", "recount", "seed", "from", "duration"}

func runImport(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() == 0 {
		return misuse("name at least one file, directory or -", "nothing to import")
	}
	if c.String("model") != "" {
		return runImportModel(ctx, c)
	}
	out := c.String("output")
	if out == "" {
		return misuse("see: "+c.FullName()+" --help", "%s needs --output", c.FullName())
	}
	rejectsPath := c.String("rejects")
	if rejectsPath == "" {
		if out == "-" {
			return misuse("name a file with --rejects", "-o - leaves no place for rejected rows")
		}
		if rejectsPath = out + ".rejects.jsonl"; cloud.IsRemote(out) {
			rejectsPath = cloud.Join(out, ".rejects.jsonl")
		}
	}
	if size := c.Int("block-tokens"); size < 0 {
		return misuse("leave it out to have it found from the file", "--block-tokens %d: must be above 0", size)
	}
	memory, err := parseBytes(c.String("memory"))
	if err != nil {
		return misused{fmt.Errorf("--memory: %w", err), "use a number of bytes such as 512MB or 2GB"}
	}
	sources, passed, err := source.Find(c.Args().Slice(), c.Root().Reader)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range sources {
			s.Close()
		}
	}()
	for _, s := range sources {
		for _, path := range []string{out, rejectsPath} {
			if err := notInput(path, s.Name); err != nil {
				return err
			}
		}
	}
	if out == rejectsPath {
		return misuse("name another file with --rejects", "-o and --rejects name the same file: %s", out)
	}
	format, why, err := chooseFormat(c.String("format"), c.IsSet("map"), sources[0])
	if err != nil {
		return err
	}
	options := formats.Options{
		BlockTokens: c.Int("block-tokens"), TimeUnit: c.String("time-unit"), InputLengths: c.String("input-lengths"),
		NestedTime: c.String("nested-time"), KeepPairs: c.Bool("keep-pairs"), GapCap: c.Duration("gap-cap"),
		SessionColumn: c.String("session-column"), Zone: c.String("zone"), KeepPrivate: c.Bool("keep-private"), SingleTurn: c.Bool("single-turn"), Recount: c.Bool("recount"),
		Seed: c.Uint64("seed"), From: c.Duration("from"), Duration: c.Duration("duration"),
	}
	if err := applies(c, format); err != nil {
		return err
	}
	step := trace.Step{Command: "trace import", Version: version, Flags: setFlags(c, importFlags)}
	if format.Name == "servegen" {
		step.Seed = &options.Seed
	}
	if err := countWith(c, format.Name, &options, &step); err != nil {
		return err
	}
	if err := mapWith(c, &options, &step); err != nil {
		return err
	}
	imp, err := format.NewImporter(options)
	if err != nil {
		return misused{err, trace.Fix(err)}
	}
	rejects := &rejects{path: rejectsPath, strict: c.Bool("strict")}
	defer rejects.abort()
	meta, err := importTo(ctx, c, out, imp, sources, memory, step, rejects)
	if err != nil {
		if meta.Counts.Rejected != nil && meta.Counts.Kept == 0 { // all was read: the rejects say why nothing was kept
			err = errors.Join(err, rejects.commit())
		}
		return err
	}
	if err := rejects.commit(); err != nil {
		return err
	}
	return printImport(c, imported{Out: out, Format: format.Name, Why: why, Passed: passed, Sources: len(sources), Meta: meta, rejects: rejects})
}

// applies refuses flags that the format has no use for.
func applies(c *cli.Command, f formats.Format) error {
	for _, name := range append(importFlags, "map") {
		if c.IsSet(name) && !slices.Contains(f.Flags, name) && name != "recount" { // countWith says more
			return misuse("leave it out", "--%s: format %s has no use for it", name, f.Name)
		}
	}
	return nil
}

// countWith loads the tokenizer that counts texts. The history names it by its
// content: paths differ from machine to machine.
func countWith(c *cli.Command, format string, o *formats.Options, step *trace.Step) error {
	given := c.IsSet("tokenizer")
	switch {
	case o.Recount && format != "baseten":
		return misuse("leave it out", "--recount: rows of %s have no recorded counts beside literal texts", format)
	case o.Recount && !given:
		return misuse("name the tokenizer.json of the model with --tokenizer", "--recount: nothing to count with")
	case !given:
		return nil
	case format == "baseten" && !o.Recount:
		return misuse("add --recount to count again", "--tokenizer: rows of baseten have recorded counts")
	case format != "baseten" && format != "sharegpt" && format != "lmcache":
		return misuse("leave it out", "--tokenizer: rows of %s have no texts to count", format)
	}
	t, sum, err := loadTokenizer(c)
	if err != nil {
		return err
	}
	name := filepath.Base(c.String("tokenizer"))
	o.Count, o.Counter = t.Count, fmt.Sprintf("%s (sha256 %.12s)", name, sum)
	if step.Flags == nil {
		step.Flags = map[string]string{}
	}
	step.Flags["tokenizer"] = "sha256 " + sum
	return nil
}

func chooseFormat(name string, mapped bool, first *source.Source) (formats.Format, string, error) {
	if name == "auto" && mapped {
		return formats.DetectMapped(first)
	}
	if name == "auto" {
		return formats.Detect(first)
	}
	f, err := formats.ByName(name)
	if err != nil {
		return f, "", misused{err, trace.Fix(err)}
	}
	return f, "named by --format", nil
}

// setFlags returns those of names that the user set.
func setFlags(c *cli.Command, names []string) map[string]string {
	var set map[string]string
	for _, name := range names {
		if c.IsSet(name) {
			if set == nil {
				set = map[string]string{}
			}
			set[name] = fmt.Sprint(c.Value(name))
		}
	}
	return set
}

func importTo(ctx context.Context, c *cli.Command, out string, imp formats.Importer, src []*source.Source, memory int64, step trace.Step, rejects *rejects) (trace.Meta, error) {
	defer formats.Frugal()()
	if out == "-" {
		return formats.Import(ctx, imp, src, c.Root().Writer, memory, step, rejects.add)
	}
	f, err := createOutput(out)
	if err != nil {
		return trace.Meta{}, err
	}
	defer f.Abort()
	meta, err := formats.Import(ctx, imp, src, f.File, memory, step, rejects.add)
	if err != nil {
		return meta, err
	}
	return meta, f.Commit()
}

// rejects writes rows that were not kept as they are, one JSON object a line.
// The file is there only if there are such rows.
type rejects struct {
	path   string
	strict bool
	file   *output
	buf    *bufio.Writer
	n      int64
}

func (r *rejects) add(e *trace.RowError) error {
	if r.strict && !e.Merged {
		return e
	}
	if r.file == nil {
		f, err := createOutput(r.path)
		if err != nil {
			return err
		}
		r.file, r.buf = f, bufio.NewWriter(f)
	}
	r.n++
	action := "rejected"
	if e.Merged {
		action = "merged"
	}
	return json.NewEncoder(r.buf).Encode(struct {
		Action string `json:"action"`
		File   string `json:"file"`
		Line   int64  `json:"line,omitempty"`
		Field  string `json:"field,omitempty"`
		Reason string `json:"reason"`
		Fix    string `json:"fix,omitempty"`
		Row    string `json:"row,omitempty"`
	}{action, e.File, e.Line, e.Field, e.Err.Error(), e.Fix, e.Raw})
}

func (r *rejects) commit() error {
	if r.file == nil {
		if old, err := os.Stat(r.path); err == nil && old.Mode().IsRegular() && strings.HasSuffix(r.path, ".rejects.jsonl") {
			return os.Remove(r.path) // of an earlier import to the same name
		}
		return nil
	}
	if err := r.buf.Flush(); err != nil {
		return err
	}
	return r.file.Commit()
}

func (r *rejects) abort() {
	if r.file != nil {
		r.file.Abort()
	}
}

// imported is the account of an import.
type imported struct {
	Out     string     `json:"out"`
	Format  string     `json:"format"`
	Why     string     `json:"why"` // how the format was found
	Sources int        `json:"sources"`
	Passed  []string   `json:"passed_over,omitempty"` // files of directories that are no data
	Meta    trace.Meta `json:"-"`
	rejects *rejects
}

func printImport(c *cli.Command, im imported) error {
	w := c.Root().ErrWriter
	if c.Bool("json") && im.Out != "-" {
		return writeJSON(c.Root().Writer, struct {
			imported
			Clock   string        `json:"clock"`
			Counts  trace.Counts  `json:"counts"`
			Guesses []trace.Guess `json:"guesses,omitempty"`
		}{im, im.Meta.Clock, im.Meta.Counts, im.Meta.Guesses})
	}
	if im.Out != "-" {
		w = c.Root().Writer
	}
	err := table(w, func(y func(string, string) bool) {
		files := trace.Plural(im.Sources, "file")
		if im.Sources == 1 {
			files = "1 file"
		}
		_ = y("format", fmt.Sprintf("%s (%s), %s", im.Format, im.Why, files)) &&
			y("read", countsText(im.Meta.Counts)) &&
			guesses(im.Meta.Guesses, y) &&
			y("passed over", strings.Join(im.Passed, ", ")) &&
			y("wrote", im.Out) &&
			y("rejects", im.rejects.text())
	})
	if err != nil {
		return err
	}
	warnRate(c.Root().ErrWriter, im)
	return nil
}

func (r *rejects) text() string {
	if r.n == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%s)", r.path, analysis.Counted(r.n, "row"))
}

// warnRate doubts a rate that no service has; a wrong unit is off by 1000.
func warnRate(w io.Writer, im imported) {
	if cloud.IsRemote(im.Out) {
		return // it is not read back
	}
	r, err := trace.Open(cloud.Local(im.Out))
	if err != nil || im.Meta.Clock != trace.ClockTrace {
		return
	}
	defer r.Close()
	n := r.NumRows()
	span, ok := lastArrival(r)
	if !ok || n < 10 {
		return
	}
	rate := float64(n-1) / span.Seconds()
	switch {
	case span == 0:
		fmt.Fprintf(w, "reprise: warning: all %d rows arrive at one instant\n", n)
	case rate > 20_000:
		fmt.Fprintf(w, "reprise: warning: %d rows in %v are %.3g requests/s; is the unit of the timestamps right?\n", n, span, rate)
	case rate < 1.0/3600:
		fmt.Fprintf(w, "reprise: warning: %d rows in %v are %.3g requests/h; is the unit of the timestamps right?\n", n, span, rate*3600)
	}
}

func lastArrival(r *trace.Reader) (last time.Duration, ok bool) {
	b := trace.NewBatch()
	for r.Read(b, trace.BatchRows) == nil {
		for i := range b.Len() {
			if at, known := b.ArrivalNS.Get(i); known {
				last, ok = max(last, time.Duration(at)), true
			}
		}
	}
	return last, ok
}

// parseBytes reads a number of bytes such as 512MB or 2GiB.
func parseBytes(s string) (int64, error) {
	units := []struct {
		name string
		n    int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"B", 1}}
	text, unit := strings.TrimSpace(s), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = rest, u.n
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(v > 0) || v*float64(unit) > 1<<50 {
		return 0, fmt.Errorf("%q is no number of bytes", s)
	}
	return int64(v * float64(unit)), nil
}
