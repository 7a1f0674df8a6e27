package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/synth"
	"reprise/synth/model"
	"reprise/trace"
	"reprise/trace/results"
)

func synthCommand() *cli.Command {
	return &cli.Command{
		Name:      "synth",
		Usage:     "make a workload: scale a trace, or generate from a model or from laws",
		ArgsUsage: "[TRACE|MODEL]",
		Description: `From a trace: --scale 3 superposes three copies of every session, with names and
block ids of their own, their starts moved within --jitter, and what is within a
session untouched; 2.5 adds half the sessions of a third copy, 0.1 keeps a tenth.
The rate over time, lengths, turns, think times and prefix reuse stay. --speed is
another thing: the same requests in less time.

From a model (reprise fit): as many requests as --duration or --requests say.
From neither: --arrivals, --input-tokens and --output-tokens. With a trace,
--arrivals gives its sessions starts of their own.

Arrivals: constant:R, poisson:R, gamma:R,cv=C, weibull:R,shape=K, lognormal:R,cv=C
(R in 1/s), piecewise:FILE (CSV: from_s,to_s,rate_hz). How bursty is one of cv=C, or
burstiness=B (vLLM) and smoothness=K (AIPerf), which both are the shape 1/C^2, inside
the law or as the flags --cv, --burstiness and --smoothness. Lengths: 512, normal:512,128,
lognormal:MEAN,SD, gamma:MEAN,SD, exponential:MEAN, uniform:A,B, geometric:MEAN,
range-ratio:512,0.2,vllm or ,sglang, mixture:0.7*512+0.3*4096, empirical:FILE.

A model's output comes with OUT.fidelity.json too: what it is held against are the
numbers of the trace that the model was fitted to.

Examples:
   reprise synth prod.parquet --scale 3 -o prod-x3.parquet
   reprise synth prod.model.json --duration 1h --rate 20 -o made.parquet
   reprise synth --arrivals gamma:10,cv=2 --input-tokens lognormal:900,700 --output-tokens 200 --requests 2k -o made.parquet`,
		Flags:  slices.Concat([]cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Usage: "canonical trace to write; - for standard output"}}, scaleFlags(), generateFlags(), otherSynthFlags()),
		Action: runSynth,
	}
}

func scaleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.FloatFlag{Name: "scale", Usage: "times as many sessions, such as 3, 2.5 or 0.1 (default: 1)"},
		&cli.FloatFlag{Name: "rate", Usage: "requests/s on average, instead of --scale or of the model's rate"},
		&cli.DurationFlag{Name: "jitter", Value: synth.DefaultJitter, Usage: "session starts of copies move by up to this, and by 5% of the span at most"},
		&cli.StringFlag{Name: "grow", Value: synth.GrowClients, Usage: "clients (more of them) or rate (each client busier)"},
		&cli.StringFlag{Name: "thin", Value: synth.ThinSessions, Usage: "sessions (kept whole) or requests: what a scale below 1, or the fraction of a scale, leaves out"},
		&cli.FloatFlag{Name: "speed", Usage: "time compression: the same requests in less time; not more users (default: 1)"},
		&cli.DurationFlag{Name: "from", Usage: "leave out requests recorded before this time"},
		&cli.DurationFlag{Name: "to", Usage: "leave out requests recorded at or after this time (end out)"},
		&cli.DurationFlag{Name: "extend", Usage: "length of the result, beyond that of the trace: sessions come again under other names, at other times"},
		&cli.StringSliceFlag{Name: "mix", Usage: "MODEL=SHARE, such as big=20% (repeatable; shares add up to 1): requests by model"},
		&cli.FloatFlag{Name: "input-scale", Usage: "times as long prompts; blocks grow with them (default: 1)"},
		&cli.FloatFlag{Name: "output-scale", Usage: "times as long answers (default: 1)"},
		&cli.StringFlag{Name: "max-input-tokens", Usage: "drop requests with a longer prompt, such as 32k"},
		&cli.StringFlag{Name: "target-hit-rate", Usage: "share of prompt tokens that a prefix cache without limit should serve, such as 60%"},
	}
}

func generateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "duration", Usage: "length of a generated trace"},
		&cli.StringFlag{Name: "requests", Usage: "requests of a generated trace, such as 500 or 2k"},
		&cli.StringFlag{Name: "arrivals", Usage: "law of arrivals (of session starts where there are sessions)"},
		&cli.FloatFlag{Name: "cv", Usage: "how bursty: coefficient of variation of the gaps between arrivals (gamma); 1 is Poisson, larger is burstier"},
		&cli.FloatFlag{Name: "burstiness", Usage: "vLLM's word: shape of the gamma law of gaps, 1/cv^2; 1 is Poisson, smaller is burstier"},
		&cli.FloatFlag{Name: "smoothness", Usage: "AIPerf's word for the same shape"},
		&cli.BoolFlag{Name: "pin-duration", Usage: "stretch the gaps so that the last of --requests comes at requests / rate exactly, as vLLM does; gaps are then not quite of their law"},
		&cli.StringFlag{Name: "input-tokens", Usage: "law of prompt lengths (of first turns)"},
		&cli.StringFlag{Name: "output-tokens", Usage: "law of answer lengths"},
		&cli.StringFlag{Name: "turns", Usage: "law of requests per session, such as 3 or geometric:4 (default: no sessions)"},
		&cli.StringFlag{Name: "think", Usage: "law of times between turns, such as 5s or lognormal:5s,10s"},
		&cli.StringFlag{Name: "new-input-tokens", Usage: "law of tokens that each later turn adds to the context, beside the answer before"},
		&cli.StringFlag{Name: "shared-prefix", Usage: "tokens that prompts begin with in common, such as 1k or 1k,80% (share of the sessions)"},
		&cli.IntFlag{Name: "block-tokens", Value: 16, Usage: "tokens per prefix block of a trace made from laws"},
		&cli.StringFlag{Name: "model-name", Usage: "model of all requests of a trace made from laws (default: none)"},
	}
}

func otherSynthFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Uint64Flag{Name: "seed", Usage: "seed of all that is drawn (default: 0)"},
		&cli.StringFlag{Name: "memory", Value: "512MB", Usage: "bytes that sorting may hold before it goes to disk"},
		&cli.BoolFlag{Name: "fidelity", Value: true, Usage: "hold a scaled trace against its source, property by property, in OUT.fidelity.json; --fidelity=false leaves it out"},
		&cli.StringFlag{Name: "html", Usage: "also write the fidelity report as one HTML file with charts, which needs no network"},
		&cli.BoolFlag{Name: "strict", Usage: "exit with code 4 if a property is lost (the output is written)"},
		&cli.BoolFlag{Name: "json", Usage: "print what was done as one JSON object"},
	}
}

// synthFlags change what is made; they stand in the history.
var synthFlags = []string{"scale", "rate", "jitter", "grow", "thin", "speed", "from", "to", "extend", "mix", "input-scale", "output-scale", "max-input-tokens", "target-hit-rate",
	"duration", "requests", "arrivals", "cv", "burstiness", "smoothness", "pin-duration", "input-tokens", "output-tokens", "turns", "think", "new-input-tokens", "shared-prefix", "block-tokens", "model-name"}

func runSynth(ctx context.Context, c *cli.Command) error {
	if n := c.Args().Len(); n > 1 {
		return misuse("see: reprise synth --help", "reprise synth takes one trace or model, got %s", trace.Plural(n, "argument"))
	}
	memory, err := parseBytes(c.String("memory"))
	if err != nil {
		return misused{fmt.Errorf("--memory: %w", err), "use a number of bytes such as 512MB or 2GB"}
	}
	seed := c.Uint64("seed")
	step := trace.Step{Command: "synth", Version: version, Seed: &seed, Flags: setFlags(c, synthFlags)}
	if c.Args().Len() == 0 {
		return synthFromLaws(ctx, c, step)
	}
	if err := ownFiles(c.Args().First(), c.String("output"), c.String("html")); err != nil {
		return err
	}
	w, in, err := readModel(c, c.Args().First())
	switch {
	case err != nil:
		return err
	case w != nil:
		return synthFromModel(ctx, c, w, in, step)
	case c.IsSet("arrivals"):
		return synthPlaced(ctx, c, step, memory)
	}
	return synthScaled(ctx, c, step, memory)
}

// only refuses flags that do not go with what is made.
func only(c *cli.Command, what string, names ...string) error {
	names = append(names, "seed", "memory", "json", "output", "o")
	for _, f := range c.Flags {
		if name := f.Names()[0]; c.IsSet(name) && !slices.Contains(names, name) {
			return misuse("leave it out", "--%s does not go with %s", name, what)
		}
	}
	return nil
}

// readModel returns the model at path; nil if the file is something else, as its
// first bytes tell: a trace may be larger than memory.
func readModel(c *cli.Command, path string) (*model.Workload, *trace.Input, error) {
	in, name := c.Root().Reader, "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		in, name = f, path
	}
	buffered := bufio.NewReader(in)
	if path == "-" {
		c.Root().Reader = buffered
	}
	if head, _ := buffered.Peek(512); !bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) {
		return nil, nil, nil
	}
	text, err := io.ReadAll(buffered)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	w, err := model.Read(bytes.NewReader(text))
	if err != nil {
		return nil, nil, trace.WithFix(fmt.Errorf("%s: %w", name, err), trace.Fix(err))
	}
	sum := sha256.Sum256(text)
	return w, &trace.Input{Name: filepath.Base(name), SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(text))}, nil
}

func synthScaled(ctx context.Context, c *cli.Command, step trace.Step, memory int64) error {
	if err := only(c, "a trace that is scaled", "scale", "rate", "jitter", "grow", "thin", "speed", "from", "to", "extend", "mix", "input-scale", "output-scale", "max-input-tokens", "target-hit-rate", "fidelity", "strict", "html"); err != nil {
		return err
	}
	s, err := scaling(c, memory)
	if err != nil {
		return err
	}
	var design *model.Design
	var fidelity *analysis.Fidelity
	if err := noReportNoPage(c); err != nil {
		return err
	}
	_, err = rewrite(c, step, func(open synth.Open, emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		if !c.Bool("fidelity") {
			meta, design, err = s.Run(ctx, open, emit)
			return meta, err
		}
		var made *analysis.TrafficCollector
		meta, design, made, err = scaleAndCollect(ctx, s, open, emit)
		if err != nil {
			return meta, err
		}
		source, err := reference(ctx, s, open)
		if err != nil {
			return meta, err
		}
		traffic := made.Traffic()
		fidelity = analysis.CompareFidelity(source, traffic, design)
		if name := c.String("html"); name != "" {
			return meta, writeWhole(name, chart.FidelityPage(fidelity, source, traffic).Write)
		}
		return meta, nil
	})
	if err != nil {
		return err
	}
	if err := printDesign(c, design, fidelity); err != nil {
		return err
	}
	return concludeFidelity(c, fidelity)
}

// noReportNoPage refuses --html without what it draws.
func noReportNoPage(c *cli.Command) error {
	if c.IsSet("html") && !c.Bool("fidelity") {
		return misuse("leave out --fidelity=false", "--html draws the fidelity report, and there is none")
	}
	return nil
}

// scaleAndCollect scales, and describes what is written on its way.
func scaleAndCollect(ctx context.Context, s *synth.Scaling, open synth.Open, emit func(*trace.Batch) error) (trace.Meta, *model.Design, *analysis.TrafficCollector, error) {
	made, err := collectorFor(open)
	if err != nil {
		return trace.Meta{}, nil, nil, err
	}
	meta, design, err := s.Run(ctx, open, func(b *trace.Batch) error {
		if err := made.Add(b); err != nil {
			return err
		}
		return emit(b)
	})
	return meta, design, made, err
}

func collectorFor(open synth.Open) (*analysis.TrafficCollector, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return analysis.NewTrafficCollector(r.Meta(), r.NumRows(), analysis.TrafficOptions{})
}

// reference describes what the result is held against: the source after what was
// asked to be changed request by request.
func reference(ctx context.Context, s *synth.Scaling, open synth.Open) (*analysis.Traffic, error) {
	source, err := collectorFor(open)
	if err != nil {
		return nil, err
	}
	base := &synth.Scaling{From: s.From, To: s.To, Speed: s.Speed, InputScale: s.InputScale, OutputScale: s.OutputScale, MaxInput: s.MaxInput, Memory: s.Memory}
	if _, _, err := base.Run(ctx, open, source.Add); err != nil {
		return nil, err
	}
	return source.Traffic(), nil
}

// concludeFidelity writes the report beside the output and, with --strict, fails
// what lost something.
func concludeFidelity(c *cli.Command, f *analysis.Fidelity) error {
	if f == nil {
		return nil
	}
	if out := c.String("output"); out != "-" {
		if err := results.WriteJSON(out+".fidelity.json", f); err != nil {
			return err
		}
	}
	if f.Lost > 0 && c.Bool("strict") {
		return verdict{4, fmt.Errorf("%s of the source lost", trace.Plural(f.Lost, "property"))}
	}
	return nil
}

// scaling reads the flags of a scaling.
func scaling(c *cli.Command, memory int64) (*synth.Scaling, error) {
	s := &synth.Scaling{
		Factor: c.Float("scale"), Rate: c.Float("rate"), Grow: c.String("grow"), Thin: c.String("thin"), Speed: c.Float("speed"), Seed: c.Uint64("seed"),
		From: c.Duration("from"), To: c.Duration("to"), Extend: c.Duration("extend"), InputScale: c.Float("input-scale"), OutputScale: c.Float("output-scale"), Memory: memory,
	}
	for _, name := range []string{"scale", "rate", "speed", "input-scale", "output-scale"} {
		if c.IsSet(name) && !(c.Float(name) > 0) {
			return nil, misuse("give a number above 0", "--%s %v: must be above 0", name, c.Float(name))
		}
	}
	if c.IsSet("jitter") {
		s.Jitter = trace.Some(c.Duration("jitter"))
	}
	var err error
	if text := c.String("max-input-tokens"); text != "" {
		if s.MaxInput, err = parseCount(text); err != nil {
			return nil, misused{fmt.Errorf("--max-input-tokens: %w", err), trace.Fix(err)}
		}
	}
	if text := c.String("target-hit-rate"); text != "" {
		share, err := shareOf(text)
		if err != nil {
			return nil, misused{fmt.Errorf("--target-hit-rate: %w", err), trace.Fix(err)}
		}
		s.HitRate = trace.Some(share)
	}
	for _, text := range c.StringSlice("mix") {
		name, value, ok := strings.Cut(text, "=")
		share, err := shareOf(value)
		if !ok || err != nil {
			return nil, misuse("write it as MODEL=SHARE, such as big=20%", "--mix %q", text)
		}
		if s.Mix == nil {
			s.Mix = map[string]float64{}
		}
		if _, twice := s.Mix[name]; twice {
			return nil, misuse("give each model one share", "--mix names %s twice", name)
		}
		s.Mix[name] = share
	}
	if err := s.Check(); err != nil {
		return nil, misused{err, trace.Fix(err)}
	}
	return s, nil
}

// shareOf reads a share between 0 and 1, as 0.2 or 20%.
func shareOf(text string) (float64, error) {
	v, err := parseShare(text)
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, trace.WithFix(fmt.Errorf("%q is no share", text), "write it like 0.2 or 20%")
	}
	return v, nil
}

func synthFromModel(ctx context.Context, c *cli.Command, w *model.Workload, in *trace.Input, step trace.Step) error {
	if err := only(c, "a model", "duration", "requests", "rate", "cv", "burstiness", "smoothness", "pin-duration", "fidelity", "strict", "html"); err != nil {
		return err
	}
	if err := noReportNoPage(c); err != nil {
		return err
	}
	if err := burstOfModel(c, w); err != nil {
		return err
	}
	step.Inputs = []trace.Input{*in}
	return generateTo(ctx, c, w, step, true)
}

// generateTo writes what a model gives.
func generateTo(ctx context.Context, c *cli.Command, w *model.Workload, step trace.Step, warm bool) error {
	g := synth.Generation{Duration: c.Duration("duration"), Rate: c.Float("rate"), Seed: c.Uint64("seed"), Pin: c.Bool("pin-duration"), Warm: warm}
	if text := c.String("requests"); text != "" {
		var err error
		if g.Requests, err = parseCount(text); err != nil {
			return misused{fmt.Errorf("--requests: %w", err), trace.Fix(err)}
		}
	}
	for _, name := range []string{"duration", "rate"} {
		if c.IsSet(name) && (g.Duration < 0 || g.Rate < 0 || c.Duration("duration") == 0 && name == "duration" || c.Float("rate") == 0 && name == "rate") {
			return misuse("give a number above 0", "--%s %v: must be above 0", name, c.Value(name))
		}
	}
	var measured *synth.Measuring
	if warm && c.Bool("fidelity") {
		measured = new(synth.Measuring)
	}
	meta, err := writeTrace(c, step, func(emit func(*trace.Batch) error) (trace.Meta, error) {
		return g.Run(ctx, w, func(b *trace.Batch) error {
			if measured != nil {
				measured.Add(b)
			}
			return emit(b)
		})
	})
	if err != nil {
		return err
	}
	if measured == nil {
		return printGenerated(c, meta, w, nil)
	}
	of := analysis.NewGenerated(w, meta.Counts.Kept, g.Seed, step.Flags)
	of.Model = step.Inputs[0].Name
	fidelity := analysis.ModelFidelity(w.Measures, measured.Measures(), of)
	if name := c.String("html"); name != "" {
		if err := writeWhole(name, chart.GeneratedPage(fidelity).Write); err != nil {
			return err
		}
	}
	if err := printGenerated(c, meta, w, fidelity); err != nil {
		return err
	}
	return concludeFidelity(c, fidelity)
}

func synthPlaced(ctx context.Context, c *cli.Command, step trace.Step, memory int64) error {
	if err := only(c, "a trace that is given arrivals", "arrivals", "think", "cv", "burstiness", "smoothness"); err != nil {
		return err
	}
	a, note, err := synth.ParseArrivals(arrivalsText(c))
	if err != nil {
		return misused{fmt.Errorf("--arrivals: %w", err), trace.Fix(err)}
	}
	p := synth.Placing{Arrivals: a, Seed: c.Uint64("seed"), Memory: memory}
	if text := c.String("think"); text != "" {
		if p.Think, err = synth.ParseTimes(text); err != nil {
			return misused{fmt.Errorf("--think: %w", err), trace.Fix(err)}
		}
	}
	var done synth.Placed
	meta, err := rewrite(c, step, func(open synth.Open, emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		meta, done, err = p.Run(ctx, open, emit)
		return meta, err
	})
	if err != nil {
		return err
	}
	return printPlaced(c, meta, done, note)
}

func synthFromLaws(ctx context.Context, c *cli.Command, step trace.Step) error {
	if err := only(c, "laws", "duration", "requests", "pin-duration", "arrivals", "cv", "burstiness", "smoothness", "input-tokens", "output-tokens", "turns", "think", "new-input-tokens", "shared-prefix", "block-tokens", "model-name"); err != nil {
		return err
	}
	for _, name := range []string{"arrivals", "input-tokens", "output-tokens"} {
		if !c.IsSet(name) {
			return misuse("name a trace or a model, or give --arrivals, --input-tokens and --output-tokens", "nothing to make a workload from: no trace, no model, and no --%s", name)
		}
	}
	if !c.IsSet("duration") && !c.IsSet("requests") {
		return misuse("say how much: --duration 10m or --requests 2k", "neither --duration nor --requests")
	}
	w, notes, err := lawWorkload(c, arrivalsText(c))
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(c.Root().ErrWriter, "reprise: note: %s\n", note)
	}
	return generateTo(ctx, c, w, step, false)
}

// burstFlags say how bursty arrivals are, each with another number.
var burstFlags = []string{"cv", "burstiness", "smoothness"}

// arrivalsText is --arrivals with what --cv, or the words of others for it, add.
func arrivalsText(c *cli.Command) string {
	text := c.String("arrivals")
	for _, name := range burstFlags {
		if c.IsSet(name) {
			text = strings.Replace(text, "poisson:", "gamma:", 1) + fmt.Sprintf(",%s=%v", name, c.Float(name))
		}
	}
	return text
}

// burstOfModel makes the arrivals of a model as bursty as the flags say.
func burstOfModel(c *cli.Command, w *model.Workload) error {
	for _, name := range burstFlags {
		if !c.IsSet(name) {
			continue
		}
		a, note, err := synth.ParseArrivals(fmt.Sprintf("gamma:1,%s=%v", name, c.Float(name)))
		if err != nil {
			return misused{fmt.Errorf("--%s: %w", name, err), trace.Fix(err)}
		}
		if note != "" {
			fmt.Fprintf(c.Root().ErrWriter, "reprise: note: %s\n", note)
		}
		for i := range w.Streams {
			if w.Streams[i].Arrivals != nil {
				w.Streams[i].Arrivals.Gaps = a.Gaps
			}
		}
	}
	return nil
}

// lawWorkload makes a model of the flags, with a law of arrivals.
func lawWorkload(c *cli.Command, arrivals string) (*model.Workload, []string, error) {
	if n := c.Int("block-tokens"); n < 0 || n > math.MaxInt32 {
		return nil, nil, misuse("give a number such as 16 or 512", "--block-tokens %d: no size of a block", n)
	}
	l := synth.Laws{BlockTokens: int32(c.Int("block-tokens")), Model: c.String("model-name")}
	var notes []string
	var err error
	bad := func(name string, err error) error { return misused{fmt.Errorf("--%s: %w", name, err), trace.Fix(err)} }
	var note string
	if l.Arrivals, note, err = synth.ParseArrivals(arrivals); err != nil {
		return nil, nil, bad("arrivals", err)
	}
	if note != "" {
		notes = append(notes, note)
	}
	for _, f := range l.Fields() {
		text := c.String(f.Flag)
		if text == "" {
			continue
		}
		if *f.Law, err = f.Parse(text); err != nil {
			return nil, nil, bad(f.Flag, err)
		}
		mean, ok := (*f.Law).Mean()
		if f.Whole {
			mean, ok = synth.MeanLength(*f.Law)
		}
		if ok && strings.Contains(text, ":") {
			notes = append(notes, fmt.Sprintf("--%s %s has mean %.6g%s", f.Flag, text, mean, f.Unit))
		}
	}
	if text := c.String("shared-prefix"); text != "" {
		size, share, given := strings.Cut(text, ",")
		n, err := parseCount(size)
		if err != nil {
			return nil, nil, bad("shared-prefix", err)
		}
		l.Shared, l.SharedShare = n, 1
		if given {
			if l.SharedShare, err = shareOf(share); err != nil {
				return nil, nil, bad("shared-prefix", err)
			}
		}
	}
	w, err := l.Workload()
	if err != nil {
		return nil, nil, misused{err, trace.Fix(err)}
	}
	return w, notes, nil
}
