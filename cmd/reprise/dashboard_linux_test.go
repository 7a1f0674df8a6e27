package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reprise/replay/mock"
	"reprise/trace/results"
)

// A terminal is a pseudo terminal with a program in it.
type terminal struct {
	master, slave *os.File
	cmd           *exec.Cmd
	mu            sync.Mutex
	seen          bytes.Buffer // guarded by mu
	before        unix.Termios
}

// inTerminal starts the program in a terminal of 80 x 24.
func inTerminal(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { slave.Close() })
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "reprise")
	if err := os.Symlink(executable(t), program); err != nil { // by this name, the test is the program
		t.Skipf("no symbolic links here: %v", err)
	}
	term := &terminal{master: master, slave: slave, before: *before, cmd: exec.Command(program, args...)}
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color"), env...)
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			term.mu.Lock()
			term.seen.Write(buf[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return term
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.seen.String()
}

// await waits until a text has been seen.
func (term *terminal) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(term.text(), text) {
			return
		}
	}
	t.Fatalf("%q is not seen after %v: %q", text, patience, term.text())
}

// lastWord is written to a terminal by these tests.
const lastWord = "(the program has ended)"

// end waits for the program, and holds the terminal against what it was before.
func (term *terminal) end(t *testing.T) *os.ProcessState {
	t.Helper()
	term.cmd.Wait()
	after, err := unix.IoctlGetTermios(int(term.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if after.Lflag != term.before.Lflag || after.Iflag != term.before.Iflag || after.Oflag != term.before.Oflag {
		t.Errorf("the terminal's mode is %+v, was %+v", after, term.before)
	}
	if _, err := term.slave.WriteString(lastWord); err != nil { // what comes before it has been read when it has
		t.Fatal(err)
	}
	term.await(t, lastWord)
	text := term.text()
	for _, mode := range []string{"?25", "?2004", "?1049", "?1000", "?1003"} {
		on, off := "\x1b["+mode+"h", "\x1b["+mode+"l"
		if mode == "?25" {
			on, off = off, on // a hidden cursor is what must not stay
		}
		if strings.LastIndex(text, on) > strings.LastIndex(text, off) {
			t.Errorf("mode %s is left on: %q", mode, text)
		}
	}
	return term.cmd.ProcessState
}

// longRun is a trace of a request each 50 ms for 20 s, and where it is served.
func longRun(t *testing.T) (path, url, run string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "t.parquet")
	everyTrace(t, path, 400, 50*time.Millisecond)
	_, url = serveMock(t)
	return path, url, filepath.Join(dir, "run")
}

// TestDashboardInTerminal: frames are seen, q stops the sending, and what is left is
// the report and a terminal as it was.
func TestDashboardInTerminal(t *testing.T) {
	t.Parallel()
	path, url, run := longRun(t)
	term := inTerminal(t, nil, "replay", path, "--url", url, "--model", mock.DefaultModel, "--probe=false", "-o", run)
	term.await(t, "in flight")
	term.await(t, "q: stop sending")
	if _, err := term.master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	state := term.end(t)
	if code := state.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130\n%q", code, term.text())
	}
	o, err := results.OpenRun(run)
	if err != nil || o.Run.Ended == nil || !o.Run.Ended.Interrupted || o.Run.Ended.Sent == 0 || o.Run.Ended.Unsent == 0 {
		t.Errorf("%+v, %v", o, err)
	}
	if text := term.text(); !strings.Contains(text, "lateness") {
		t.Errorf("no report: %q", text)
	}
}

// TestDashboardTwice: the second ctrl-c ends the program at once, and the terminal is
// as it was; so does a second signal.
func TestDashboardTwice(t *testing.T) {
	t.Parallel()
	path, url, run := longRun(t)
	for name, interrupt := range map[string]func(term *terminal){
		"keys":    func(term *terminal) { term.master.WriteString("\x03") },
		"signals": func(term *terminal) { term.cmd.Process.Signal(os.Interrupt) },
	} {
		term := inTerminal(t, []string{"NO_COLOR=1"}, "replay", path, "--url", url, "--model", mock.DefaultModel, "--probe=false", "--force", "-o", run+name)
		term.await(t, "in flight")
		if strings.Contains(term.text(), "\x1b[31m") || strings.Contains(term.text(), "\x1b[1mreprise") {
			t.Errorf("%s: colours with NO_COLOR: %q", name, term.text())
		}
		interrupt(term)
		if name == "signals" {
			time.Sleep(again + 100*time.Millisecond)
		}
		interrupt(term)
		state := term.end(t)
		status, _ := state.Sys().(syscall.WaitStatus)
		if !(status.Signaled() && status.Signal() == syscall.SIGINT) && state.ExitCode() != 130 {
			t.Errorf("%s: %v", name, state)
		}
	}
}

// TestNoDashboard: without a terminal that it may use there are no escape codes.
func TestNoDashboard(t *testing.T) {
	t.Parallel()
	path, url, run := longRun(t)
	for _, c := range []struct {
		env  []string
		flag string
	}{{[]string{"TERM=dumb"}, "auto"}, {nil, "plain"}, {nil, "json"}} {
		term := inTerminal(t, c.env, "replay", path, "--url", url, "--model", mock.DefaultModel, "--probe=false", "--force", "--limit", "30", "--progress", c.flag, "-o", run)
		state := term.end(t)
		if code := state.ExitCode(); code != 0 && code != 3 {
			t.Errorf("--progress %s: exit code %d: %s", c.flag, code, term.text())
		}
		text := term.text()
		if strings.ContainsRune(text, '\x1b') {
			t.Errorf("--progress %s %v: escape codes in %q", c.flag, c.env, text)
		}
		want := map[string]string{"auto": "sent 30 of 30", "plain": "sent 30 of 30", "json": `"elapsed_s":`}[c.flag]
		if !strings.Contains(text, want) {
			t.Errorf("--progress %s: no %q in %q", c.flag, want, text)
		}
	}
}
