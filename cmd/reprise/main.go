// Reprise imports recorded LLM traffic, and plays it again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"
)

// version of the program; it stands in the history of every file it writes.
const version = "0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first interrupt stops cleanly, the next one kills; but not at once, since
	// timeout(1) sends its signal to the process and again to its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand(stdin, stdout, stderr)
	err := root.Run(ctx, append([]string{"reprise"}, args...))
	return report(ctx, err, stderr)
}

const rootHelp = `Exit codes: 0 done, 1 failed, 2 misused, 3 done but not a valid measurement,
4 done but a gate failed, 130 interrupted (what was measured is written).

Example:
   reprise trace import conversation_trace.jsonl -o prod.parquet
   reprise replay prod.parquet --url http://localhost:8000 -o run/
   reprise report run/`

func rootCommand(stdin io.Reader, stdout, stderr io.Writer) *cli.Command {
	root := &cli.Command{
		Name:                  "reprise",
		Usage:                 "takes recorded LLM traffic, understands it, and plays it again",
		Version:               version,
		Description:           rootHelp,
		EnableShellCompletion: true,
		Commands: []*cli.Command{
			traceCommand(), analyzeCommand(), fitCommand(), synthCommand(), compareCommand(), replayCommand(), sweepCommand(), reportCommand(), mockCommand(), workerCommand(),
		},
	}
	prepare(root, stdin, stdout, stderr)
	return root
}

// prepare sets what every command shares. Slice flags are never split at
// commas: a header or a JSON object is one value.
func prepare(c *cli.Command, stdin io.Reader, stdout, stderr io.Writer) {
	c.Reader, c.Writer, c.ErrWriter = stdin, stdout, stderr
	c.Suggest = true
	c.DisableSliceFlagSeparator = true
	c.HideHelpCommand = true
	c.ExitErrHandler = func(context.Context, *cli.Command, error) {}
	c.OnUsageError = func(_ context.Context, cmd *cli.Command, err error, _ bool) error {
		return flagError(cmd, err)
	}
	if c.Before = checkNumbers; c.Action == nil {
		c.Action = group
	}
	for _, sub := range c.Commands {
		prepare(sub, stdin, stdout, stderr)
	}
}

// flagError says what is wrong with the flags in words of ours, with the names
// as they are typed.
func flagError(cmd *cli.Command, err error) error {
	text, fix := err.Error(), "see: "+cmd.FullName()+" --help"
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		if near := cli.SuggestFlag(cmd.Flags, name, false); strings.HasPrefix(strings.TrimLeft(near, "-"), name[:1]) {
			fix = fmt.Sprintf("did you mean %q?", near)
		}
		return misused{fmt.Errorf("unknown flag %q of %s", dashed(name), cmd.FullName()), fix}
	}
	if names, ok := strings.CutPrefix(text, "Required flag"); ok {
		_, names, _ = strings.Cut(names, `"`)
		names, _, _ = strings.Cut(names, `"`)
		return misused{fmt.Errorf("%s needs --%s", cmd.FullName(), strings.ReplaceAll(names, ", ", " and --")), fix}
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		return valueError(cmd, m[2], m[1], m[3])
	}
	return misused{errors.New(strings.Replace(text, " for flag -", " for --", 1)), fix}
}

// dashed writes a flag's name as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// group is the action of a command that only has subcommands.
func group(_ context.Context, c *cli.Command) error {
	name := c.Args().First()
	if name == "" {
		return cli.ShowSubcommandHelp(c)
	}
	fix := "see: " + c.FullName() + " --help"
	if near := cli.SuggestCommand(c.Commands, name); near != "" {
		fix = fmt.Sprintf("did you mean %q?", c.FullName()+" "+near)
	}
	return misused{fmt.Errorf("unknown command %q", c.FullName()+" "+name), fix}
}

// A misused error is about how the command was called: exit code 2.
type misused struct {
	error
	fix string
}

func (m misused) Unwrap() error { return m.error }

// misuse reports a wrong call.
func misuse(fix, format string, args ...any) error {
	return misused{fmt.Errorf(format, args...), fix}
}

// A verdict is a result that was written but does not count as done: exit code
// 3 (not a valid measurement) or 4 (a gate failed).
type verdict struct {
	code int
	error
}

func (v verdict) Unwrap() error { return v.error }

// errInterrupted ends a command that was stopped and has written what it had.
var errInterrupted = errors.New("interrupted")
