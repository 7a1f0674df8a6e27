package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// A proxy passes TCP connections on, late, and cuts them.
type proxy struct {
	to    string
	delay time.Duration // each way
	l     net.Listener

	mu     sync.Mutex
	until  time.Time // no connection lives before
	open   map[net.Conn]struct{}
	copies sync.WaitGroup
}

func newProxy(l net.Listener, to string, delay time.Duration) *proxy {
	p := &proxy{to: to, delay: delay, l: l, open: map[net.Conn]struct{}{}}
	p.copies.Go(p.accept)
	return p
}

func (p *proxy) address() string { return p.l.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil || !p.keep(in, out) {
			in.Close()
			if err == nil {
				out.Close()
			}
			continue
		}
		p.copies.Go(func() { p.pass(in, out) })
		p.copies.Go(func() { p.pass(out, in) })
	}
}

// keep notes a connection, unless the network is cut.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.until) {
		return false
	}
	for _, c := range conns {
		p.open[c] = struct{}{}
	}
	return true
}

// A packet is bytes and when they arrive.
type packet struct {
	at   time.Time
	data []byte
}

// pass moves bytes, each as late as the others, so that nothing waits for what is
// ahead of it.
func (p *proxy) pass(from, to net.Conn) {
	line := make(chan packet, 1024)
	p.copies.Go(func() {
		defer to.Close()
		for k := range line {
			time.Sleep(time.Until(k.at))
			if _, err := to.Write(k.data); err != nil {
				from.Close()
				for range line {
				}
				return
			}
		}
	})
	defer close(line)
	for {
		buf := make([]byte, 32<<10)
		n, err := from.Read(buf)
		if n > 0 {
			line <- packet{time.Now().Add(p.delay), buf[:n]}
		}
		if err != nil {
			if err != io.EOF {
				to.Close()
			}
			return
		}
	}
}

// cut ends all connections, and lets none in for a while.
func (p *proxy) cut(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(d)
	for c := range p.open {
		c.Close()
		delete(p.open, c)
	}
}

func (p *proxy) close() {
	p.l.Close()
	p.cut(0)
	p.copies.Wait()
}
