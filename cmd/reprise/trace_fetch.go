package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/formats/catalog"
)

func fetchCommand() *cli.Command {
	return &cli.Command{
		Name:      "fetch",
		Usage:     "fetch a published trace by its name, or list the names",
		ArgsUsage: "NAME",
		Description: `Fetches over HTTPS into a cache, goes on where a transfer was cut, and holds the
file against its checksum where one is known. The path goes to standard output.
Each trace has the licence of its publisher, who wants to be cited.

Example:
   reprise trace fetch --list
   reprise trace import "$(reprise trace fetch mooncake-conversation)" -o conv.parquet`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "list", Usage: "list the catalogue"},
			&cli.StringFlag{Name: "dir", Usage: "directory to keep traces in (default: reprise/traces in the user's cache directory)"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: runFetch,
	}
}

func runFetch(ctx context.Context, c *cli.Command) error {
	if c.Bool("list") {
		if c.Args().Len() > 0 {
			return misuse("leave it out", "--list takes no name")
		}
		return listCatalog(c)
	}
	name, err := oneArg(c, "name of a trace (see --list)")
	if err != nil {
		return err
	}
	e, err := catalog.ByName(name)
	if err != nil {
		return misused{err, ""}
	}
	f := &catalog.Fetcher{Dir: c.String("dir")}
	stderr := c.Root().ErrWriter
	if onTerminal(stderr) {
		f.Progress = func(done, total int64) {
			fmt.Fprintf(stderr, "\r%s of %s bytes ", analysis.Grouped(done), analysis.Grouped(max(done, total)))
		}
	}
	got, err := f.Fetch(ctx, e)
	if f.Progress != nil && !got.Cached {
		fmt.Fprintln(stderr)
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return writeJSON(c.Root().Writer, struct {
			Trace catalog.Entry `json:"trace"`
			catalog.Got
		}{e, got})
	}
	state := "checked against its SHA-256"
	if !got.Pinned {
		state = "not pinned: no checksum known; it is " + got.SHA256
	}
	fmt.Fprintf(stderr, "%s, %s bytes, %s\nlicence %s; cite %s\n", e.Name, analysis.Grouped(got.Bytes), state, e.Licence, e.Citation)
	if e.Archive {
		fmt.Fprintf(stderr, "unpack it, and import the directory of traces in it: tar -xzf %s\n", got.Path)
	}
	_, err = fmt.Fprintln(c.Root().Writer, got.Path)
	return err
}

// onTerminal tells whether somebody sees what is written to w.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func listCatalog(c *cli.Command) error {
	if c.Bool("json") {
		return writeJSON(c.Root().Writer, catalog.All)
	}
	return printCatalog(c.Root().Writer)
}

func printCatalog(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tFORMAT\tBYTES\tCHECKSUM\tLICENCE\tWHAT")
	for _, e := range catalog.All {
		size, pinned := "?", "not pinned"
		if e.Bytes > 0 {
			size = analysis.Grouped(e.Bytes)
		}
		if e.SHA256 != "" {
			pinned = e.SHA256[:12]
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, e.Format, size, pinned, e.Licence, e.About)
	}
	return tw.Flush()
}
