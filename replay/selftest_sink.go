package replay

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Where the loopback answers shortly, with a flood of chunks, and with so many
// chunks, one every so many microseconds: /paced/EVERY/N.
const (
	shortPath = "/short"
	floodPath = "/flood"
	pacedPath = "/paced"
)

// A loopback is a server for self-tests: it reads a request and writes an answer
// that was made beforehand, with a goroutine for each connection and nothing else.
type loopback struct {
	l     net.Listener
	short []byte
	flood [][]byte // chunks
	end   []byte
	live  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil when it is closed
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// newLoopback listens on a free port.
func newLoopback() (*loopback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &loopback{l: l, conns: map[net.Conn]bool{}}
	s.end = []byte(frame("data: [DONE]\n\n") + "0\r\n\r\n")
	s.short = []byte(streamHead + tokenEvent(1) + string(s.end))
	for i := range floodTokens {
		s.flood = append(s.flood, []byte(tokenEvent(i+1)))
	}
	s.live.Go(s.accept)
	return s, nil
}

func (s *loopback) url() string { return "http://" + s.l.Addr().String() }

// close ends all connections and waits for their goroutines.
func (s *loopback) close() {
	s.l.Close()
	s.mu.Lock()
	for nc := range s.conns {
		nc.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.live.Wait()
}

func (s *loopback) accept() {
	for {
		nc, err := s.l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.conns == nil {
			s.mu.Unlock()
			nc.Close()
			return
		}
		s.conns[nc] = true
		s.live.Go(func() { s.serve(nc) })
		s.mu.Unlock()
	}
}

// serve answers requests until the connection closes.
func (s *loopback) serve(nc net.Conn) {
	defer func() {
		nc.Close()
		s.mu.Lock()
		delete(s.conns, nc)
		s.mu.Unlock()
	}()
	in := bufio.NewReader(nc)
	for {
		path, err := readRequest(in)
		if err != nil {
			return
		}
		if err := s.answer(nc, path); err != nil {
			return
		}
	}
}

// answer writes what path asks for.
func (s *loopback) answer(nc net.Conn, path string) error {
	var every time.Duration
	n := floodTokens
	switch {
	case strings.HasPrefix(path, shortPath):
		_, err := nc.Write(s.short)
		return err
	case strings.HasPrefix(path, pacedPath):
		var us int64
		if _, err := fmt.Sscanf(path, pacedPath+"/%d/%d/", &us, &n); err != nil {
			return err
		}
		every = time.Duration(us) * time.Microsecond
	}
	if _, err := nc.Write([]byte(streamHead)); err != nil {
		return err
	}
	begin := time.Now()
	for i, p := range s.flood[:min(n, floodTokens)] {
		if every > 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * every)))
		}
		if _, err := nc.Write(p); err != nil {
			return err
		}
	}
	_, err := nc.Write(s.end)
	return err
}

// readRequest takes a request off in, and returns its path.
func readRequest(in *bufio.Reader) (path string, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	_, path, _ = strings.Cut(line, " ")
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if text, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(text)); err != nil {
				return "", err
			}
		}
	}
	_, err = in.Discard(length)
	return path, err
}

// tokenEvent is a chunk of a chat with one token, as vLLM writes it, in a chunk of
// HTTP/1.1.
func tokenEvent(total int) string {
	return frame(fmt.Sprintf(`data: {"id":"chatcmpl-selftest","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":16,"total_tokens":%d,"completion_tokens":%d}}`, 16+total, total) + "\n\n")
}

func frame(event string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%x\r\n%s\r\n", len(event), event)
	return b.String()
}
