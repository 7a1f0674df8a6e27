package main

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The paced server is one thread on an epoll loop that answers every POST with
// chunks made beforehand, so that it costs little beside the client. The request
// body says how: max_tokens chunks, "bench_iv" microseconds apart (0 = at once),
// "bench_k" events to a write.
type pacedConn struct {
	fd      int
	in      []byte
	left    int // chunks to send
	iv      int64
	k       int
	due     int64
	started bool
	tokens  int
	log     string // file for the times of its writes; "" = none
	id      string
	at      []int64
}

type pacedHeap []*pacedConn

func (h pacedHeap) Len() int           { return len(h) }
func (h pacedHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h pacedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *pacedHeap) Push(x any)        { *h = append(*h, x.(*pacedConn)) }
func (h *pacedHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}

type paced struct {
	ep    int
	conns map[int]*pacedConn
	due   pacedHeap
	out   []byte
}

func serve() error {
	runtime.LockOSThread()
	debug.SetGCPercent(1000)
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(listener, 4096); err != nil {
		return err
	}
	at, err := unix.Getsockname(listener)
	if err != nil {
		return err
	}
	s := &paced{conns: map[int]*pacedConn{}}
	if s.ep, err = unix.EpollCreate1(0); err != nil {
		return err
	}
	if err := s.watch(listener); err != nil {
		return err
	}
	fmt.Printf("127.0.0.1:%d\n", at.(*unix.SockaddrInet4).Port)
	os.Stdout.Close()
	events := make([]unix.EpollEvent, 1024)
	buf := make([]byte, 1<<18)
	for {
		n, err := unix.EpollWait(s.ep, events, s.timeout())
		if err != nil && err != unix.EINTR {
			return err
		}
		for _, e := range events[:max(0, n)] {
			fd := int(e.Fd)
			switch c := s.conns[fd]; {
			case fd == listener:
				s.accept(listener)
			case c != nil:
				s.readable(c, buf)
			}
		}
		now := time.Now().UnixNano()
		for len(s.due) > 0 && s.due[0].due <= now {
			s.emit(heap.Pop(&s.due).(*pacedConn))
		}
	}
}

func (s *paced) watch(fd int) error {
	return unix.EpollCtl(s.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// timeout spins through the last millisecond before the next chunk is due.
func (s *paced) timeout() int {
	if len(s.due) == 0 {
		return -1
	}
	wait := s.due[0].due - time.Now().UnixNano()
	return int(max(0, wait/1e6))
}

func (s *paced) accept(listener int) {
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_NONBLOCK)
		if err != nil {
			return
		}
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		s.conns[fd] = &pacedConn{fd: fd}
		if s.watch(fd) != nil {
			s.close(s.conns[fd])
		}
	}
}

func (s *paced) close(c *pacedConn) {
	delete(s.conns, c.fd)
	unix.Close(c.fd)
	c.fd = -1
}

// readable takes a request once it is whole.
func (s *paced) readable(c *pacedConn, buf []byte) {
	n, err := unix.Read(c.fd, buf)
	if err == unix.EAGAIN {
		return
	}
	if n <= 0 || err != nil {
		s.close(c)
		return
	}
	c.in = append(c.in, buf[:n]...)
	end := bytes.Index(c.in, []byte("\r\n\r\n"))
	if end < 0 {
		return
	}
	length := number(c.in, "Content-Length: ", 0)
	if len(c.in) < end+4+length {
		return
	}
	if bytes.HasPrefix(c.in, []byte("GET")) {
		unix.Write(c.fd, []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
		c.in = c.in[:0]
		return
	}
	body := c.in[end+4:]
	c.tokens = number(body, `"max_tokens":`, 1)
	c.left, c.iv, c.k = c.tokens, int64(number(body, `"bench_iv":`, 0))*1000, max(1, number(body, `"bench_k":`, 1))
	c.started = false
	c.log, c.at = text(body, `"bench_log":"`, '"'), c.at[:0]
	c.id = text(c.in[:end], "X-Request-Id: ", '\r')
	c.in = c.in[:0]
	c.due = time.Now().UnixNano() + c.iv
	if c.iv == 0 {
		for c.fd >= 0 && c.left > 0 {
			s.emit(c)
		}
		return
	}
	heap.Push(&s.due, c)
}

func number(b []byte, key string, missing int) int {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return missing
	}
	n := 0
	for _, d := range b[i+len(key):] {
		if d == ' ' {
			continue
		}
		if d < '0' || d > '9' {
			break
		}
		n = n*10 + int(d-'0')
	}
	return n
}

// text returns what stands between key and end.
func text(b []byte, key string, end byte) string {
	_, rest, ok := bytes.Cut(b, []byte(key))
	if !ok {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte{end})
	return string(value)
}

// logged appends the times of a response to its file.
func (c *pacedConn) logged() error {
	f, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewEncoder(f).Encode(sentStream{c.id, c.at})
}

var framedEvent = []byte(framed(event))

// emit sends the next write of a stream.
func (s *paced) emit(c *pacedConn) {
	if c.fd < 0 {
		return
	}
	out := s.out[:0]
	if !c.started {
		out = append(out, responseHead...)
		c.started = true
	}
	for range min(c.k, c.left) {
		out = append(out, framedEvent...)
		c.left--
	}
	if c.left == 0 {
		usage := `data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1767225600,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":` + strconv.Itoa(c.tokens) + `,"total_tokens":` + strconv.Itoa(9+c.tokens) + "}}\n\n"
		out = append(out, framed(usage)...)
		out = append(out, framed("data: [DONE]\n\n")...)
		out = append(out, "0\r\n\r\n"...)
	}
	s.out = out
	if c.log != "" {
		c.at = append(c.at, time.Now().UnixNano())
	}
	for len(out) > 0 {
		n, err := unix.Write(c.fd, out)
		if err == unix.EAGAIN {
			time.Sleep(50 * time.Microsecond)
			continue
		}
		if err != nil {
			s.close(c)
			return
		}
		out = out[n:]
	}
	if c.left == 0 && c.log != "" {
		if err := c.logged(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}
	if c.left > 0 && c.iv > 0 {
		c.due += c.iv
		heap.Push(&s.due, c)
	}
}
