package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// orphanGrace is how long descendants that outlive the command may take.
const orphanGrace = 20 * time.Second

// account runs a command and prints what it spent as JSON to descriptor 3. It is
// the reaper of every descendant whose parent goes first, so that each one is
// waited for, either by its own parent or here, and RUSAGE_CHILDREN has them all.
func account(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: bench arm account - DIR COMMAND [ARG...]")
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	begun := time.Now()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	cmd.Wait() // the code says how it went
	s := spent{Wall: time.Since(begun).Seconds(), Code: cmd.ProcessState.ExitCode()}
	for give := time.Now().Add(orphanGrace); ; {
		id, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.ECHILD {
			break
		}
		if err != nil && err != syscall.EINTR {
			return err
		}
		if id == 0 {
			if time.Now().After(give) {
				return fmt.Errorf("%s has left processes that do not end", args[0])
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return err
	}
	s.User = time.Duration(u.Utime.Nano()).Seconds()
	s.CPU = s.User + time.Duration(u.Stime.Nano()).Seconds()
	s.RSS = float64(u.Maxrss) * 1e-3
	return json.NewEncoder(os.NewFile(3, "account")).Encode(s)
}
