// Package scrape records what servers say of themselves while a run goes on: their
// metrics pages in the Prometheus text format, on the clock of the run. It stands
// apart from sending: its own goroutines and connections, every answer bounded in time
// and size. A server that is slow or broken only loses samples, which are counted.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"reprise/trace"
	"reprise/trace/results"
)

// DefaultEvery is how often a page is read.
const DefaultEvery = time.Second

// Bounds of a scrape.
const (
	leastEvery   = 100 * time.Millisecond
	leastTimeout = time.Second
	mostTimeout  = 10 * time.Second
	mostBytes    = 16 << 20
	mostSamples  = 100_000
	lastTimeout  = 2 * time.Second // of the scrape after the run
	flushEvery   = 5 * time.Second // a killed run loses no more than this
)

// A Config says what to scrape.
type Config struct {
	URLs  []string          // metrics pages
	Every time.Duration     // 0 = DefaultEvery
	Dir   string            // run directory, which must exist when scraping starts
	HTTP  http.RoundTripper // nil = the network, by a pool of its own

	sink sink // instead of the files of Dir
}

// A sink keeps samples; *results.TelemetryRecorder is the one that writes files.
type sink interface {
	Add(samples []results.Sample) (lost int) // copies what it keeps
	Flush() error                            // keeps them after an error
	Close() error
}

// Check refuses what cannot be scraped, before anything is sent.
func (c *Config) Check() error {
	if c.Every != 0 && c.Every < leastEvery {
		return trace.WithFix(fmt.Errorf("--scrape-every %v: more often than each %v", c.Every, leastEvery), "give a time such as 1s")
	}
	seen := map[string]bool{}
	for _, text := range c.URLs {
		u, err := url.Parse(text)
		if err == nil && u.Scheme == "nvml" {
			if !hasNVML {
				return trace.WithFix(errors.New("--scrape "+Public(text)+": this program was built without NVML"), "build it with make build-nvml, or scrape NVIDIA's dcgm-exporter")
			}
		} else if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return trace.WithFix(errors.New("--scrape: not a URL with a host (not shown, it may hold a password)"), "write it like http://localhost:8000/metrics")
		}
		if seen[Public(text)] {
			return trace.WithFix(fmt.Errorf("--scrape %s is named twice", Public(text)), "name each page once")
		}
		seen[Public(text)] = true
	}
	return nil
}

// Public is a page's URL as files have it: without user and password, with the path
// that it is read from.
func Public(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "unknown"
	}
	u.User = nil
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	return u.String()
}

// A Scraper reads pages until it is stopped.
type Scraper struct {
	begin   time.Time
	every   time.Duration
	sources []*source
	quit    chan struct{}
	over    sync.WaitGroup

	mu  sync.Mutex
	out sink // guarded by mu
}

type source struct {
	*Scraper
	url    string
	client *http.Client
	stats  results.TelemetrySource // of its goroutine, until it has ended
}

// Start begins to scrape on a clock that was 0 at begin.
func Start(c Config, begin time.Time) (*Scraper, error) {
	out := c.sink
	if out == nil {
		files, err := results.NewTelemetryRecorder(c.Dir)
		if err != nil {
			return nil, err
		}
		out = files
	}
	s := &Scraper{begin: begin, every: c.Every, quit: make(chan struct{}), out: out}
	if s.every == 0 {
		s.every = DefaultEvery
	}
	carrier := c.HTTP
	if carrier == nil {
		network := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: mostTimeout}
		if hasNVML {
			network.RegisterProtocol("nvml", localGPUs())
		}
		carrier = network
	}
	for _, text := range c.URLs {
		src := &source{Scraper: s, url: text, client: &http.Client{Transport: carrier}, stats: results.TelemetrySource{URL: Public(text), EveryNS: int64(s.every)}}
		s.sources = append(s.sources, src)
		s.over.Add(1)
		go src.loop()
	}
	s.over.Add(1)
	go s.flushes()
	return s, nil
}

// Stop scrapes a last time, writes what there is, and says how it went. An error is
// of writing; it does not take back what the run measured.
func (s *Scraper) Stop() ([]results.TelemetrySource, error) {
	close(s.quit)
	s.over.Wait()
	err := s.out.Close()
	var list []results.TelemetrySource
	for _, src := range s.sources {
		src.client.CloseIdleConnections()
		list = append(list, src.stats)
	}
	return list, err
}

func (s *Scraper) flushes() {
	defer s.over.Done()
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			_ = s.out.Flush() // kept for the next try; Close returns what stays an error
			s.mu.Unlock()
		case <-s.quit:
			return
		}
	}
}

// loop scrapes on the multiples of every, so that the sources' samples lie side by
// side. What would begin while a scrape goes on is skipped.
func (s *source) loop() {
	defer s.over.Done()
	for next := time.Duration(0); ; {
		select {
		case <-time.After(next - time.Since(s.begin)):
		case <-s.quit:
			s.scrape(lastTimeout)
			return
		}
		s.scrape(min(max(s.every, leastTimeout), mostTimeout))
		next += s.every
		if late := time.Since(s.begin) - next; late > 0 {
			skipped := int64(late/s.every) + 1
			s.stats.Skipped += skipped
			next += time.Duration(skipped) * s.every
		}
	}
}

// scrape reads the page once.
func (s *source) scrape(timeout time.Duration) {
	at := time.Since(s.begin)
	samples, err := s.read(timeout)
	took := time.Since(s.begin) - at
	up := 1.0
	s.stats.Scrapes++
	if err != nil {
		up, samples = 0, nil
		s.stats.Failed++
		if s.stats.FirstError == "" {
			s.stats.FirstError = err.Error()
		}
	}
	samples = append(samples,
		results.Sample{Name: results.ScrapeUp, Kind: "gauge", Value: up},
		results.Sample{Name: results.ScrapeSeconds, Kind: "gauge", Value: took.Seconds()})
	for i := range samples {
		samples[i].AtNS, samples[i].Source = int64(at), s.stats.URL
	}
	s.stats.Samples += int64(len(samples))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Lost += int64(s.out.Add(samples))
}

func (s *source) read(timeout time.Duration) ([]results.Sample, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	page := s.url
	if u, err := url.Parse(page); err == nil && (u.Path == "" || u.Path == "/") {
		u.Path = "/metrics"
		page = u.String()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4;q=1,text/plain;q=0.9,*/*;q=0.1")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, cause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %s", resp.Status)
	}
	samples, err := Parse(io.LimitReader(resp.Body, mostBytes+1))
	return samples, cause(ctx, err)
}

// cause says why a request failed without its URL, which may hold a password.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// Parse reads a page of the Prometheus text format into samples without time and
// source, sorted by name. A page that is too long, or not in the format, is an error.
func Parse(r io.Reader) ([]results.Sample, error) {
	counted := &counter{r: r}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(counted)
	if counted.n > mostBytes {
		return nil, fmt.Errorf("more than %d MB of metrics", mostBytes>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("not the Prometheus text format: %w", err)
	}
	names := make([]string, 0, len(families))
	for name := range families {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []results.Sample
	for _, name := range names {
		f := families[name]
		for _, m := range f.Metric {
			out = appendMetric(out, name, f.GetType(), m)
		}
		if len(out) > mostSamples {
			return nil, fmt.Errorf("more than %d samples on the page", mostSamples)
		}
	}
	return out, nil
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func appendMetric(out []results.Sample, name string, kind dto.MetricType, m *dto.Metric) []results.Sample {
	base := labels(m.Label, "", 0)
	one := func(suffix, labels string, kind string, v float64) {
		out = append(out, results.Sample{Name: name + suffix, Labels: labels, Kind: kind, Value: v})
	}
	switch kind {
	case dto.MetricType_COUNTER:
		one("", base, "counter", m.GetCounter().GetValue())
	case dto.MetricType_GAUGE:
		one("", base, "gauge", m.GetGauge().GetValue())
	case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
		h := m.GetHistogram()
		for _, b := range h.Bucket {
			one("_bucket", labels(m.Label, "le", b.GetUpperBound()), "histogram", float64(b.GetCumulativeCount()))
		}
		one("_sum", base, "histogram", h.GetSampleSum())
		one("_count", base, "histogram", float64(h.GetSampleCount()))
	case dto.MetricType_SUMMARY:
		q := m.GetSummary()
		for _, v := range q.Quantile {
			one("", labels(m.Label, "quantile", v.GetQuantile()), "summary", v.GetValue())
		}
		one("_sum", base, "summary", q.GetSampleSum())
		one("_count", base, "summary", float64(q.GetSampleCount()))
	default:
		one("", base, "untyped", m.GetUntyped().GetValue())
	}
	return out
}

// labels writes the labels of a sample, and one more with a number unless its name
// is "".
func labels(pairs []*dto.LabelPair, more string, bound float64) string {
	list := make([]string, 0, len(pairs)+1)
	for _, p := range pairs {
		list = append(list, p.GetName()+"="+strconv.Quote(p.GetValue()))
	}
	if more != "" {
		text := "+Inf"
		if !math.IsInf(bound, 1) {
			text = strconv.FormatFloat(bound, 'g', -1, 64)
		}
		list = append(list, more+"="+strconv.Quote(text))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}
