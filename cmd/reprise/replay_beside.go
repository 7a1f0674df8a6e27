package main

import (
	"fmt"
	"maps"
	"slices"
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
		&cli.StringFlag{Name: "metrics-listen", Usage: "address, such as 127.0.0.1:9090, on which /metrics says in the Prometheus text format what the run is doing, while it runs"},
	}
}

// A beside is what goes on beside a run.
type beside struct {
	pages    scrape.Config
	own      *metricsPage // nil = none
	board    *dashboard   // nil = none
	finished bool
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

// listen opens the page of --metrics-listen, before anything is sent.
func (b *beside) listen(c *cli.Command) (err error) {
	addr := c.String("metrics-listen")
	if addr == "" {
		return nil
	}
	if b.own, err = servePage(addr); err != nil {
		return trace.WithFix(fmt.Errorf("--metrics-listen: %w", err), "name a free address of this machine, such as 127.0.0.1:9090, or port 0 for any")
	}
	fmt.Fprintf(c.Root().ErrWriter, "reprise: metrics of the run on http://%s/metrics\n", b.own.addr)
	return nil
}

// attach lets the next run feed it. What goes wrong beside a run is said and does not end it.
func (b *beside) attach(c *cli.Command, config *replay.Config) {
	b.pages.Dir = config.Dir
	if b.board = dashboardFor(c); b.board != nil {
		config.Progress = b.board.update
	}
	if own, shown := b.own, config.Progress; own != nil {
		config.Progress = func(p replay.Progress) {
			own.update(p)
			if shown != nil {
				shown(p)
			}
		}
	}
	config.Observe = func(begin time.Time) func(*results.Run) {
		b.board.start()
		stop := b.scrape(begin)
		return func(run *results.Run) {
			stop(run)
			b.board.stop()
		}
	}
}

// scrape begins to read the pages of servers; the function that it returns ends that.
func (b *beside) scrape(begin time.Time) func(*results.Run) {
	if len(b.pages.URLs) == 0 {
		return func(*results.Run) {}
	}
	scraper, err := scrape.Start(b.pages, begin)
	if err != nil {
		return func(run *results.Run) {
			run.Warnings = append(run.Warnings, fmt.Sprintf("nothing was scraped: %v", err))
		}
	}
	return func(run *results.Run) {
		if run.Telemetry, err = scraper.Stop(); err != nil {
			run.Warnings = append(run.Warnings, fmt.Sprintf("what was scraped was not written: %v", err))
		}
	}
}

// close ends what is shown; it may be called again.
func (b *beside) close() {
	b.board.stop()
	if b.own != nil && !b.finished {
		b.own.close()
	}
	b.finished = true
}

// publicPages are the pages of --scrape as files have them.
func publicPages(c *cli.Command) (list []string) {
	for _, page := range c.StringSlice("scrape") {
		list = append(list, scrape.Public(page))
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
