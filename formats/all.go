package formats

import (
	"fmt"

	"reprise/formats/aiperf"
	"reprise/formats/azure"
	"reprise/formats/bailian"
	"reprise/formats/baseten"
	"reprise/formats/burstgpt"
	"reprise/formats/dynamo"
	"reprise/formats/guidellm"
	"reprise/formats/inferenceperf"
	"reprise/formats/jsonl"
	"reprise/formats/litellm"
	"reprise/formats/lmcache"
	"reprise/formats/mapper"
	"reprise/formats/mooncake"
	"reprise/formats/otel"
	"reprise/formats/ragpulse"
	"reprise/formats/rows"
	"reprise/formats/sagemaker"
	"reprise/formats/servegen"
	"reprise/formats/sglang"
	"reprise/formats/sharegpt"
	"reprise/formats/source"
	"reprise/formats/splitwise"
	"reprise/formats/tracelab"
	"reprise/formats/vidur"
	"reprise/formats/vllm"
	"reprise/formats/weka"
	"reprise/trace"
)

// undetected is the detection of formats that must be named: their content is that
// of others, or anything.
func undetected(*source.Head) (string, bool) { return "", false }

// mapped reads a container with a mapping; it takes no source for its own.
func mapped(name, doc string) Format {
	return Format{
		Name: name, Doc: doc,
		Detect: undetected,
		Flags:  []string{"map"},
		NewImporter: func(o Options) (Importer, error) {
			if o.Map == nil {
				return nil, trace.WithFix(fmt.Errorf("format %s needs a mapping, --map FILE", name), "write a first one with: reprise trace map-init IN -o FILE")
			}
			return &mapper.Importer{Container: name, Mapping: o.Map}, nil
		},
	}
}

// All are the known formats, in the order that help prints them. Detection asks
// all of them: a source that more than one takes for its own is refused.
var All = []Format{
	{
		Name: "mooncake", Doc: "Mooncake JSONL: FAST'25 and arXiv traces, AIPerf and Dynamo dialects",
		Detect: mooncake.Detect,
		Flags:  []string{"block-tokens", "time-unit", "input-lengths"},
		NewImporter: func(o Options) (Importer, error) {
			unit, err := o.timeUnit()
			return &mooncake.Importer{BlockTokens: o.BlockTokens, TimeUnit: unit, InputLengths: o.InputLengths}, err
		},
		NewExporter: func() Exporter { return mooncake.Exporter{} },
	},
	{
		Name: "baseten", Doc: "Baseten tables of completion requests with literal prompts: Parquet or Arrow IPC",
		Detect: baseten.Detect,
		Flags:  []string{"session-column", "block-tokens", "tokenizer", "recount"},
		NewImporter: func(o Options) (Importer, error) {
			b := &baseten.Importer{SessionColumn: o.SessionColumn, BlockTokens: o.BlockTokens}
			if o.Recount {
				b.Recount, b.Counter = o.Count, o.Counter
			}
			return b, nil
		},
		NewExporter: func() Exporter { return baseten.Exporter{} },
	},
	{
		Name: "weka", Doc: "WEKA / AgentX sessions of coding agents: JSON objects, JSONL or Parquet rows",
		Detect: weka.Detect,
		Flags:  []string{"block-tokens", "nested-time", "keep-pairs", "gap-cap"},
		NewImporter: func(o Options) (Importer, error) {
			return &weka.Importer{BlockTokens: o.BlockTokens, NestedTime: o.NestedTime, KeepPairs: o.KeepPairs, GapCap: o.GapCap}, nil
		},
		NewExporter: func() Exporter { return weka.Exporter{} },
	},
	{
		Name: "sharegpt", Doc: "ShareGPT conversations, also with tools, images or OpenAI messages: JSON array or JSONL",
		Detect: sharegpt.Detect,
		Flags:  []string{"single-turn", "tokenizer"},
		NewImporter: func(o Options) (Importer, error) {
			return &sharegpt.Importer{SingleTurn: o.SingleTurn, Count: o.Count, Counter: o.Counter}, nil
		},
		NewExporter: func() Exporter { return sharegpt.Exporter{} },
	},
	{
		Name: "azure", Doc: "Azure LLM inference traces of 2023, 2024 and 2025 (with images): CSV",
		Detect: azure.Detect,
		Flags:  []string{"zone"},
		NewImporter: func(o Options) (Importer, error) {
			zone, err := rows.ParseZone(o.Zone)
			return &azure.Importer{Zone: zone}, err
		},
		NewExporter: func() Exporter { return azure.Exporter{} },
	},
	{
		Name: "vidur", Doc: "Vidur simulator traces, with or without arrivals: CSV",
		Detect:      vidur.Detect,
		NewImporter: func(o Options) (Importer, error) { return &vidur.Importer{}, nil },
	},
	{
		Name: "splitwise", Doc: "Splitwise simulator traces: CSV",
		Detect:      splitwise.Detect,
		NewImporter: func(o Options) (Importer, error) { return &splitwise.Importer{}, nil },
	},
	{
		Name: "burstgpt", Doc: "BurstGPT v1 and v2 (sessions, elapsed time), failed calls kept: CSV",
		Detect:      burstgpt.Detect,
		NewImporter: func(o Options) (Importer, error) { return &burstgpt.Importer{}, nil },
	},
	{
		Name: "bailian", Doc: "Bailian (Qwen) traces with conversations as trees and 16-token blocks: JSONL",
		Detect:      bailian.Detect,
		Flags:       []string{"block-tokens"},
		NewImporter: func(o Options) (Importer, error) { return &bailian.Importer{BlockTokens: o.BlockTokens}, nil },
	},
	{
		Name: "ragpulse", Doc: "RAGPulse, requests of a service with retrieval: JSONL",
		Detect:      ragpulse.Detect,
		NewImporter: func(o Options) (Importer, error) { return &ragpulse.Importer{}, nil },
	},
	{
		Name: "tracelab", Doc: "TraceLab, rounds of coding agents: JSONL",
		Detect: tracelab.Detect,
		Flags:  []string{"zone"},
		NewImporter: func(o Options) (Importer, error) {
			zone, err := rows.ParseZone(o.Zone)
			return &tracelab.Importer{Zone: zone}, err
		},
	},
	{
		Name: "lmcache", Doc: "LMCache agent traces, text or messages: JSONL",
		Detect: lmcache.Detect,
		Flags:  []string{"time-unit", "tokenizer"},
		NewImporter: func(o Options) (Importer, error) {
			unit, err := o.timeUnit()
			return &lmcache.Importer{TimeUnit: unit, Count: o.Count, Counter: o.Counter}, err
		},
	},
	{
		Name: "dynamo", Doc: "Dynamo request traces with payloads, tool events and sequence hashes: JSONL, gzip segments",
		Detect:      dynamo.Detect,
		NewImporter: func(o Options) (Importer, error) { return &dynamo.Importer{}, nil },
	},
	{
		Name: "sagemaker", Doc: "Amazon SageMaker data capture with request and response bodies: JSONL",
		Detect: sagemaker.Detect,
		Flags:  []string{"zone"},
		NewImporter: func(o Options) (Importer, error) {
			zone, err := rows.ParseZone(o.Zone)
			return &sagemaker.Importer{Zone: zone}, err
		},
	},
	{
		Name: "sglang", Doc: "SGLang request metrics (--export-metrics-to-file): JSONL",
		Detect:      sglang.Detect,
		NewImporter: func(o Options) (Importer, error) { return &sglang.Importer{}, nil },
	},
	{
		Name: "litellm", Doc: "LiteLLM spend logs, private fields left out: JSON, JSONL or CSV",
		Detect: litellm.Detect,
		Flags:  []string{"zone", "keep-private"},
		NewImporter: func(o Options) (Importer, error) {
			zone, err := rows.ParseZone(o.Zone)
			return &litellm.Importer{Zone: zone, KeepPrivate: o.KeepPrivate}, err
		},
	},
	{
		Name: "otel", Doc: "OpenTelemetry GenAI spans: OTLP JSON or flat JSON",
		Detect: otel.Detect,
		Flags:  []string{"session-column", "zone"},
		NewImporter: func(o Options) (Importer, error) {
			zone, err := rows.ParseZone(o.Zone)
			return &otel.Importer{SessionColumn: o.SessionColumn, Zone: zone}, err
		},
	},
	{
		Name: "aiperf", Doc: "AIPerf outputs (inputs.json, profile_export.jsonl); writes what it replays",
		Detect:      aiperf.Detect,
		NewImporter: func(o Options) (Importer, error) { return &aiperf.Importer{}, nil },
		NewExporter: func() Exporter { return &aiperf.Exporter{} },
	},
	{
		Name: "vllm", Doc: "vLLM (and SGLang) benchmark results: JSON; writes vLLM's custom dataset",
		Detect:      vllm.Detect,
		NewImporter: func(o Options) (Importer, error) { return &vllm.Importer{}, nil },
		NewExporter: func() Exporter { return vllm.Exporter{} },
	},
	{
		Name: "servegen", Doc: "ServeGen, rates and lengths by client: requests are drawn; CSV and JSON pairs",
		Detect: servegen.Detect,
		Flags:  []string{"seed", "from", "duration"},
		NewImporter: func(o Options) (Importer, error) {
			if o.From < 0 || o.Duration < 0 {
				return nil, fmt.Errorf("--from %v, --duration %v: must not be below 0", o.From, o.Duration)
			}
			return &servegen.Importer{Seed: o.Seed, From: o.From, Duration: o.Duration}, nil
		},
	},
	{
		Name: "guidellm", Doc: "what guidellm replays, times in seconds: JSONL",
		Detect:      undetected,
		Flags:       []string{"block-tokens"},
		NewImporter: func(o Options) (Importer, error) { return guidellm.Importer(o.BlockTokens), nil },
		NewExporter: func() Exporter { return &guidellm.Exporter{} },
	},
	{
		Name: "inference-perf", Doc: "what inference-perf replays, Azure's columns: CSV",
		Detect:      undetected,
		NewImporter: func(o Options) (Importer, error) { return &azure.Importer{}, nil },
		NewExporter: func() Exporter { return inferenceperf.Exporter{} },
	},
	mapped(mapper.CSV, "any table of text, with a mapping (--map)"),
	{
		Name: mapper.JSONL, Doc: "canonical rows as JSON lines; with a mapping (--map), any JSON lines or array",
		Detect: jsonl.Detect,
		Flags:  []string{"map"},
		NewImporter: func(o Options) (Importer, error) {
			if o.Map != nil {
				return &mapper.Importer{Container: mapper.JSONL, Mapping: o.Map}, nil
			}
			return &jsonl.Importer{}, nil
		},
		NewExporter: func() Exporter { return jsonl.Exporter{} },
	},
	mapped(mapper.Parquet, "any Parquet file, with a mapping (--map)"),
}

// Names lists the formats that can be read, or written.
func Names(export bool) []string {
	var names []string
	for _, f := range All {
		if !export || f.NewExporter != nil {
			names = append(names, f.Name)
		}
	}
	return names
}
