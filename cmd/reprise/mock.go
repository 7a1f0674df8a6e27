package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/replay/mock"
	"reprise/replay/mock/batch"
	"reprise/trace"
)

func mockCommand() *cli.Command {
	return &cli.Command{
		Name:  "mock",
		Usage: "serve a simulated OpenAI-compatible engine: rehearse without a GPU",
		Description: `Continuous batching with a prefill rate, a step time that grows with the batch,
KV room and a prefix cache; deterministic by seed. A token of the mock is a
word. It keeps an account of what arrived and what it sent, to hold a client's
against.

Endpoints: /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages,
/v1/models, /health, /metrics (vLLM names), /mock/account (JSON lines).

Example:
   reprise mock --listen 127.0.0.1:8000 --model llama-70b`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8000", Usage: "address and port; port 0 takes a free one"},
			&cli.StringFlag{Name: "port-file", Usage: "file to write the address to once it listens"},
			&cli.StringSliceFlag{Name: "model", Usage: "name that it serves (repeatable; default mock)"},
			&cli.Uint64Flag{Name: "seed", Usage: "of lengths, texts and faults"},
			&cli.FloatFlag{Name: "prefill-rate", Value: batch.DefaultPrefillRate, Usage: "prompt tokens computed per second"},
			&cli.DurationFlag{Name: "step-base", Value: batch.DefaultStepBase, Usage: "time of every step"},
			&cli.DurationFlag{Name: "step-per-sequence", Value: batch.DefaultStepPerSequence, Usage: "time that each sequence adds to a step"},
			&cli.IntFlag{Name: "max-batch", Value: batch.DefaultMaxBatch, Usage: "most sequences that run at once"},
			&cli.Int64Flag{Name: "kv-tokens", Value: batch.DefaultKVTokens, Usage: "room for the tokens of running requests"},
			&cli.IntFlag{Name: "block-tokens", Value: batch.DefaultBlockTokens, Usage: "tokens per block of the prefix cache"},
			&cli.Int64Flag{Name: "cache-tokens", Usage: "room of the prefix cache, least recently used goes first (default: without limit)"},
			&cli.IntFlag{Name: "tokens-per-chunk", Usage: "tokens gathered before an event is sent (default 1)"},
			&cli.FloatFlag{Name: "reasoning-share", Usage: "share of each chat answer that is reasoning, 0 to 1 (default: 0)"},
			&cli.StringFlag{Name: "usage", Value: "asked", Usage: "asked (as stream_options say), final, running or none"},
			&cli.StringSliceFlag{Name: "fault", Usage: "fault to inject, such as status,code=500,share=1% or stall,after=3,delay=500ms,every=10 (repeatable)"},
			&cli.StringFlag{Name: "account", Usage: "file to write the account to at the end, JSON lines"},
		},
		Action: runMock,
	}
}

func runMock(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() > 0 {
		return misuse("see: reprise mock --help", "reprise mock takes no arguments, got %q", c.Args().First())
	}
	config, err := mockConfig(c)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return trace.WithFix(fmt.Errorf("--listen: %w", err), "write host and port, such as --listen 127.0.0.1:8000; where the port is taken, choose another, or 0 for any that is free")
	}
	if path := c.String("port-file"); path != "" {
		if err := os.WriteFile(path, []byte(ln.Addr().String()), 0o644); err != nil {
			return err
		}
	}
	server := mock.New(config)
	fmt.Fprintf(c.Root().ErrWriter, "reprise: mock serves on http://%s until it is interrupted\n", ln.Addr())
	if err := server.Serve(ctx, ln); err != nil {
		return err
	}
	return writeAccount(c.String("account"), server)
}

func writeAccount(path string, server *mock.Server) error {
	if path == "" {
		return nil
	}
	f, err := trace.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := server.WriteAccount(f); err != nil {
		return err
	}
	return f.Commit()
}

func mockConfig(c *cli.Command) (mock.Config, error) {
	config := mock.Config{
		Models: c.StringSlice("model"), Seed: c.Uint64("seed"), TokensPerChunk: c.Int("tokens-per-chunk"), ReasoningShare: c.Float("reasoning-share"),
		Engine: batch.Config{
			PrefillRate: c.Float("prefill-rate"), StepBase: zeroIsNone(c.Duration("step-base")), StepPerSequence: zeroIsNone(c.Duration("step-per-sequence")),
			MaxBatch: c.Int("max-batch"), KVTokens: c.Int64("kv-tokens"), BlockTokens: c.Int("block-tokens"), CacheTokens: c.Int64("cache-tokens"),
		},
	}
	switch usage := c.String("usage"); usage {
	case "asked":
	case "final", "running", "none":
		config.Usage = mock.UsageStyle(usage)
	default:
		return config, misuse("use asked, final, running or none", "--usage %q", usage)
	}
	if s := config.ReasoningShare; s < 0 || s > 1 {
		return config, misuse("use a share from 0 to 1", "--reasoning-share %v", s)
	}
	for _, text := range c.StringSlice("fault") {
		fault, err := mock.ParseFault(text)
		if err != nil {
			return config, misused{fmt.Errorf("--fault: %w", err), trace.Fix(err)}
		}
		config.Faults = append(config.Faults, fault)
	}
	return config, nil
}

// zeroIsNone tells the engine that 0 was meant, not its default.
func zeroIsNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}
