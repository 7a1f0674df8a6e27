package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"

	"reprise/trace/tokens"
)

// bodyWrite writes a body that is ready to a socket whose other end, another
// process, reads it.
func bodyWrite(w *work) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	reader := exec.Command(os.Args[0], "arm", "discard", "discard", "-", l.Addr().String())
	reader.Stderr = os.Stderr
	if err := reader.Start(); err != nil {
		return err
	}
	defer reader.Wait()
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	body := tokens.Text{Seed: 1}.AppendPrompt(nil, aPlan())
	body = append(body, bytes.Repeat([]byte(" "), 200)...)
	var failed error
	w.repeat(func() int {
		if _, err := c.Write(body); err != nil {
			failed = err
		}
		return 1
	})
	return failed
}

// discard reads all that comes from an address.
func discard(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 1<<20)); err != nil {
		return fmt.Errorf("discard: %w", err)
	}
	return nil
}
