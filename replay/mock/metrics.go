package mock

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bucket bounds of vLLM's histograms (vllm/v1/metrics/loggers.py), seconds.
var (
	ttftBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	itlBounds  = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	e2eBounds  = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

// A histogram counts values up to each bound; it is guarded by the mutex of its metrics.
type histogram struct {
	bounds []float64
	counts []uint64 // one more than bounds
	sum    float64
}

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) {
	v := d.Seconds()
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += v
}

// metrics has the counters that the engine does not keep.
type metrics struct {
	mu         sync.Mutex
	prompt     uint64 // tokens of requests whose first token came
	generation uint64 // tokens made
	finished   map[string]uint64
	ttft       histogram // arrival to first token
	itl        histogram // between two steps of one sequence, as vLLM counts it
	e2e        histogram // arrival to last token
}

func newMetrics() metrics {
	return metrics{
		finished: map[string]uint64{finishStop: 0, finishLength: 0, "abort": 0},
		ttft:     newHistogram(ttftBounds), itl: newHistogram(itlBounds), e2e: newHistogram(e2eBounds),
	}
}

// emitted books one step's tokens of a sequence; previous is its step before.
func (m *metrics) emitted(at, arrival, previous time.Duration, tokens, promptTokens int, first, last bool, finish string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation += uint64(tokens)
	if first {
		m.prompt += uint64(promptTokens)
		m.ttft.observe(at - arrival)
	} else {
		m.itl.observe(at - previous)
	}
	if last {
		m.finished[finish]++
		m.e2e.observe(at - arrival)
	}
}

func (m *metrics) aborted(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finished["abort"] += uint64(n)
}

// A page builds the text of the Prometheus exposition format, version 0.0.4.
type page struct {
	strings.Builder
	model string // label of every series
}

func (p *page) head(name, kind, help string) {
	fmt.Fprintf(p, "# HELP vllm:%s %s\n# TYPE vllm:%s %s\n", name, help, name, kind)
}

func (p *page) value(name, labels string, v float64) {
	fmt.Fprintf(p, "vllm:%s{model_name=%q%s} %s\n", name, p.model, labels, strconv.FormatFloat(v, 'g', -1, 64))
}

func (p *page) one(name, kind, help string, v float64) {
	p.head(name, kind, help)
	p.value(name, "", v)
}

func (p *page) histogram(name, help string, h *histogram) {
	p.head(name, "histogram", help)
	total := uint64(0)
	for i, n := range h.counts {
		total += n
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
		}
		p.value(name+"_bucket", `,le="`+bound+`"`, float64(total))
	}
	p.value(name+"_sum", "", h.sum)
	p.value(name+"_count", "", float64(total))
}

// serveMetrics writes the metrics under vLLM's names. All served names are one
// engine; its series have the first of them, as in vLLM.
func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	load := s.Load()
	p := page{model: s.config.Models[0]}
	p.one("num_requests_running", "gauge", "Sequences in the batch.", float64(load.Running))
	p.one("num_requests_waiting", "gauge", "Sequences in the queue.", float64(load.Waiting))
	p.one("kv_cache_usage_perc", "gauge", "KV tokens taken by running requests, 1 = all.", float64(load.KVUsed)/float64(load.KVTokens))
	p.one("prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.", float64(load.QueriedTokens))
	p.one("prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache.", float64(load.CachedTokens))

	m := &s.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	p.one("prompt_tokens_total", "counter", "Prompt tokens processed.", float64(m.prompt))
	p.one("generation_tokens_total", "counter", "Tokens generated.", float64(m.generation))
	p.head("request_success_total", "counter", "Sequences that ended, by reason.")
	for _, reason := range []string{finishStop, finishLength, "abort"} {
		p.value("request_success_total", `,finished_reason="`+reason+`"`, float64(m.finished[reason]))
	}
	p.histogram("time_to_first_token_seconds", "Arrival to first token.", &m.ttft)
	p.histogram("inter_token_latency_seconds", "Time between two steps of a sequence.", &m.itl)
	p.histogram("e2e_request_latency_seconds", "Arrival to last token.", &m.e2e)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprint(w, p.String())
}
