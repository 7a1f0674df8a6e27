package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/synth"
	"reprise/trace"
)

func anonymizeCommand() *cli.Command {
	return &cli.Command{
		Name:      "anonymize",
		Usage:     "take names, content, dates and files out of a trace",
		ArgsUsage: "TRACE",
		Description: `Sessions, clients, agents, ids and blocks become keyed hashes: equal ones stay
equal, and without the key nobody can test a guess. Content becomes its number of
tokens; attributes, dates, and the names of files go. What may still identify is
listed. Keep the key to anonymize more traces alike; destroy it otherwise.

Example:
   openssl rand -hex 32 > key
   reprise trace anonymize prod.parquet --key-file key -o public.parquet`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Usage: "canonical trace to write; - for standard output"},
			&cli.StringFlag{Name: "key-file", Usage: "file that holds the key, 16 bytes or more"},
			&cli.StringFlag{Name: "key-env", Usage: "name of the environment variable that holds the key"},
			&cli.BoolFlag{Name: "models", Usage: "hash the names of models too"},
			&cli.DurationFlag{Name: "time-jitter", Usage: "move arrivals by up to this, by chance; the order within a session stays"},
			&cli.StringFlag{Name: "tokenizer", Usage: "tokenizer.json of the model: counts content whose length nobody recorded"},
			&cli.Uint64Flag{Name: "seed", Usage: "seed of --time-jitter (default: 0)"},
			&cli.StringFlag{Name: "memory", Value: "512MB", Usage: "bytes that sorting may hold before it goes to disk"},
			&cli.BoolFlag{Name: "json", Usage: "print what was done as one JSON object"},
		},
		Action: runAnonymize,
	}
}

func runAnonymize(ctx context.Context, c *cli.Command) error {
	a := synth.Anonymizing{Models: c.Bool("models"), Jitter: c.Duration("time-jitter"), Seed: c.Uint64("seed")}
	var err error
	if a.Key, err = secretKey(c); err != nil {
		return err
	}
	if len(a.Key) < synth.MinKey {
		return misuse("make one with: openssl rand -hex 32", "the key has %d bytes, at least %d are needed", len(a.Key), synth.MinKey)
	}
	if a.Memory, err = parseBytes(c.String("memory")); err != nil {
		return misused{fmt.Errorf("--memory: %w", err), "use a number of bytes such as 512MB or 2GB"}
	}
	t, _, err := loadTokenizer(c)
	if err != nil {
		return err
	}
	if t != nil {
		a.Count = t.Count
	}
	var done synth.Anonymized
	step := trace.Step{Command: "trace anonymize", Version: version, Flags: setFlags(c, []string{"models", "time-jitter"})}
	_, err = rewrite(c, step, func(open synth.Open, emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		meta, done, err = a.Run(ctx, open, emit)
		return meta, err
	})
	if err != nil {
		return err
	}
	if c.Bool("json") && c.String("output") != "-" {
		return writeJSON(c.Root().Writer, done)
	}
	return table(account(c), func(y func(string, string) bool) {
		if !y("rows", analysis.Grouped(done.Rows)) {
			return
		}
		for _, what := range slices.Sorted(maps.Keys(done.Removed)) {
			if !y("removed", fmt.Sprintf("%s: %s", what, analysis.Counted(done.Removed[what], "row"))) {
				return
			}
		}
		for _, l := range done.Leaks {
			if !y("still there", fmt.Sprintf("%s %s: %s", analysis.Grouped(l.N), l.What, l.Why)) {
				return
			}
		}
		y("wrote", c.String("output"))
	})
}

// secretKey reads the key from a file or the environment, never from the command
// line, where others can see it.
func secretKey(c *cli.Command) ([]byte, error) {
	file, name := c.String("key-file"), c.String("key-env")
	switch {
	case file != "" && name != "":
		return nil, misuse("leave one of them out", "--key-file and --key-env both name a key")
	case file != "":
		key, err := os.ReadFile(file)
		return bytes.TrimSpace(key), err
	case name != "":
		if !isName.MatchString(name) {
			return nil, misuse("put the key in a variable and give the variable's name", "--key-env: not the name of a variable (not shown, it may be a secret)")
		}
		return []byte(os.Getenv(name)), nil
	}
	return nil, misuse("make one with: openssl rand -hex 32 > key, and give --key-file key", "no key: name its file with --key-file, or its variable with --key-env")
}
