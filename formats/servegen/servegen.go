// Package servegen reads the data of ServeGen (alibaba/ServeGen, data/; arXiv
// 2505.09999): not requests, but what each client's traffic was like. A client has a
// table of windows of ten minutes with rate, CV and law of the gaps, and histograms
// of lengths every six hours. An import draws requests from these by a seed; a
// [Workload] keeps them as a model.
//
// The source leaves out: sessions, prefixes, which lengths came together, texts,
// latencies.
package servegen

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/analysis/stats"
	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells the two kinds of file by their content.
func Detect(h *source.Head) (evidence string, ok bool) {
	switch h.Container {
	case "csv":
		if len(h.Header) != 6 {
			return "", false
		}
		if _, err := parseWindow(h.Header); err != nil {
			return "", false
		}
		return "table of six columns without a header: start, rate, CV, law, shape, scale", true
	case "json":
		for key, kind := range h.Keys {
			if _, err := strconv.ParseInt(key, 10, 64); err != nil || kind != "object" {
				return "", false
			}
		}
		for key := range h.Inner {
			if _, field, _ := strings.Cut(key, "."); slices.Contains(lengths, field) && h.Inner[key] == "string" {
				return "object by window start, with histograms of lengths as strings", true
			}
		}
	}
	return "", false
}

// fields of the histograms that are tokens of the prompt.
var prompts = []string{"input_tokens", "text_tokens", "image_tokens", "audio_tokens", "video_tokens"}

var lengths = append([]string{"output_tokens"}, prompts...)

// An Importer draws requests from the windows and histograms of clients.
type Importer struct {
	Seed     uint64
	From     time.Duration // since the data begin
	Duration time.Duration // from From on; 0 = to the end of the data
}

// Import implements formats.Importer. It holds the windows and histograms of all
// clients; requests are drawn in order of time.
func (i *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := rows.New(emit, reject)
	clients, err := read(ctx, s, src)
	if err != nil {
		return trace.Meta{}, err
	}
	account(s, clients)
	s.Guess("requests", "drawn by seed "+strconv.FormatUint(i.Seed, 10), "--seed", "the data are rates and histograms, no requests; input and output lengths are drawn apart within a window")
	if err := i.draw(ctx, s, clients); err != nil {
		return trace.Meta{}, err
	}
	meta, err := s.Meta("servegen", "drawn")
	meta.TickNS = trace.Optional[int64]{} // times are drawn, not recorded
	return meta, err
}

// A client is what the data say of one.
type client struct {
	name    string // its file's, without the ending
	model   string // the directory's
	file    *source.Source
	windows []window
	lengths map[string][]histogram // by field, in order of time
}

// A window is a stretch of time at one rate.
type window struct {
	from  float64 // s; it ends where the next one begins
	to    float64
	rate  float64 // requests/s
	cv    float64 // of the gaps, as recorded
	law   string  // gamma, weibull or exponential; "" in a window without traffic
	shape float64
	scale float64 // as fitted: the mean need not be 1/rate
}

// gaps returns the law of the gaps in units of their mean.
func (w *window) gaps() stats.Law {
	switch w.law {
	case "gamma":
		return stats.Gamma{Shape: w.shape, Scale: 1 / w.shape}
	case "weibull":
		return stats.Weibull{Shape: w.shape, Scale: 1 / math.Gamma(1+1/w.shape)}
	}
	return stats.Exponential{Rate: 1}
}

// impliedCV is the CV that the law has.
func (w *window) impliedCV() float64 {
	sd, _ := w.gaps().SD()
	return sd
}

// mass is how many requests the window is expected to have.
func (w *window) mass() float64 { return w.rate * (w.to - w.from) }

// parseWindow reads the six fields of a line.
func parseWindow(fields []string) (w window, err error) {
	if len(fields) != 6 {
		return w, fmt.Errorf("%d fields, not the six start, rate, CV, law, shape, scale", len(fields))
	}
	for _, f := range []struct {
		name string
		at   int
		to   *float64
	}{{"start", 0, &w.from}, {"rate", 1, &w.rate}, {"CV", 2, &w.cv}, {"shape", 4, &w.shape}, {"scale", 5, &w.scale}} {
		v, err := strconv.ParseFloat(strings.TrimSpace(fields[f.at]), 64)
		if err != nil || !(v >= 0) || v > 1e12 {
			return w, jsonx.Bad(f.name, "%q is no number from 0 on", fields[f.at])
		}
		*f.to = v
	}
	w.law = strings.ToLower(strings.TrimSpace(fields[3]))
	switch w.law {
	case "gamma", "weibull", "exponential", "":
	default:
		return w, jsonx.Bad("law", "%q is none of Gamma, Weibull and Exponential", fields[3])
	}
	if w.rate > 0 && (w.law == "gamma" || w.law == "weibull") && !(w.shape >= minShape) {
		return w, jsonx.Bad("shape", "%v is below %v", w.shape, minShape)
	}
	return w, nil
}

// minShape is the least shape of a law of gaps: below, a gap is 0 but once in a
// lifetime.
const minShape = 0.01

var chunkName = regexp.MustCompile(`^(.*)-(trace\.csv|dataset\.json)(\.gz|\.zst|\.bz2)?$`)

// read reads the files of all clients, which come in pairs by name.
func read(ctx context.Context, s *rows.Sink, src []*source.Source) ([]*client, error) {
	byPath := map[string]*client{}
	var clients []*client
	for _, f := range src {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := f.Head()
		if err != nil {
			return nil, err
		}
		if h.Container == "parquet" || h.Container == "arrow" {
			return nil, trace.WithFix(fmt.Errorf("%s: %s, but ServeGen's files are CSV and JSON", f.Name, h.Container), "name another --format")
		}
		name := chunkName.FindStringSubmatch(f.Base())
		if name == nil {
			return nil, trace.WithFix(fmt.Errorf("%s: not named as ServeGen's files are, CLIENT-trace.csv or CLIENT-dataset.json", f.Name), "import a directory such as data/language/m-large; the names say which files belong together")
		}
		path := filepath.Join(filepath.Dir(f.Name), name[1])
		c := byPath[path]
		if c == nil {
			c = &client{name: name[1], model: filepath.Base(filepath.Dir(f.Name))}
			if c.model == "." || c.model == string(filepath.Separator) {
				c.model = ""
			}
			byPath[path] = c
			clients = append(clients, c)
		}
		if name[2] == "trace.csv" {
			c.file = f
			err = c.readWindows(s, f)
		} else {
			err = c.readLengths(f, h)
		}
		if err != nil {
			return nil, err
		}
	}
	return clients, whole(clients)
}

// whole refuses clients of which a file is missing.
func whole(clients []*client) error {
	busy := 0
	for _, c := range clients {
		what := ""
		switch {
		case c.file == nil:
			what = "-trace.csv"
		case c.lengths == nil:
			what = "-dataset.json"
		case len(c.windows) == 0:
			return trace.WithFix(fmt.Errorf("%s: no window could be used", c.file.Name), "see the rejected rows for the reasons")
		}
		if what != "" {
			return trace.WithFix(fmt.Errorf("client %s: %s%s is not there", c.name, c.name, what), "import the directory that has both files of each client")
		}
		for i := range c.windows {
			if c.windows[i].rate > 0 {
				busy++
			}
		}
	}
	if busy == 0 {
		return trace.WithFix(fmt.Errorf("no traffic in any window of %d clients", len(clients)), "name a directory of ServeGen's data, such as data/language/m-large")
	}
	return nil
}

// account counts what was read.
func account(s *rows.Sink, clients []*client) {
	var windows, busy, off, histograms int64
	for _, c := range clients {
		for i := range c.windows {
			w := &c.windows[i]
			windows++
			if w.rate == 0 {
				continue
			}
			busy++
			if r := w.impliedCV() / w.cv; !(r > 0.9 && r < 1.1) {
				off++
			}
		}
		most := 0
		for _, h := range c.lengths {
			most = max(most, len(h))
		}
		histograms += int64(most)
	}
	s.Note("clients", int64(len(clients)))
	s.Note("windows", windows)
	s.Note("windows with traffic", busy)
	s.Note("windows whose law of gaps has another CV than the recorded one (by more than 10 %; the law is used)", off)
	s.Note("windows of lengths that are not empty", histograms)
}
