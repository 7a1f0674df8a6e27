package scrape

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

const text = `# HELP vllm:num_requests_running Sequences in the batch.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m \"x\"",engine="0"} 3
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{model_name="m"} 12345
# TYPE ttft histogram
ttft_bucket{le="0.1"} 1
ttft_bucket{le="+Inf"} 4
ttft_sum 2.5
ttft_count 4
# TYPE rpc summary
rpc{quantile="0.5"} 0.1
rpc_sum 3
rpc_count 9
DCGM_FI_DEV_POWER_USAGE{gpu="0"} NaN
`

func TestParse(t *testing.T) {
	got, err := Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []results.Sample{
		{Name: "DCGM_FI_DEV_POWER_USAGE", Labels: `gpu="0"`, Kind: "untyped", Value: math.NaN()},
		{Name: "rpc", Labels: `quantile="0.5"`, Kind: "summary", Value: 0.1},
		{Name: "rpc_sum", Kind: "summary", Value: 3},
		{Name: "rpc_count", Kind: "summary", Value: 9},
		{Name: "ttft_bucket", Labels: `le="0.1"`, Kind: "histogram", Value: 1},
		{Name: "ttft_bucket", Labels: `le="+Inf"`, Kind: "histogram", Value: 4},
		{Name: "ttft_sum", Kind: "histogram", Value: 2.5},
		{Name: "ttft_count", Kind: "histogram", Value: 4},
		{Name: "vllm:num_requests_running", Labels: `engine="0",model_name="m \"x\""`, Kind: "gauge", Value: 3},
		{Name: "vllm:prompt_tokens_total", Labels: `model_name="m"`, Kind: "counter", Value: 12345},
	}
	if len(got) != len(want) {
		t.Fatalf("%d samples, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] && !(math.IsNaN(got[i].Value) && math.IsNaN(want[i].Value)) {
			t.Errorf("sample %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestParseRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		page io.Reader
		want string
	}{
		"html":     {strings.NewReader("<html>no</html>"), "not the Prometheus text format"},
		"too long": {strings.NewReader("# " + strings.Repeat("x", mostBytes)), "more than 16 MB"},
		"too many": {strings.NewReader("# TYPE a gauge\n" + strings.Repeat("a 1\n", 1) + many(mostSamples+1)), "more than 100000 samples"},
	} {
		if _, err := Parse(c.page); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`b{n="`)
		for k := i; ; k /= 10 {
			b.WriteByte(byte('0' + k%10))
			if k < 10 {
				break
			}
		}
		b.WriteString("\"} 1\n")
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	f.Add(text)
	f.Add("a 1\n")
	f.Fuzz(func(t *testing.T, page string) {
		samples, err := Parse(strings.NewReader(page))
		if err == nil {
			for _, s := range samples {
				if s.Name == "" || s.Kind == "" {
					t.Errorf("sample %+v", s)
				}
			}
		}
	})
}

// A server answers requests for pages without a network.
type server func(ctx context.Context) (int, string, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body, err := s(r.Context())
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(strings.NewReader(body)), Request: r, Header: http.Header{}}, nil
}

// memory is a sink in memory: files are compressed with state that goroutines of
// several bubbles would share.
type memory struct{ samples, flushed []results.Sample }

func (m *memory) Add(samples []results.Sample) int {
	m.samples = append(m.samples, samples...)
	return 0
}

func (m *memory) Flush() error {
	m.flushed = append(m.flushed, m.samples[len(m.flushed):]...)
	return nil
}

func (m *memory) Close() error { return m.Flush() }

// TestSlowServers: samples lie on the multiples of the interval; what takes longer
// skips turns and, beyond the limit of time, fails; nothing else waits for it.
func TestSlowServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, n := &memory{}, 0
		carrier := server(func(ctx context.Context) (int, string, error) {
			n++
			switch n {
			case 3:
				time.Sleep(2500 * time.Millisecond) // longer than its limit would be with 1 s
			case 4:
				<-ctx.Done()
				return 0, "", ctx.Err()
			case 5:
				return http.StatusInternalServerError, "no", nil
			}
			return http.StatusOK, "a 1\n", nil
		})
		s, err := Start(Config{URLs: []string{"http://user:secret@h:1"}, Every: 2 * time.Second, HTTP: carrier, sink: kept}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(12500 * time.Millisecond)
		list, err := s.Stop()
		if err != nil {
			t.Fatal(err)
		}
		// 0, 2, 4 (until 6.5), 8 (until 10: no answer), 12 after 10, which was due when the one before ended, and the last.
		got := list[0]
		if got.URL != "http://h:1/metrics" || got.Scrapes != 7 || got.Failed != 2 || got.Skipped != 1 || got.FirstError != "no answer within 2s" {
			t.Errorf("%+v", got)
		}
		var ups []int64
		for _, sample := range kept.flushed {
			if strings.Contains(sample.Source, "secret") {
				t.Errorf("source %s", sample.Source)
			}
			if sample.Name == results.ScrapeUp && sample.Value == 1 {
				ups = append(ups, sample.AtNS/1e6)
			}
		}
		want := []int64{0, 2000, 4000, 12000, 12500}
		if len(ups) != len(want) {
			t.Fatalf("scrapes at %v ms, want %v", ups, want)
		}
		for i := range want {
			if ups[i] != want[i] {
				t.Errorf("scrapes at %v ms, want %v", ups, want)
			}
		}
	})
}

// TestFlush: what was scraped is kept every five seconds, for a run that is killed.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &memory{}
		s, err := Start(Config{URLs: []string{"http://h:1/metrics"}, HTTP: server(func(context.Context) (int, string, error) { return http.StatusOK, "a 1\n", nil }), sink: kept}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(flushEvery + 3500*time.Millisecond)
		n := 0
		for _, sample := range kept.flushed {
			if sample.Name == "a" {
				n++
			}
		}
		if n < 5 || n > 6 {
			t.Errorf("%d samples are kept, want those of %v", n, flushEvery)
		}
		if _, err := s.Stop(); err != nil || len(kept.flushed) != len(kept.samples) {
			t.Errorf("%d of %d samples are kept in the end, %v", len(kept.flushed), len(kept.samples), err)
		}
	})
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{URLs: []string{"localhost:8000"}}, "not a URL with a host"},
		{Config{URLs: []string{"http://u:p@h/metrics", "http://h"}}, "--scrape http://h/metrics is named twice"},
		{Config{Every: time.Millisecond}, "--scrape-every 1ms"},
	} {
		err := c.config.Check()
		if err == nil || !strings.Contains(err.Error(), c.want) || trace.Fix(err) == "" || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := (&Config{URLs: []string{"http://a", "https://b/metrics"}, Every: time.Second}).Check(); err != nil {
		t.Error(errors.Join(err))
	}
}
