package main

import (
	"net"
	"net/http"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"reprise/replay"
)

// A metricsPage serves what a run is doing, in the Prometheus text format, while it
// runs. Its numbers are those of the last second.
type metricsPage struct {
	server *http.Server
	addr   string

	mu   sync.Mutex
	last *replay.Progress // guarded by mu; nil before the run has begun
}

// servePage listens on addr.
func servePage(addr string) (*metricsPage, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	m := &metricsPage{addr: ln.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", m.serve)
	mux.HandleFunc("GET /{$}", m.serve)
	m.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second}
	go m.server.Serve(ln) // until it is closed
	return m, nil
}

func (m *metricsPage) update(p replay.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = &p
}

func (m *metricsPage) close() { m.server.Close() }

func (m *metricsPage) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	p := m.last
	m.mu.Unlock()
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	w.Header().Set("Content-Type", string(format))
	e := expfmt.NewEncoder(w, format)
	for _, f := range families(p) {
		if e.Encode(f) != nil {
			return // who asked has gone
		}
	}
}

// families are the metrics of a run; of one that has not begun, only that.
func families(p *replay.Progress) []*dto.MetricFamily {
	begun := 0.0
	if p != nil {
		begun = 1
	}
	list := []*dto.MetricFamily{gaugeOf("reprise_run_begun", "1 once the clock of the run has started, 0 before.", begun)}
	if p == nil {
		return list
	}
	sending := 0.0
	if p.Sending {
		sending = 1
	}
	list = append(list,
		gaugeOf("reprise_run_seconds", "Time since the run began.", p.Elapsed.Seconds()),
		gaugeOf("reprise_run_sending", "1 while requests are still to be sent.", sending))
	if !p.Endless {
		list = append(list, gaugeOf("reprise_requests_planned", "Requests of the plan.", float64(p.Planned)))
	}
	list = append(list,
		counterOf("reprise_requests_sent_total", "Requests that the client acted on.", sample{v: float64(p.Sent)}),
		gaugeOf("reprise_requests_in_flight", "Requests sent whose answer has not ended.", float64(p.InFlight)))
	var outcomes []sample
	for _, name := range sortedKeys(p.Outcomes) {
		outcomes = append(outcomes, sample{name, float64(p.Outcomes[name])})
	}
	if outcomes != nil {
		list = append(list, counterOf("reprise_requests_done_total", "Requests that have ended, by outcome, without the warm-up.", outcomes...))
	}
	if left, _, ok := timeLeft(p); ok {
		list = append(list, gaugeOf("reprise_run_left_seconds", "Time until the last request is sent, as far as that is known.", left.Seconds()))
	}
	return append(list,
		counterOf("reprise_input_tokens_total", "Prompt tokens as the server counted them, of successful requests that have ended.", sample{v: float64(p.Input)}),
		counterOf("reprise_output_tokens_total", "Output tokens of successful requests that have ended.", sample{v: float64(p.Output)}),
		gaugeOf("reprise_lateness_max_seconds", "Largest delay of the client's own in the last second.", p.Lateness.Seconds()),
		summaryOf("reprise_lateness_seconds", "Delay of the client's own, dispatched - eligible, since the run began.", p.Late),
		summaryOf("reprise_ttft_seconds", "Time to first token of successful requests, since the run began.", p.TTFT),
		summaryOf("reprise_itl_seconds", "Inter-token latency of successful requests, by token, since the run began.", p.ITL))
}

// A sample is a number, with an outcome as its label unless that is "".
type sample struct {
	outcome string
	v       float64
}

func family(name, help string, kind dto.MetricType, metrics ...*dto.Metric) *dto.MetricFamily {
	return &dto.MetricFamily{Name: &name, Help: &help, Type: &kind, Metric: metrics}
}

func gaugeOf(name, help string, v float64) *dto.MetricFamily {
	return family(name, help, dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: &v}})
}

func counterOf(name, help string, samples ...sample) *dto.MetricFamily {
	f := family(name, help, dto.MetricType_COUNTER)
	for _, s := range samples {
		m := &dto.Metric{Counter: &dto.Counter{Value: &s.v}}
		if s.outcome != "" {
			m.Label = []*dto.LabelPair{{Name: new("outcome"), Value: &s.outcome}}
		}
		f.Metric = append(f.Metric, m)
	}
	return f
}

func summaryOf(name, help string, q replay.Quantiles) *dto.MetricFamily {
	s := &dto.Summary{SampleCount: new(uint64(q.N)), SampleSum: new(q.Sum.Seconds())}
	if q.N > 0 {
		for _, at := range []struct {
			q float64
			v time.Duration
		}{{0.5, q.P50}, {0.95, q.P95}, {0.99, q.P99}} {
			s.Quantile = append(s.Quantile, &dto.Quantile{Quantile: new(at.q), Value: new(at.v.Seconds())})
		}
	}
	return family(name, help, dto.MetricType_SUMMARY, &dto.Metric{Summary: s})
}
