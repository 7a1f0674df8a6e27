package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/synth/model"
	"reprise/trace"
)

func analyzeCommand() *cli.Command {
	return &cli.Command{
		Name:      "analyze",
		Usage:     "say what traffic looks like: arrivals, lengths, sessions, reuse",
		ArgsUsage: "TRACE",
		Description: `Prints rate and burstiness (gap CV, and the index of dispersion in windows of
0.1, 1, 10, 60 and 300 s beside the Poisson line), lengths with quantiles and
tails, how output goes with input length, sessions as recorded or as shared
prefixes tell, and prefix reuse: a cache without limit, a block LRU of any
capacity, reuse time and distance, blocks shared by sessions. Times are seconds,
lengths tokens. What the trace cannot tell is said in words. JSON has more:
every group, and the points of rate, distributions and LRU curve.
--html and --plots draw rate, burstiness, distributions, output by input length
and LRU curve; with --fit, the rate and laws of a model beside them.

Example:
   reprise analyze prod.parquet
   reprise analyze prod.parquet --by model --json
   reprise analyze prod.parquet --html prod.html --plots prod-plots/`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "by", Usage: "also describe groups of rows: model, client or hour"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.StringFlag{Name: "html", Usage: "also write one HTML file with tables and charts, which needs no network; - for standard output, instead of the text"},
			&cli.StringFlag{Name: "plots", Usage: "also draw each chart as a PNG and an SVG file in this directory"},
			&cli.StringFlag{Name: "fit", Usage: "draw the rate and the laws of this model file in the charts"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			switch by := c.String("by"); by {
			case "", analysis.ByModel, analysis.ByClient, analysis.ByHour:
			default:
				return misuse("use model, client or hour", "--by %q: no such grouping", by)
			}
			switch {
			case c.Bool("json") && c.String("html") == "-":
				return misuse("name a file for the page", "--json and --html - both write to standard output")
			case c.IsSet("fit") && !c.IsSet("html") && !c.IsSet("plots"):
				return misuse("add --html FILE or --plots DIR", "--fit is drawn in charts, and there are none")
			}
			return onTrace(runAnalyze)(ctx, c)
		},
	}
}

func runAnalyze(ctx context.Context, c *cli.Command, r *trace.Reader, path string) error {
	// What it keeps is large and holds no pointers: collecting it often is cheap,
	// and letting the heap double is not.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	pictures, err := newPictures(c, path)
	if err != nil {
		return err
	}
	defer pictures.abort()
	t, err := analysis.AnalyzeTraffic(ctx, r, analysis.TrafficOptions{By: c.String("by")})
	if err != nil {
		return err
	}
	if err := pictures.write(t); err != nil {
		return err
	}
	switch w := c.Root().Writer; {
	case c.Bool("json"):
		return writeJSON(w, t)
	case c.String("html") == "-":
		return nil
	default:
		return analysis.WriteTrafficText(w, t)
	}
}

// pictures are the page and the plots of an analysis. Their places are opened
// before a long trace is read.
type pictures struct {
	page  *trace.File // nil for none, or for standard output
	out   io.Writer   // of the page; nil for none
	dir   string      // of plots; "" for none
	model *model.Workload
}

func newPictures(c *cli.Command, in string) (*pictures, error) {
	p := &pictures{dir: c.String("plots")}
	if name := c.String("fit"); name != "" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if p.model, err = model.Read(f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if p.dir != "" {
		if err := os.MkdirAll(p.dir, 0o777); err != nil {
			return nil, err
		}
	}
	switch name := c.String("html"); name {
	case "":
	case "-":
		p.out = c.Root().Writer
	default:
		for _, read := range []string{in, c.String("fit")} {
			if err := notInput(name, read); err != nil {
				return nil, err
			}
		}
		f, err := trace.Create(name)
		if err != nil {
			return nil, err
		}
		p.page, p.out = f, f
	}
	return p, nil
}

func (p *pictures) abort() {
	if p.page != nil {
		p.page.Abort()
	}
}

func (p *pictures) write(t *analysis.Traffic) error {
	if p.out != nil {
		if err := chart.TrafficPage(t, p.model).Write(p.out); err != nil {
			return err
		}
	}
	if p.dir != "" {
		if err := writePlots(p.dir, chart.TrafficCharts(t, p.model)); err != nil {
			return err
		}
	}
	if p.page != nil {
		return p.page.Commit()
	}
	return nil
}

// writePlots draws each chart as two files of its name.
func writePlots(dir string, charts []chart.Chart) error {
	for i := range charts {
		c := &charts[i]
		err := writeWhole(filepath.Join(dir, c.ID+".png"), c.WritePNG)
		if err == nil {
			err = writeWhole(filepath.Join(dir, c.ID+".svg"), c.WriteSVG)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeWhole writes a file that appears whole or not at all.
func writeWhole(path string, write func(io.Writer) error) error {
	f, err := trace.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}
