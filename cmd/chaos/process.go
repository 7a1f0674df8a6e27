package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
)

// A process is a running program.
type process struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	over chan struct{}
	err  error
}

// start runs a program on a host; nil is this one.
func start(ctx context.Context, on *host, env []string, name string, args ...string) *process {
	p := &process{cmd: exec.CommandContext(ctx, name, args...), over: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = endsWithUs()
	if p.err = on.do(p.cmd.Start); p.err != nil {
		close(p.over)
		return p
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.over)
	}()
	return p
}

// wait returns how it ended; that the machine was too busy for a valid measurement is
// no fault.
func (p *process) wait() error {
	<-p.over
	if p.err != nil && (p.cmd.ProcessState == nil || p.cmd.ProcessState.ExitCode() != 3) {
		return fmt.Errorf("%w\n%s", p.err, p.out.Bytes())
	}
	return nil
}
