//go:build !linux

package main

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// A host is a network namespace, which only Linux has: here it is always nil, this one.
type host struct{}

func newHost() (*host, error) { return nil, errors.New("network namespaces are of Linux") }

func (h *host) do(f func() error) error { return f() }

func (h *host) path() string { return "" }

func (h *host) close() error { return nil }

func endsWithUs() *syscall.SysProcAttr { return nil }

func pause(*process, time.Duration) error {
	return errors.New("only Linux is shown with a paused worker")
}

func inHub(context.Context) (ran bool, err error) {
	return false, errors.New("network namespaces are of Linux")
}

func hubLab(int) *lab { return nil }
