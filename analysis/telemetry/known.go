package telemetry

// A kind says how the samples of a series become a number.
type kind int

const (
	gauge kind = iota // as it is
	rate              // of a counter, per second
	share             // of two counters, what came to one over what came to the other
	rest              // 1 - share
)

// A rule says where an exporter has a series.
type rule struct {
	exporter string
	kind     kind
	metric   string // name of the sample
	label    string // a label that it must have, such as mode="idle"; "" = any
	of       string // of a share: what it is a share of; any labels
	scale    float64
}

// A series has one name and unit for what exporters name differently.
type series struct {
	name, title, unit string
	mean              bool // of several label sets (GPUs, ranks) of one page the mean is taken, not the sum
	rules             []rule
}

// known are the series that are looked for. Sources: vLLM (vllm/v1/metrics/loggers.py;
// older names of V0 beside), SGLang (srt/metrics/collector.py), TensorRT-LLM
// (trtllm-serve /prometheus/metrics; Triton's tensorrtllm_backend), NVIDIA's
// dcgm-exporter (default-counters.csv), Prometheus' node_exporter.
var known = []series{
	{"running", "Requests running", "requests", false, []rule{
		{exporter: "vLLM", metric: "vllm:num_requests_running"},
		{exporter: "SGLang", metric: "sglang:num_running_reqs"},
		{exporter: "TensorRT-LLM", metric: "trtllm_num_requests_running"},
		{exporter: "TensorRT-LLM (Triton)", metric: "nv_trt_llm_request_metrics", label: `request_type="scheduled"`},
	}},
	{"waiting", "Requests in the queue", "requests", false, []rule{
		{exporter: "vLLM", metric: "vllm:num_requests_waiting"},
		{exporter: "SGLang", metric: "sglang:num_queue_reqs"},
		{exporter: "TensorRT-LLM", metric: "trtllm_num_requests_waiting"},
		{exporter: "TensorRT-LLM (Triton)", metric: "nv_trt_llm_request_metrics", label: `request_type="waiting"`},
	}},
	{"kv_use", "KV cache in use", "share", true, []rule{
		{exporter: "vLLM", metric: "vllm:kv_cache_usage_perc"},
		{exporter: "vLLM", metric: "vllm:gpu_cache_usage_perc"},
		{exporter: "SGLang", metric: "sglang:token_usage"},
		{exporter: "TensorRT-LLM", metric: "trtllm_kv_cache_utilization"},
		{exporter: "TensorRT-LLM (Triton)", metric: "nv_trt_llm_kv_cache_block_metrics", label: `kv_cache_block_type="fraction"`},
	}},
	{"cache_hit", "Prefix cache hits", "share", true, []rule{
		{exporter: "vLLM", kind: share, metric: "vllm:prefix_cache_hits_total", of: "vllm:prefix_cache_queries_total"},
		{exporter: "vLLM", kind: share, metric: "vllm:gpu_prefix_cache_hits_total", of: "vllm:gpu_prefix_cache_queries_total"},
		{exporter: "SGLang", metric: "sglang:cache_hit_rate"},
		{exporter: "TensorRT-LLM", metric: "trtllm_kv_cache_hit_rate"},
	}},
	{"preemptions", "Preemptions", "1/s", false, []rule{
		{exporter: "vLLM", kind: rate, metric: "vllm:num_preemptions_total"},
	}},
	{"output_rate", "Tokens generated", "tokens/s", false, []rule{
		{exporter: "vLLM", kind: rate, metric: "vllm:generation_tokens_total"},
		{exporter: "SGLang", kind: rate, metric: "sglang:generation_tokens_total"},
		{exporter: "SGLang", metric: "sglang:gen_throughput"},
	}},
	{"gpu_use", "GPU use", "share", true, []rule{
		{exporter: "DCGM", metric: "DCGM_FI_DEV_GPU_UTIL", scale: 0.01},
		{exporter: "DCGM", metric: "DCGM_FI_PROF_GR_ENGINE_ACTIVE"},
		{exporter: "Triton", metric: "nv_gpu_utilization"},
	}},
	{"gpu_memory", "GPU memory in use", "GiB", false, []rule{
		{exporter: "DCGM", metric: "DCGM_FI_DEV_FB_USED", scale: 1.0 / 1024},
		{exporter: "Triton", metric: "nv_gpu_memory_used_bytes", scale: 1.0 / (1 << 30)},
	}},
	{"gpu_power", "GPU power", "W", false, []rule{
		{exporter: "DCGM", metric: "DCGM_FI_DEV_POWER_USAGE"},
		{exporter: "Triton", metric: "nv_gpu_power_usage"},
	}},
	{"host_power", "Processor power (RAPL packages)", "W", false, []rule{
		{exporter: "node", kind: rate, metric: "node_rapl_package_joules_total"},
	}},
	{"cpu_use", "Processors in use", "share", true, []rule{
		{exporter: "node", kind: rest, metric: "node_cpu_seconds_total", label: `mode="idle"`, of: "node_cpu_seconds_total"},
	}},
	{"memory_free", "Memory available", "GiB", false, []rule{
		{exporter: "node", metric: "node_memory_MemAvailable_bytes", scale: 1.0 / (1 << 30)},
	}},
}

// byMetric finds the rules that a sample's name feeds.
var byMetric = func() map[string][]place {
	m := map[string][]place{}
	for i := range known {
		for k, r := range known[i].rules {
			m[r.metric] = append(m[r.metric], place{i, k})
			if r.of != "" && r.of != r.metric {
				m[r.of] = append(m[r.of], place{i, k})
			}
		}
	}
	return m
}()

// A place is a rule in known.
type place struct{ series, rule int }
