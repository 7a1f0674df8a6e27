package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadme runs the reprise lines of README.md's sh and console blocks, in
// order, in one directory that has testdata beside it. A mock runs in the
// background until the end, and takes a free port instead of 8000. What is
// printed is not compared; that every command does what it is shown to do is.
func TestReadme(t *testing.T) {
	t.Parallel()
	module := root(t)
	file, err := os.Open(filepath.Join(module, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	commands := readmeCommands(file)
	if len(commands) == 0 {
		t.Fatal("README.md shows no reprise command")
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(module, "testdata"), filepath.Join(dir, "testdata")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	server := "no mock has been started"
	for _, line := range commands {
		if strings.HasPrefix(line, "reprise mock") {
			line = strings.ReplaceAll(strings.TrimSuffix(line, "&"), shownServer, "127.0.0.1:0")
			server = background(t, dir, line+" --port-file mock.addr")
			continue
		}
		line = strings.ReplaceAll(line, shownServer, server)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		// 3: this machine was too busy for a valid measurement.
		if err != nil && cmd.ProcessState.ExitCode() != 3 {
			t.Fatalf("$ %s\n%s%v", line, out, err)
		}
	}
}

// shownServer is the address of the mock that README.md shows.
const shownServer = "127.0.0.1:8000"

// readmeCommands returns the commands of fenced sh and console blocks that call
// reprise, with the lines they go on over joined.
func readmeCommands(file *os.File) []string {
	var commands []string
	shown, goesOn := false, false
	for s := bufio.NewScanner(file); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if strings.HasPrefix(line, "```") {
			lang := strings.TrimPrefix(line, "```")
			shown, goesOn = lang == "sh" || lang == "console", false
			continue
		}
		text := strings.TrimPrefix(line, "$ ")
		if !shown || !goesOn && !strings.HasPrefix(text, "reprise ") {
			continue
		}
		text, more := strings.CutSuffix(text, `\`)
		if goesOn {
			commands[len(commands)-1] += text
		} else {
			commands = append(commands, text)
		}
		goesOn = more
	}
	return commands
}

// background starts a mock, waits until it says at which address it listens, and ends
// it with the test.
func background(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+line) // exec: the signal must reach the server
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(dir, "mock.addr")); err == nil && len(text) > 0 {
			return string(text)
		}
	}
	t.Fatalf("%s: does not listen after %v", line, patience)
	return ""
}
