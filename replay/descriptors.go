package replay

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"reprise/trace"
)

// otherFiles is room for the descriptors of a run that are no connections: the
// trace, results, what the runtime polls with, and the resolver.
const otherFiles = 32

// A need is how many connections a plan has open at once.
type need struct {
	conns int64
	why   string // of the number
	known bool   // else it is a guess
}

// needs is what the plan says, with HTTP/1.1 one connection for each request in
// flight: what is known before what is guessed.
func (s *Survey) needs(c *Config) []need {
	switch {
	case c.HTTP2:
		return []need{{int64(cmp.Or(c.H2Conns, DefaultH2Conns) * len(c.URLs)), "of --h2-conns for each URL", true}}
	case c.MaxInFlight > 0:
		return []need{{min(int64(c.MaxInFlight), s.Planned.Requests), "requests under --max-in-flight", true}}
	case c.Selection.Load.Kind == LoadConcurrency:
		return []need{{int64(c.Selection.Load.N), "requests of the closed loop", true}}
	case c.pace() == PaceThink:
		return nil // sessions go on as their answers come
	}
	open := !c.paced() // else requests may be held up
	return []need{
		{s.MaxBurst, "requests due at one instant", open},
		{s.PeakInFlight.Or(0), "requests in flight at once, if the endpoint is as fast as the recorded one", open},
		{int64(s.PeakRate), "requests due in the busiest second, if answers take one", false},
	}
}

// room tells whether the process may open as many descriptors as the plan needs:
// an error if it is known that it may not, a warning if that is a guess.
func (s *Survey) room(c *Config) (warning string, err error) {
	have := c.descriptors
	if have == 0 {
		have = descriptorLimit()
	}
	for _, n := range s.needs(c) {
		wants := n.conns + otherFiles
		if have == 0 || wants <= have {
			continue
		}
		text := fmt.Sprintf("%d file descriptors are needed (%d connections: %s; and %d for files), but this process may have %d", wants, n.conns, n.why, otherFiles, have)
		if !n.known {
			return text + "; requests beyond them would fail for the client's own limit (ulimit -n)", nil
		}
		fix := fmt.Sprintf("raise the limit with ulimit -n %d", wants)
		if left := have - otherFiles; left > 0 && !c.HTTP2 {
			fix += fmt.Sprintf(", or let requests wait with --max-in-flight %d, which the label then says", left)
		}
		return "", trace.WithFix(errors.New(text), fix)
	}
	return "", nil
}

// A shortage is something that this machine has too little of for a connection.
type shortage uint8

const (
	noShortage shortage = iota
	ofFiles             // file descriptors, of the process or of the system
	ofPorts             // local ports for connections to one address
)

// lacks tells whether err is a shortage of this machine.
func lacks(err error) shortage {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return ofFiles
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return ofPorts
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && strings.Contains(dns.Err, syscall.EMFILE.Error()) { // the resolver keeps the text alone
		return ofFiles
	}
	return noShortage
}

// explainShortage says that the client is at fault; nil if it is not.
func explainShortage(err error) error {
	switch lacks(err) {
	case ofFiles:
		return trace.WithFix(fmt.Errorf("this client ran out of file descriptors: %w", cmp.Or(innermost(err), syscall.EMFILE)), "raise the limit with ulimit -n, or use --max-in-flight")
	case ofPorts:
		return trace.WithFix(fmt.Errorf("this client ran out of local ports for connections to the endpoint: %w", syscall.EADDRNOTAVAIL), "widen net.ipv4.ip_local_port_range, give the endpoint a second address with another --url, or use --max-in-flight")
	}
	return nil
}

func innermost(err error) syscall.Errno {
	errno, _ := errors.AsType[syscall.Errno](err)
	return errno
}

// short counts a request that got no connection for want of something here.
func (r *run) short(err error) {
	switch lacks(err) {
	case ofFiles:
		r.outOfFiles.Add(1)
	case ofPorts:
		r.outOfPorts.Add(1)
	}
}

// A crowd follows how many requests are in flight if each takes as long as it
// was recorded to.
type crowd struct {
	ends endHeap
	peak int64
}

func (c *crowd) add(due, takes time.Duration) {
	for len(c.ends) > 0 && c.ends[0] <= due {
		heap.Pop(&c.ends)
	}
	heap.Push(&c.ends, due+takes)
	c.peak = max(c.peak, int64(len(c.ends)))
}

// endHeap has the earliest end first.
type endHeap []time.Duration

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h endHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)        { *h = append(*h, x.(time.Duration)) }
func (h *endHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
