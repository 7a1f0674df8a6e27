package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"time"

	"reprise/trace/results"
)

// A job is one run of a tool: a trace, in the forms the tools read, against a
// server.
type job struct {
	dir string // for what the tool writes; empty
	shape
	jsonl string // AIPerf's mooncake_trace rows; reprise reads the same by dir.parquet
	url   string
}

// A reported is what a tool says about one request.
type reported struct {
	id   string        // X-Request-Id that it sent; "" = it sent none, and the k-th to start is the k-th to arrive
	ttft time.Duration // as the tool defines it
	itl  time.Duration // mean over the request, by (OSL - 1); 0 for one token
}

// A tool is a load generator as a user would start it for this job.
type tool struct {
	name    string
	version string
	counts  string // what its TTFT runs from
	env     []string
	command func(j job) []string
	prepare func(j job) error // files for the command; nil = none
	read    func(j job) ([]reported, error)
	start   float64 // first rate of its ladder, requests/s
	invalid int     // exit code that says that it ran late; 0 = none
	pairs   int     // at most; 0 = as the others
}

// replayTool is reprise with its defaults: the probe, the report and the files
// of a run are in what is counted.
func replayTool(binary string) tool {
	return tool{name: "reprise", version: "this commit", start: 250, invalid: 3, counts: "first byte written",
		command: func(j job) []string {
			return []string{binary, "replay", j.dir + ".parquet", "--url", j.url, "--model", "mock", "--progress", "none", "-o", filepath.Join(j.dir, "run")}
		},
		read: func(j job) ([]reported, error) {
			opened, err := results.OpenRun(filepath.Join(j.dir, "run"))
			if err != nil {
				return nil, err
			}
			var all []reported
			for r, err := range opened.Results() {
				if err != nil {
					return nil, err
				}
				ttft, ok := results.TTFT(&r)
				if !ok {
					return nil, fmt.Errorf("request %d: %s", r.ID, r.Outcome)
				}
				itl, _ := results.TPOTOverOSL1(&r)
				all = append(all, reported{fmt.Sprint("reprise-", r.ID), ttft, itl})
			}
			return all, nil
		},
	}
}

// aiperfTool is AIPerf with the flags that its documentation gives for a trace
// on a fixed schedule, less what costs it time beside the requests: no terminal
// interface, no plots, no scraping, and no tokenizing of answers.
func aiperfTool(binary, version, tokenizer string) tool {
	return tool{name: "AIPerf", version: version, start: 20, counts: "start of the request, connecting included",
		env: []string{"AIPERF_LOG_LEVEL=WARNING", "HF_HUB_DISABLE_TELEMETRY=1"},
		command: func(j job) []string {
			return []string{binary, "profile", "--model", "mock", "--url", j.url, "--endpoint-type", "chat", "--streaming",
				"--input-file", j.jsonl, "--custom-dataset-type", "mooncake_trace", "--fixed-schedule", "--fixed-schedule-auto-offset",
				"--tokenizer", tokenizer, "--use-server-token-count", "--ui", "none", "--artifact-dir", j.dir,
				"--no-auto-plot", "--no-server-metrics", "--no-gpu-telemetry"}
		},
		read: func(j job) ([]reported, error) { return readAIPerf(filepath.Join(j.dir, "profile_export.jsonl")) },
	}
}

func readAIPerf(path string) ([]reported, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []reported
	d := json.NewDecoder(bufio.NewReader(f))
	for d.More() {
		type ms struct{ Value float64 }
		var r struct {
			Metadata struct {
				ID string `json:"x_request_id"`
			}
			Metrics struct {
				TTFT ms `json:"time_to_first_token"`
				ITL  ms `json:"inter_token_latency"`
			}
		}
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, reported{r.Metadata.ID, millis(r.Metrics.TTFT.Value), millis(r.Metrics.ITL.Value)})
	}
	return all, nil
}

// inferencePerfTool replays the trace as rows of AzurePublicDataset, which hold
// times and lengths. It makes prompts for them on the completions endpoint only.
func inferencePerfTool(binary, version, tokenizer string) tool {
	return tool{name: "inference-perf", version: version, start: 20, pairs: 1, counts: "start of the request, connecting included",
		env: []string{"HF_HUB_OFFLINE=1"},
		command: func(j job) []string {
			return []string{binary, "--config_file", j.dir + ".yml"}
		},
		prepare: func(j job) error {
			rows := []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n")
			for i := range j.requests {
				at := time.Unix(1704067200, 0).UTC().Add(j.due(i))
				rows = fmt.Appendf(rows, "%s,%d,%d\n", at.Format("2006-01-02 15:04:05.0000000"), promptTokens, j.tokens)
			}
			if err := os.WriteFile(j.dir+".csv", rows, 0o644); err != nil {
				return err
			}
			return os.WriteFile(j.dir+".yml", fmt.Appendf(nil, inferencePerfConfig, j.dir+".csv", j.rate, math.Ceil(float64(j.requests)/j.rate), j.url, tokenizer, j.dir), 0o644)
		},
		read: func(j job) ([]reported, error) {
			return readInferencePerf(filepath.Join(j.dir, "per_request_lifecycle_metrics.json"))
		},
	}
}

const inferencePerfConfig = `api: {type: completion, streaming: true}
data: {type: random, trace: {file: %[1]q, format: AzurePublicDataset}}
load:
  type: trace_replay
  trace: {file: %[1]q, format: AzurePublicDataset}
  stages: [{rate: %[2]g, duration: %[3]g}]
server: {type: vllm, model_name: mock, base_url: %[4]q, ignore_eos: true}
tokenizer: {pretrained_model_name_or_path: %[5]q}
report: {request_lifecycle: {summary: true, per_stage: true, per_request: true}}
storage: {local_storage: {path: %[6]q}}
`

func readInferencePerf(path string) ([]reported, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Start float64 `json:"start_time"` // s, as all its times
		Info  struct {
			Response struct {
				Times []float64 `json:"output_token_times"`
			} `json:"response_metrics"`
		}
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	sort.Slice(rows, func(i, k int) bool { return rows[i].Start < rows[k].Start })
	all := make([]reported, len(rows))
	for i, r := range rows {
		at := r.Info.Response.Times
		if len(at) == 0 {
			return nil, fmt.Errorf("%s: request %d has no token times", path, i)
		}
		all[i].ttft = millis((at[0] - r.Start) * 1e3)
		if n := len(at) - 1; n > 0 {
			all[i].itl = millis((at[n] - at[0]) * 1e3 / float64(n))
		}
	}
	return all, nil
}

func millis(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
