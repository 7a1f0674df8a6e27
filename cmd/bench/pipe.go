package main

import (
	"bytes"
	"io"
	"net"

	"reprise/trace/tokens"
)

// bodyWrite writes a body that is ready to a socket whose other end reads it.
func bodyWrite(w *work) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.CopyBuffer(struct{ io.Writer }{io.Discard}, c, make([]byte, 1<<20))
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
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
