package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the golden parts of the scripts")

// patience is how long a busy machine may take to start a program or a server.
const patience = time.Minute

// TestMain makes the test binary the reprise command of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"reprise": main})
}

// TestScripts runs testdata/*.txtar: every subcommand, flag and refusal, with
// exit codes and what a user reads.
func TestScripts(t *testing.T) {
	testdata, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TESTDATA", testdata)
			env.Setenv("TOKENIZERS", filepath.Join(testdata, "..", "trace", "tokens", "hf", "testdata"))
			env.Setenv("NO_COLOR", "1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "address": address, "nowhere": nowhere, "filled": filled, "nats-server": natsServer,
		},
	})
}

// exits CODE PROGRAM ARGS... runs the program, which must end with that code, or
// with one of several, as in 0|3: a busy machine makes any run invalid.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("%s exited with %d, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// address FILE VAR waits until FILE is there, such as the address of a mock, and
// sets VAR to what it holds.
func address(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: address FILE VAR")
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && len(text) > 0 {
			ts.Setenv(args[1], string(text))
			return
		}
	}
	ts.Fatalf("no address in %s after %v", args[0], patience)
}

// nowhere PATTERN DIR... fails if any file below the directories holds a match of
// the regular expression. Runs have random names, so a secret is to be looked for
// whole: three letters of it turn up by chance.
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: nowhere PATTERN DIR...")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	files := 0
	for _, dir := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files++
			if found := pattern.FindString(ts.ReadFile(path)); found != "" {
				ts.Fatalf("%s holds %q", path, found)
			}
			return nil
		}))
	}
	if files == 0 {
		ts.Fatalf("no files in %s", strings.Join(args[1:], " "))
	}
}

// filled FILE BYTES PREFIX SUFFIX writes a file of one line that is as long as
// said, spaces between prefix and suffix.
func filled(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: filled FILE BYTES PREFIX SUFFIX")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(args[2]+strings.Repeat(" ", n-len(args[2])-len(args[3]))+args[3]+"\n"), 0o644))
}
