package otlp

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

func ms(v int64) trace.Optional[time.Duration] {
	return trace.Some(time.Duration(v) * time.Millisecond)
}

// answered is a request of two chunks.
func answered(id, sent int64) results.Result {
	return results.Result{
		ID: id, URL: "http://host:8000/v1/chat/completions", Protocol: "chat", Model: trace.Some("m"), Session: trace.Some("a"), Turn: trace.Some(int32(id)), Outcome: results.OutcomeOK,
		Due: ms(sent), Eligible: ms(sent), Dispatched: ms(sent + 1), Sent: ms(sent + 2), End: ms(sent + 50), HTTPStatus: trace.Some(int32(200)), FinishReason: trace.Some("stop"),
		CountedInputTokens: trace.Some(int64(100)), OutputTokens: trace.Some(int64(4)), OutputSource: trace.Some(results.SourceUsage),
		Ledger: []results.Entry{{At: 20_000, Tokens: trace.Some(int32(1)), Kind: results.KindContent, Source: results.SourceUsage}, {At: 44_000, Tokens: trace.Some(int32(3)), Kind: results.KindContent, Source: results.SourceUsage, Event: 1}},
	}
}

func run() (*results.Opened, *results.Run) {
	failed := answered(2, 100)
	failed.Outcome, failed.Cause, failed.Ledger, failed.OutputTokens, failed.HTTPStatus = results.OutcomeFailed, trace.Some("HTTP 500: no"), nil, trace.Optional[int64]{}, trace.Some(int32(500))
	alone := answered(3, 200)
	alone.Session = trace.Optional[string]{}
	unsent := results.Result{ID: 4, Outcome: results.OutcomeUnsent, Protocol: "chat"}
	r := results.Run{Version: "1.2.3", Started: "2026-01-02T03:04:05Z", Label: "open loop", Protocol: "chat", Labels: map[string]string{"gpu": "x"}, Ended: &results.Ended{DurationNS: 250e6, Sent: 4}}
	return results.InMemory(r, []results.Result{answered(0, 0), answered(1, 60), failed, alone, unsent}), &r
}

// A collector decodes what it is sent; answers, if any, are given in turn.
type collector struct {
	t       *testing.T
	answers []answer
	asked   []string
	header  http.Header
	spans   []decodedSpan
	metrics map[string]decodedMetric
}

type answer struct {
	code  int
	body  string
	after string
}

type decodedValue struct {
	Text   *string                               `json:"stringValue"`
	Int    *string                               `json:"intValue"`
	Double *float64                              `json:"doubleValue"`
	Bool   *bool                                 `json:"boolValue"`
	Array  *struct{ Values []map[string]string } `json:"arrayValue"`
}

type decodedAttributes []struct {
	Key   string
	Value decodedValue
}

func (a decodedAttributes) text(key string) string {
	for _, v := range a {
		switch {
		case v.Key != key:
		case v.Value.Text != nil:
			return *v.Value.Text
		case v.Value.Int != nil:
			return *v.Value.Int
		case v.Value.Double != nil:
			return strconv.FormatFloat(*v.Value.Double, 'f', -1, 64)
		}
	}
	return ""
}

type decodedSpan struct {
	TraceID, SpanID, Name string
	Kind                  int
	StartTimeUnixNano     string
	EndTimeUnixNano       string
	Attributes            decodedAttributes
	Events                []struct{ TimeUnixNano, Name string }
	Status                struct {
		Code    int
		Message string
	}
}

type decodedPoint struct {
	Attributes                      decodedAttributes
	StartTimeUnixNano, TimeUnixNano string
	AsDouble, Sum                   *float64
	AsInt, Count                    string
	QuantileValues                  []struct{ Quantile, Value float64 }
}

type decodedPoints struct {
	DataPoints             []decodedPoint
	AggregationTemporality int
	IsMonotonic            bool
}

type decodedMetric struct {
	Name, Description, Unit string
	Gauge, Sum, Summary     *decodedPoints
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.asked, c.header = append(c.asked, r.URL.Path), r.Header
	now := answer{200, "{}", ""}
	if len(c.answers) > 0 {
		now, c.answers = c.answers[0], c.answers[1:]
	}
	if now.code == 200 {
		c.take(r.URL.Path, body)
	}
	resp := &http.Response{StatusCode: now.code, Status: strconv.Itoa(now.code) + " " + http.StatusText(now.code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(now.body)), Request: r}
	if now.after != "" {
		resp.Header.Set("Retry-After", now.after)
	}
	return resp, nil
}

// take decodes a body; what is not of the protocol is an error.
func (c *collector) take(path string, body []byte) {
	type resourced struct {
		Resource   struct{ Attributes decodedAttributes }
		ScopeSpans []struct {
			Scope struct{ Name, Version string }
			Spans []decodedSpan
		}
		ScopeMetrics []struct {
			Scope   struct{ Name, Version string }
			Metrics []decodedMetric
		}
	}
	var sent struct{ ResourceSpans, ResourceMetrics []resourced }
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&sent); err != nil {
		c.t.Errorf("%s: %v in %s", path, err, body)
	}
	for _, r := range append(sent.ResourceSpans, sent.ResourceMetrics...) {
		if r.Resource.Attributes.text("service.name") != "reprise" || r.Resource.Attributes.text("reprise.label.gpu") != "x" {
			c.t.Errorf("resource %+v", r.Resource)
		}
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
		for _, s := range r.ScopeMetrics {
			for _, m := range s.Metrics {
				c.metrics[m.Name] = m
			}
		}
	}
}

func client(t *testing.T, answers ...answer) (*Client, *collector, *[]time.Duration) {
	t.Helper()
	k := &collector{t: t, answers: answers, metrics: map[string]decodedMetric{}}
	c, err := New("http://user:secret@collector:4318/base", "authorization=Bearer%20key, x-tenant=a", k)
	if err != nil {
		t.Fatal(err)
	}
	var slept []time.Duration
	c.sleep = func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }
	return c, k, &slept
}

func TestSpans(t *testing.T) {
	c, k, _ := client(t)
	o, r := run()
	s, err := c.NewSpans(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for res, err := range o.Results() {
		if err != nil {
			t.Fatal(err)
		}
		s.Add(&res)
	}
	if err := s.Close(); err != nil || s.N != 4 || len(k.spans) != 4 {
		t.Fatalf("%d spans sent, %d received, %v", s.N, len(k.spans), err)
	}
	if k.header.Get("Authorization") != "Bearer key" || k.header.Get("X-Tenant") != "a" || k.header.Get("Content-Type") != "application/json" || k.asked[0] != "/base/v1/traces" {
		t.Errorf("%v %q", k.header, k.asked)
	}
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano()
	first, failed, alone := k.spans[0], k.spans[2], k.spans[3]
	if first.Name != "chat m" || first.Kind != 3 || first.StartTimeUnixNano != strconv.FormatInt(begin+2e6, 10) || first.EndTimeUnixNano != strconv.FormatInt(begin+50e6, 10) || first.Status.Code != 0 {
		t.Errorf("%+v", first)
	}
	for key, want := range map[string]string{"gen_ai.usage.input_tokens": "100", "gen_ai.usage.output_tokens": "4", "server.address": "host", "server.port": "8000", "reprise.ttft": "0.02", "reprise.lateness": "0.001", "gen_ai.conversation.id": "a"} {
		if got := first.Attributes.text(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if len(first.Events) != 2 || first.Events[0].Name != "first token" || first.Events[0].TimeUnixNano != strconv.FormatInt(begin+22e6, 10) {
		t.Errorf("events %+v", first.Events)
	}
	if failed.Status.Code != 2 || failed.Status.Message != "failed: HTTP 500: no" || failed.Attributes.text("error.type") != "failed" || failed.Attributes.text("gen_ai.usage.output_tokens") != "" || len(failed.Events) != 0 {
		t.Errorf("%+v", failed)
	}
	if first.TraceID != failed.TraceID || first.TraceID == alone.TraceID || first.SpanID == failed.SpanID {
		t.Errorf("ids %s %s, %s %s, %s", first.TraceID, first.SpanID, failed.TraceID, failed.SpanID, alone.TraceID)
	}
	for _, id := range []struct {
		text string
		n    int
	}{{first.TraceID, 16}, {first.SpanID, 8}} {
		if b, err := hex.DecodeString(id.text); err != nil || len(b) != id.n {
			t.Errorf("id %s", id.text)
		}
	}
}

// TestBatches: a long run goes in requests of bounded size.
func TestBatches(t *testing.T) {
	c, k, _ := client(t)
	_, r := run()
	s, err := c.NewSpans(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(2*batchSpans + 1) {
		res := answered(i, i)
		s.Add(&res)
	}
	if err := s.Close(); err != nil || len(k.asked) != 3 || s.N != 2*batchSpans+1 {
		t.Errorf("%d requests, %d spans, %v", len(k.asked), s.N, err)
	}
}

func TestMetrics(t *testing.T) {
	c, k, _ := client(t)
	o, r := run()
	sum, err := analysis.Summarize(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.SendSummary(t.Context(), sum, r)
	if err != nil || n != len(k.metrics) || n < 10 {
		t.Fatalf("%d sent, %d received, %v", n, len(k.metrics), err)
	}
	ttft := k.metrics["reprise.ttft"]
	if ttft.Unit != "s" || ttft.Summary == nil || ttft.Description == "" {
		t.Fatalf("%+v", ttft)
	}
	p := ttft.Summary.DataPoints[0]
	if p.Count != "3" || *p.Sum < 0.0599 || *p.Sum > 0.0601 || len(p.QuantileValues) != 7 || p.QuantileValues[1].Quantile != 0.5 || p.QuantileValues[1].Value != 0.02 || p.TimeUnixNano <= p.StartTimeUnixNano {
		t.Errorf("%+v", p)
	}
	requests := k.metrics["reprise.requests"].Sum
	if requests.AggregationTemporality != 2 || !requests.IsMonotonic {
		t.Errorf("%+v", requests)
	}
	for _, p := range requests.DataPoints {
		if want := map[string]string{"ok": "3", "failed": "1", "unsent": "1"}[p.Attributes.text("reprise.outcome")]; p.AsInt != want {
			t.Errorf("%+v, want %s", p, want)
		}
	}
	if rate := k.metrics["reprise.error_rate"].Gauge.DataPoints[0].AsDouble; *rate != 0.25 {
		t.Errorf("error rate %v", *rate)
	}
}

// TestRetries: a collector that is busy is asked again, one that refuses is not.
func TestRetries(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		asked   int
		slept   []time.Duration
		err     string
	}{
		"busy":          {[]answer{{429, "", "3"}, {503, "", ""}, {200, "{}", ""}}, 3, []time.Duration{3 * time.Second, time.Second}, ""},
		"always busy":   {[]answer{{503, "", ""}, {503, "", ""}, {503, "", "999"}, {503, "", ""}}, 4, []time.Duration{500 * time.Millisecond, time.Second, 10 * time.Second}, "HTTP 503"},
		"refused":       {[]answer{{400, "no such\nencoding", ""}}, 1, nil, "HTTP 400 Bad Request: no such encoding"},
		"partly":        {[]answer{{200, `{"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"too old"}}`, ""}}, 1, nil, "the collector refused 2 data points: too old"},
		"other answers": {[]answer{{200, "\x0a\x00", ""}}, 1, nil, ""},
	} {
		k, collected, slept := client(t, c.answers...)
		o, r := run()
		sum, err := analysis.Summarize(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.SendSummary(t.Context(), sum, r)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if len(collected.asked) != c.asked || len(*slept) != len(c.slept) {
			t.Fatalf("%s: asked %d times, slept %v", name, len(collected.asked), *slept)
		}
		for i, want := range c.slept {
			if (*slept)[i] != want {
				t.Errorf("%s: slept %v, want %v", name, *slept, c.slept)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ base, headers, want string }{
		{"collector:4318", "", "--otlp: not a URL"}, {"ftp://c", "", "--otlp: not a URL"}, {"http://c", "token", "OTEL_EXPORTER_OTLP_HEADERS"}, {"http://c", "a=%zz", "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		if _, err := New(c.base, c.headers, nil); err == nil || !strings.Contains(err.Error(), c.want) || trace.Fix(err) == "" {
			t.Errorf("%q %q: %v", c.base, c.headers, err)
		}
	}
	c, _, _ := client(t)
	if _, err := c.NewSpans(t.Context(), &results.Run{}); err == nil || !strings.Contains(err.Error(), "when the run started") {
		t.Errorf("%v", err)
	}
}
