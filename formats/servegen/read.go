package servegen

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// readWindows reads a table of windows. A line that is no window is rejected, and is
// time without traffic.
func (c *client) readWindows(s *rows.Sink, f *source.Source) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	lines := source.NewLines(r)
	for {
		line, n, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return jsonx.Named(f, err)
		}
		if strings.TrimSpace(string(line)) == "" {
			continue
		}
		w, err := parseWindow(strings.Split(string(line), ","))
		if k := len(c.windows); err == nil && k > 0 && w.from <= c.windows[k-1].from {
			err = jsonx.Bad("start", "%v comes after %v: windows are in order", w.from, c.windows[k-1].from)
		}
		if err != nil {
			s.Read++
			if err := s.Reject(f, n, string(line), "window", err); err != nil {
				return err
			}
			continue
		}
		c.windows = append(c.windows, w)
	}
	c.close()
	return nil
}

// defaultWindow is how long a window is that stands alone, in seconds.
const defaultWindow = 600

// close gives windows their ends: each ends where the next begins, but none is longer
// than the shortest one, so that what was rejected is no traffic.
func (c *client) close() {
	step := math.Inf(1)
	for i := 1; i < len(c.windows); i++ {
		step = min(step, c.windows[i].from-c.windows[i-1].from)
	}
	if math.IsInf(step, 1) {
		step = defaultWindow
	}
	for i := range c.windows {
		c.windows[i].to = c.windows[i].from + step
	}
}

// A histogram is the distribution of one length from a time on.
type histogram struct {
	from   float64 // s
	values []float64
	cum    []float64 // cumulated probabilities, the last is 1
}

// readLengths reads the histograms of a client.
func (c *client) readLengths(f *source.Source, h *source.Head) error {
	c.lengths = map[string][]histogram{}
	err := jsonx.Objects(f, h, func(o jsonx.Object) error {
		if o.Err != nil {
			return o.Err
		}
		byStart, err := jsonx.Parse(o.Raw)
		if err != nil {
			return err
		}
		for start, raw := range byStart {
			from, err := strconv.ParseFloat(start, 64)
			if err != nil || !(from >= 0) {
				return fmt.Errorf("%q is no start of a window in seconds", start)
			}
			var fields map[string]string
			if err := json.Unmarshal(raw, &fields); err != nil {
				return fmt.Errorf("window %s: no object of histograms as strings", start)
			}
			for name, text := range fields {
				values, cum, err := parseHistogram(text)
				if err != nil {
					return fmt.Errorf("window %s: %s: %w", start, name, err)
				}
				if len(values) > 0 {
					c.lengths[name] = append(c.lengths[name], histogram{from, values, cum})
				}
			}
		}
		return nil
	})
	if err != nil {
		return trace.WithFix(jsonx.Named(f, err), "fetch the file again")
	}
	for _, list := range c.lengths {
		slices.SortFunc(list, func(a, b histogram) int { return int(math.Copysign(1, a.from-b.from)) })
	}
	return nil
}

// maxError is how far the probabilities of a histogram may be from 1 together.
const maxError = 1e-3

// parseHistogram reads a dictionary as Python writes it, {60: 0.2179, 61: 1e-05}: no
// more than numbers is read. "{}" is a window without requests.
func parseHistogram(text string) (values, cum []float64, err error) {
	text = strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(text, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed {
		return nil, nil, errors.New("no dictionary such as {60: 0.25, 61: 0.75}")
	}
	total := 0.0
	for inner = strings.TrimSpace(inner); inner != ""; {
		pair, rest, _ := strings.Cut(inner, ",")
		inner = strings.TrimSpace(rest)
		key, share, ok := strings.Cut(pair, ":")
		v, verr := strconv.ParseFloat(strings.TrimSpace(key), 64)
		p, perr := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if !ok || verr != nil || perr != nil || !(v >= 0) || v > 1e12 || !(p >= 0) || p > 1+maxError {
			return nil, nil, fmt.Errorf("%q is no pair of a value and a probability", strings.TrimSpace(pair))
		}
		total += p
		values, cum = append(values, v), append(cum, total)
	}
	if len(values) == 0 {
		return nil, nil, nil
	}
	if math.Abs(total-1) > maxError {
		return nil, nil, fmt.Errorf("the probabilities make %v, not 1", total)
	}
	for i := range cum {
		cum[i] /= total
	}
	cum[len(cum)-1] = 1
	return values, cum, nil
}

// at returns the histogram of a field that holds at a time: the latest that began by
// then, or the first.
func (c *client) at(field string, t float64) *histogram {
	list := c.lengths[field]
	if len(list) == 0 {
		return nil
	}
	i := sort.Search(len(list), func(i int) bool { return list[i].from > t })
	return &list[max(0, i-1)]
}

// quantile returns the value at u, from 0 to 1.
func (h *histogram) quantile(u float64) float64 {
	return h.values[min(len(h.values)-1, sort.SearchFloat64s(h.cum, u))]
}
