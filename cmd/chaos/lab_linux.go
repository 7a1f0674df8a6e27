package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A host is a network namespace that only this process and those on it hold. nil is
// where this process is.
type host struct{ ns *os.File }

func ownNamespace() (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
}

// newHost makes a namespace with nothing in it.
func newHost() (*host, error) {
	runtime.LockOSThread() // a thread that cannot go back ends with its goroutine
	before, err := ownNamespace()
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer before.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	ns, err := ownNamespace()
	if back := unix.Setns(int(before.Fd()), unix.CLONE_NEWNET); back != nil {
		return nil, back
	}
	runtime.UnlockOSThread()
	return &host{ns}, err
}

// do calls f on the host: sockets that f opens and processes that it starts are there.
func (h *host) do(f func() error) error {
	if h == nil {
		return f()
	}
	runtime.LockOSThread()
	before, err := ownNamespace()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer before.Close()
	if err := unix.Setns(int(h.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = f()
	if back := unix.Setns(int(before.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back)
	}
	runtime.UnlockOSThread()
	return err
}

// path names the namespace for other programs, while this one runs.
func (h *host) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), h.ns.Fd()) }

func (h *host) close() error {
	if h == nil {
		return nil
	}
	return h.ns.Close()
}

// endsWithUs has a process killed when this one is.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// pause stops a process for a while.
func pause(p *process, d time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(d)
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// envHub marks the process that is in a namespace of its own, the hub.
const envHub = "REPRISE_CHAOS_HUB"

// exitNoLab says that the hub cannot make hosts, before it has done anything else.
const exitNoLab = 75

// inHub runs this program anew in a namespace of its own, where it is the hub; ran is
// false with the reason where that is not allowed.
func inHub(ctx context.Context) (ran bool, err error) {
	if os.Getenv(envHub) != "" {
		return false, nil
	}
	program, err := os.Executable()
	if err != nil {
		return false, err
	}
	runtime.LockOSThread() // the hub is killed when this thread ends
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, program, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), envHub+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("network namespace: %w", err)
	}
	if err = cmd.Wait(); cmd.ProcessState.ExitCode() == exitNoLab {
		return false, errors.New("its hosts cannot be made")
	}
	if cmd.ProcessState.ExitCode() == 1 {
		return true, errors.New("not all is as it must be")
	}
	return true, err
}

// hubLab is the lab of a process that inHub has started; nil in one that it has not.
func hubLab(n int) *lab {
	if os.Getenv(envHub) == "" {
		return nil
	}
	l, err := newLab(nil, n)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: no hosts:", err)
		os.Exit(exitNoLab)
	}
	return l
}
