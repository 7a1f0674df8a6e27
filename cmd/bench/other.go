//go:build !linux

package main

import "errors"

var errLinux = errors.New("the paced server and the epoll floor need Linux")

func serve() error { return errLinux }

func runFloor(*work, int, int, string) error { return errLinux }

func dispatchMeasures() []measure { return nil }

func truthMeasures() []measure { return nil }

func hog() error { return errLinux }

func stall(string) error { return errLinux }

func account([]string) error {
	return errors.New("the CPU of all descendants is counted on Linux only")
}
