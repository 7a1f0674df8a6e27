package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"

	"reprise/formats"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write a canonical trace in a foreign format",
		ArgsUsage: "TRACE",
		Description: `Import then export gives equal content for every row that was accepted. What
the format cannot hold is counted and printed.

Example:
   reprise trace export prod.parquet --format mooncake -o prod.jsonl`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Required: true, Usage: strings.Join(formats.Names(true), ", ")},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Usage: "file to write; - for standard output"},
			&cli.BoolFlag{Name: "strict", Usage: "exit with code 4 if something of the rows could not be written (the output is there)"},
		},
		Action: runExport,
	}
}

func runExport(ctx context.Context, c *cli.Command) error {
	path, err := oneArg(c, "trace")
	if err != nil {
		return err
	}
	format, err := formats.ByName(c.String("format"))
	if err == nil && format.NewExporter == nil {
		err = fmt.Errorf("format %s can be read, but not written", format.Name)
	}
	if err != nil {
		return misuse("use one of: "+strings.Join(formats.Names(true), ", "), "%v", err)
	}
	if err := notInput(c.String("output"), path); err != nil {
		return err
	}
	r, err := openTrace(c, path)
	if err != nil {
		return err
	}
	defer r.Close()
	exporter := format.NewExporter()
	write := func(w io.Writer) ([]string, error) {
		return exporter.Export(ctx, r.Meta(), r.Rows(), w)
	}
	lost, err := exportTo(c, write)
	if err != nil {
		return err
	}
	for _, what := range lost {
		fmt.Fprintf(c.Root().ErrWriter, "reprise: warning: %s has no place for %s\n", format.Name, what)
	}
	if a, ok := exporter.(formats.Adviser); ok && c.String("output") != "-" {
		for _, advice := range a.Advice() {
			fmt.Fprintf(c.Root().ErrWriter, "reprise: to replay it: %s\n", advice)
		}
	}
	if len(lost) > 0 && c.Bool("strict") {
		return verdict{4, fmt.Errorf("the export is not complete: %s", strings.Join(lost, ", "))}
	}
	return nil
}

func exportTo(c *cli.Command, write func(io.Writer) ([]string, error)) ([]string, error) {
	out := c.String("output")
	if out == "-" {
		return write(c.Root().Writer)
	}
	f, err := createOutput(out)
	if err != nil {
		return nil, err
	}
	defer f.Abort()
	lost, err := write(f)
	if err != nil {
		return nil, err
	}
	return lost, f.Commit()
}
