package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/replay"
	"reprise/replay/scrape"
	"reprise/trace"
	"reprise/trace/results"
)

// besideFlags are about what goes on beside a run.
func besideFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "scrape", Usage: "metrics page of a server, in the Prometheus text format, such as http://staging:8000/metrics (repeatable): what it says during the run goes to " + results.TelemetryFile},
		&cli.DurationFlag{Name: "scrape-every", Value: scrape.DefaultEvery, Usage: "how often; a page that answers late loses samples and holds up nothing"},
	}
}

// A beside is what goes on beside a run.
type beside struct {
	pages scrape.Config
}

// besideOf reads besideFlags.
func besideOf(c *cli.Command) (*beside, error) {
	b := &beside{pages: scrape.Config{URLs: c.StringSlice("scrape"), Every: c.Duration("scrape-every")}}
	if b.pages.Every <= 0 {
		return nil, misuse("give a time such as 1s", "--scrape-every %v: must be above 0", b.pages.Every)
	}
	if c.IsSet("scrape-every") && len(b.pages.URLs) == 0 {
		return nil, misuse("name a page with --scrape URL", "--scrape-every without --scrape")
	}
	if err := b.pages.Check(); err != nil {
		return nil, misused{err, trace.Fix(err)}
	}
	return b, nil
}

// attach lets a run start it. What goes wrong beside a run is said and does not end it.
func (b *beside) attach(config *replay.Config, stderr io.Writer) {
	if len(b.pages.URLs) == 0 {
		return
	}
	b.pages.Dir = config.Dir
	config.Observe = func(begin time.Time) func(*results.Run) {
		scraper, err := scrape.Start(b.pages, begin)
		if err != nil {
			fmt.Fprintf(stderr, "reprise: no telemetry: %v\n", err)
			return func(*results.Run) {}
		}
		return func(run *results.Run) {
			if run.Telemetry, err = scraper.Stop(); err != nil {
				fmt.Fprintf(stderr, "reprise: telemetry: %v\n", err)
				run.Warnings = append(run.Warnings, fmt.Sprintf("telemetry was not written: %v", err))
			}
		}
	}
}

// publicPages are the pages of --scrape as files have them.
func publicPages(c *cli.Command) (list []string) {
	for _, page := range c.StringSlice("scrape") {
		list = append(list, scrape.Public(page))
	}
	return list
}
