package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"reprise/formats"
	"reprise/formats/mapper"
	"reprise/formats/source"
	"reprise/trace"
)

func mapInitCommand() *cli.Command {
	return &cli.Command{
		Name:      "map-init",
		Usage:     "write a first mapping for a file of no known format",
		ArgsUsage: "IN",
		Description: `Looks at the first 10,000 rows of a table of text (CSV), of JSON lines or of a
Parquet file, and writes a mapping with a comment at each guess. Read it, correct
it, and import with it.

Example:
   reprise trace map-init calls.csv -o calls.yaml
   reprise trace import calls.csv --format csv --map calls.yaml -o calls.parquet`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "-", Usage: "mapping to write; - for standard output"},
			&cli.BoolFlag{Name: "schema", Usage: "print the JSON Schema of mappings instead"},
		},
		Action: runMapInit,
	}
}

func runMapInit(_ context.Context, c *cli.Command) error {
	if c.Bool("schema") {
		if c.Args().Len() > 0 {
			return misuse("leave it out", "--schema takes no file")
		}
		return writeText(c, mapper.Schema)
	}
	path, err := oneArg(c, "file")
	if err != nil {
		return err
	}
	sources, _, err := source.Find([]string{path}, c.Root().Reader)
	if err != nil {
		return err
	}
	defer sources[0].Close()
	if err := notInput(c.String("output"), sources[0].Name); err != nil {
		return err
	}
	var text bytes.Buffer
	container, err := mapper.Propose(sources[0], &text)
	if err != nil {
		return err
	}
	if err := writeText(c, text.Bytes()); err != nil {
		return err
	}
	if format, why, err := formats.Detect(sources[0]); err == nil {
		fmt.Fprintf(c.Root().ErrWriter, "reprise: warning: %s is a known format, %s (%s), which trace import reads without a mapping\n", path, format.Name, why)
	} else if out := c.String("output"); out != "-" {
		fmt.Fprintf(c.Root().ErrWriter, "wrote %s; check it, then: reprise trace import %s --format %s --map %s -o OUT\n", out, path, container, out)
	}
	return nil
}

// writeText writes a whole file, or to standard output.
func writeText(c *cli.Command, text []byte) error {
	out := c.String("output")
	if out == "-" {
		_, err := c.Root().Writer.Write(text)
		return err
	}
	f, err := createOutput(out)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Commit()
}

// mapWith reads the mapping of --map, if there is one. The history names it by its
// content.
func mapWith(c *cli.Command, o *formats.Options, step *trace.Step) error {
	path := c.String("map")
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--map: %w", err)
	}
	if o.Map, err = mapper.Parse(path, text); err != nil {
		return misused{err, trace.Fix(err)}
	}
	if step.Flags == nil {
		step.Flags = map[string]string{}
	}
	sum := sha256.Sum256(text)
	step.Flags["map"] = "sha256 " + hex.EncodeToString(sum[:])
	return nil
}
