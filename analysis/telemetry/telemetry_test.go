package telemetry_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"reprise/analysis/telemetry"
	"reprise/trace"
	"reprise/trace/results"
)

// written makes a run directory with samples: at seconds, source, name, labels, value.
func written(t *testing.T, samples []results.Sample) *results.Opened {
	t.Helper()
	dir := t.TempDir()
	if err := results.WriteRun(dir, &results.Run{}); err != nil {
		t.Fatal(err)
	}
	w, err := results.NewTelemetryRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if lost := w.Add(samples); lost != 0 {
		t.Fatalf("%d samples lost", lost)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	o, err := results.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func sample(at float64, source, name, labels string, v float64) results.Sample {
	return results.Sample{AtNS: int64(at * 1e9), Source: source, Name: name, Labels: labels, Kind: "gauge", Value: v}
}

// answered is a result of 10 tokens between two times.
func answered(from, to float64) *results.Result {
	return &results.Result{
		Sent: trace.Some(time.Duration(from * 1e9)), End: trace.Some(time.Duration(to * 1e9)), OutputTokens: trace.Some(int64(10)),
	}
}

// TestExporters: each exporter's names become one, over labels by sum or mean, and
// counters become rates and shares of what was added.
func TestExporters(t *testing.T) {
	var list []results.Sample
	for i := range 3 {
		at := float64(i)
		grown := float64(i)
		list = append(list,
			sample(at, "vllm", "vllm:num_requests_running", `engine="0"`, 3+at), sample(at, "vllm", "vllm:num_requests_running", `engine="1"`, 1),
			sample(at, "vllm", "vllm:kv_cache_usage_perc", `engine="0"`, 0.5), sample(at, "vllm", "vllm:kv_cache_usage_perc", `engine="1"`, 0.25),
			sample(at, "vllm", "vllm:prefix_cache_hits_total", "", 1000+grown*30), sample(at, "vllm", "vllm:prefix_cache_queries_total", "", 5000+grown*40),
			sample(at, "vllm", "vllm:generation_tokens_total", "", 700+grown*grown*50), sample(at, "vllm", results.ScrapeUp, "", 1),
			sample(at, "sglang", "sglang:num_queue_reqs", "", 7), sample(at, "sglang", "sglang:token_usage", "", 0.1), sample(at, "sglang", "sglang:cache_hit_rate", "", math.NaN()),
			sample(at, "trt", "trtllm_kv_cache_utilization", "", 0.9), sample(at, "trt", "nv_trt_llm_request_metrics", `model="m",request_type="waiting"`, 4), sample(at, "trt", "nv_trt_llm_request_metrics", `model="m",request_type="max"`, 512),
			sample(at, "gpu", "DCGM_FI_DEV_GPU_UTIL", `gpu="0"`, 80), sample(at, "gpu", "DCGM_FI_DEV_GPU_UTIL", `gpu="1"`, 40), sample(at, "gpu", "DCGM_FI_DEV_POWER_USAGE", `gpu="0"`, 300), sample(at, "gpu", "DCGM_FI_DEV_POWER_USAGE", `gpu="1"`, 100), sample(at, "gpu", "DCGM_FI_DEV_XID_ERRORS", "", 0),
			sample(at, "node", "node_cpu_seconds_total", `cpu="0",mode="idle"`, 100+grown*0.25), sample(at, "node", "node_cpu_seconds_total", `cpu="0",mode="user"`, 50+grown*0.75), sample(at, "node", "node_rapl_package_joules_total", `index="0"`, 9000+grown*55),
		)
	}
	var c telemetry.Collector
	c.Add(answered(0, 1.5))
	c.Add(answered(0.5, 2))
	s, err := c.Summary(written(t, list))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name, source string
		n            int64
		mean, max    float64
	}{
		{"running", "vllm", 3, 5, 6}, {"waiting", "sglang", 3, 7, 7}, {"waiting", "trt", 3, 4, 4},
		{"kv_use", "vllm", 3, 0.375, 0.375}, {"kv_use", "sglang", 3, 0.1, 0.1}, {"kv_use", "trt", 3, 0.9, 0.9},
		{"cache_hit", "vllm", 2, 0.75, 0.75}, {"output_rate", "vllm", 2, 100, 150},
		{"gpu_use", "gpu", 3, 0.6, 0.6}, {"gpu_power", "gpu", 3, 400, 400}, {"host_power", "node", 2, 55, 55}, {"cpu_use", "node", 2, 0.75, 0.75},
	} {
		found := false
		for _, got := range s.Of(want.name) {
			if got.Source == want.source {
				found = true
				if got.N != want.n || math.Abs(got.Mean-want.mean) > 1e-9 || math.Abs(got.Max-want.max) > 1e-9 {
					t.Errorf("%s of %s: %+v, want %+v", want.name, want.source, got, want)
				}
			}
		}
		if !found {
			t.Errorf("no %s of %s", want.name, want.source)
		}
	}
	if len(s.Series) != 12 || s.Other != 1 {
		t.Errorf("%d series, %d other names", len(s.Series), s.Other)
	}
	// 400 W over 2 s and 20 tokens. The RAPL counter says nothing before its second sample.
	if len(s.Energy) != 2 {
		t.Fatalf("energy %+v", s.Energy)
	}
	if e := s.Energy[0]; e.Joules != 800 || e.Tokens != 20 || e.N != 3 || e.Covered != 1 || e.PerToken == nil || *e.PerToken != 40 {
		t.Errorf("energy %+v", e)
	}
	if e := s.Energy[1]; e.Joules != 55 || e.Covered != 0.5 || e.PerToken != nil {
		t.Errorf("energy %+v", e)
	}
}

// TestEnergy: power is integrated within the run, between samples that are not too
// far apart.
func TestEnergy(t *testing.T) {
	power := func(at, watts float64) results.Sample {
		return sample(at, "gpu", "DCGM_FI_DEV_POWER_USAGE", "", watts)
	}
	for name, c := range map[string]struct {
		list    []results.Sample
		joules  float64
		covered float64
		known   bool
	}{
		"a ramp, cut at both ends": {[]results.Sample{power(0, 0), power(2, 200), power(4, 400), power(6, 600)}, 800, 1, true},
		"a gap":                    {[]results.Sample{power(1, 100), power(1.2, 100), power(1.4, 100), power(4.8, 100), power(5, 100)}, 60, 0.15, false},
		"nothing after the start":  {[]results.Sample{power(0, 100), power(1, 100)}, 0, 0, false},
	} {
		var k telemetry.Collector
		k.Add(answered(1, 5))
		if name == "a ramp, cut at both ends" {
			k = telemetry.Collector{}
			k.Add(answered(0, 4))
		}
		s, err := k.Summary(written(t, c.list))
		if err != nil || len(s.Energy) != 1 {
			t.Fatalf("%s: %+v, %v", name, s, err)
		}
		if e := s.Energy[0]; math.Abs(e.Joules-c.joules) > 1e-9 || math.Abs(e.Covered-c.covered) > 1e-9 || (e.PerToken != nil) != c.known {
			t.Errorf("%s: %+v, want %+v", name, e, c)
		}
	}
}

// TestNegativePower: what cannot be power gives no energy, alone or among the GPUs
// of a page, and is counted.
func TestNegativePower(t *testing.T) {
	power := func(at float64, gpu string, watts float64) results.Sample {
		return sample(at, "gpu", "DCGM_FI_DEV_POWER_USAGE", gpu, watts)
	}
	var c telemetry.Collector
	c.Add(answered(0, 4))
	s, err := c.Summary(written(t, []results.Sample{power(0, "a", -100), power(2, "a", -100), power(4, "a", -100)}))
	if err != nil || len(s.Series) != 0 || len(s.Energy) != 0 || s.Sources[0].Unusable != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = c.Summary(written(t, []results.Sample{
		power(0, "a", 100), power(0, "b", 100), power(2, "a", 100), power(2, "b", -1), power(3, "a", math.NaN()), power(3, "b", 100), power(4, "a", 100), power(4, "b", 100),
	}))
	if err != nil || len(s.Energy) != 1 || s.Sources[0].Unusable != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	if e := s.Energy[0]; e.N != 2 || e.Joules != 800 || e.PerToken == nil || *e.PerToken != 80 {
		t.Errorf("%+v", e)
	}
}

// TestRestart: a counter that falls begins anew and gives no negative rate.
func TestRestart(t *testing.T) {
	var list []results.Sample
	for i, v := range []float64{100, 150, 20, 60} {
		list = append(list, sample(float64(i), "vllm", "vllm:generation_tokens_total", "", v))
	}
	var c telemetry.Collector
	s, err := c.Summary(written(t, list))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Of("output_rate"); len(got) != 1 || got[0].N != 2 || got[0].Mean != 45 || got[0].Min != 40 {
		t.Errorf("%+v", got)
	}
}

func TestNone(t *testing.T) {
	var c telemetry.Collector
	if s, err := c.Summary(results.InMemory(results.Run{}, nil)); s != nil || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	o := written(t, nil)
	if err := os.WriteFile(o.Dir+"/"+results.TelemetryFile, []byte("no Parquet"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Summary(o); err == nil || !strings.Contains(err.Error(), results.TelemetryFile) {
		t.Errorf("%v", err)
	}
}

// TestSeriesAreDefined: METRICS.md has every series, in order.
func TestSeriesAreDefined(t *testing.T) {
	text, err := os.ReadFile("../METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Servers")
	if !found {
		t.Fatal("METRICS.md has no section on servers")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var got []string
	for line := range strings.Lines(section) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			got = append(got, name)
		}
	}
	want := append(telemetry.Names(), "joules_per_token")
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("METRICS.md has %q, want %q", got, want)
	}
}
