package main

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// floor is the least that a client can do: one locked thread, an epoll loop, and
// a scan for what ends an event. It keeps a time per chunk, and the last count.
type floor struct {
	ep      int
	request []byte
	conns   map[int32]*floorConn
	chunks  int
	reads   int
	done    int
}

type floorConn struct {
	fd    int
	times []int64
}

var (
	endOfEvent = []byte("\n\n")
	endOfBody  = []byte("0\r\n\r\n")
)

// runFloor keeps streams requests in flight until total are done.
func runFloor(w *work, streams, total int, body string) error {
	runtime.LockOSThread()
	f := &floor{conns: map[int32]*floorConn{}, request: rawRequest(w.address, body)}
	var err error
	if f.ep, err = unix.EpollCreate1(0); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(w.address)
	if err != nil || host != "127.0.0.1" {
		return fmt.Errorf("address %s: %v", w.address, err)
	}
	number, _ := strconv.Atoi(port)
	w.begin()
	begun := 0
	for range min(streams, total) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return err
		}
		unix.SetNonblock(fd, true)
		f.conns[int32(fd)] = &floorConn{fd: fd, times: make([]int64, 0, 256)}
		if err := unix.EpollCtl(f.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return err
		}
		if _, err := unix.Write(fd, f.request); err != nil {
			return err
		}
		begun++
	}
	events, buf := make([]unix.EpollEvent, 1024), make([]byte, 16<<10)
	for f.done < total {
		n, err := unix.EpollWait(f.ep, events, 5000)
		if err != nil && err != unix.EINTR || n == 0 {
			return fmt.Errorf("waiting with %d of %d done: %v", f.done, total, err)
		}
		now := time.Now().UnixNano()
		for _, e := range events[:max(0, n)] {
			c := f.conns[e.Fd]
			n, err := unix.Read(c.fd, buf)
			if err == unix.EAGAIN {
				continue
			}
			if err != nil || n == 0 {
				return fmt.Errorf("read: %v", err)
			}
			if f.take(c, buf[:n], now) && begun < total {
				begun++
				if _, err := unix.Write(c.fd, f.request); err != nil {
					return err
				}
			}
		}
	}
	w.end(float64(f.chunks))
	w.extra("reads", float64(f.reads)/float64(f.chunks))
	w.extra("requests", float64(f.done))
	return nil
}

// take scans what was read; it returns true at the end of the response.
func (f *floor) take(c *floorConn, p []byte, now int64) bool {
	f.reads++
	for rest := p; ; {
		i := bytes.Index(rest, endOfEvent)
		if i < 0 {
			break
		}
		if bytes.Contains(rest[:i], []byte(`"content":"`)) {
			c.times = append(c.times, now)
			f.chunks++
		}
		rest = rest[i+2:]
	}
	if bytes.HasSuffix(p, endOfBody) {
		c.times = c.times[:0]
		f.done++
		return true
	}
	return false
}
