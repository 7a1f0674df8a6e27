package replay

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// TestRoomForConnections: what is known to need more descriptors than there are
// is refused, with the sum and the way out; what is guessed to is a warning.
func TestRoomForConnections(t *testing.T) {
	var burst, steady, recorded []trace.Request
	for i := range int64(200) {
		burst = append(burst, at(1000, 10, 1))
		steady = append(steady, at(1000+i, 10, 1))
		r := at(i*100, 10, 1)
		r.RecordedE2E = trace.Some(10 * time.Second)
		recorded = append(recorded, r)
	}
	for _, c := range []struct {
		name   string
		rows   []trace.Request
		config Config
		have   int64
		err    string
		fix    string
		warns  bool
	}{
		{"a burst", burst, Config{}, 231, "232 file descriptors are needed (200 connections: requests due at one instant; and 32 for files), but this process may have 231", "raise the limit with ulimit -n 232, or let requests wait with --max-in-flight 199", false},
		{"a burst with room", burst, Config{}, 232, "", "", false},
		{"a cap that is low enough", burst, Config{MaxInFlight: 100}, 132, "", "", false},
		{"a cap that is not", burst, Config{MaxInFlight: 101}, 132, "133 file descriptors are needed (101 connections: requests under --max-in-flight", "--max-in-flight 100", false},
		{"a cap above the plan", burst, Config{MaxInFlight: 1e6}, 232, "", "", false},
		{"the busiest second", steady, Config{}, 100, "", "", true},
		{"recorded latencies", recorded, Config{}, 131, "132 file descriptors are needed (100 connections: requests in flight at once, if the endpoint", "ulimit -n 132", false},
		{"recorded latencies, with room", recorded, Config{}, 132, "", "", false},
		{"held up by others", burst, Config{Pace: PaceCausal}, 100, "", "", true},
		{"by answers", burst, Config{Pace: PaceThink}, 100, "", "", false},
		{"HTTP/2", burst, Config{HTTP2: true}, 40, "", "", false},
		{"HTTP/2 with too many", burst, Config{HTTP2: true, H2Conns: 9}, 40, "41 file descriptors", "ulimit -n 41", false},
	} {
		c.config.source, c.config.descriptors, c.config.URLs, c.config.Proxy = traceOf(trace.ClockTrace, c.rows...), c.have, []string{"http://h"}, ProxyNone
		s, err := Look(t.Context(), &c.config)
		if err != nil {
			t.Fatal(err)
		}
		warning, err := s.room(&c.config)
		if fmt.Sprint(err) != c.err && (c.err == "" && err != nil || !strings.Contains(fmt.Sprint(err), c.err)) || !strings.Contains(trace.Fix(err), c.fix) || (warning != "") != c.warns {
			t.Errorf("%s: error %v (%s), warning %q", c.name, err, trace.Fix(err), warning)
		}
		if c.err != "" {
			if _, err := Run(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: it runs: %v", c.name, err)
			}
		}
	}
}

// TestDescriptorLimit holds what the runtime of Go does for us: the soft limit is
// the hard one.
func TestDescriptorLimit(t *testing.T) {
	if n := descriptorLimit(); n != 0 && n < 256 {
		t.Errorf("this process may have %d descriptors", n)
	}
}

// TestShortages: the client's own limits are told from the server's refusal, and
// counted.
func TestShortages(t *testing.T) {
	for _, c := range []struct {
		err    error
		lacks  shortage
		cause  string
		counts [2]int64
	}{
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, ofFiles, "this client ran out of file descriptors: too many open files", [2]int64{1, 0}},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.ENFILE)}, ofFiles, "this client ran out of file descriptors: too many open files in system", [2]int64{1, 0}},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "h", Err: "dial udp: socket: too many open files"}}, ofFiles, "this client ran out of file descriptors: too many open files", [2]int64{1, 0}},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}, ofPorts, "this client ran out of local ports", [2]int64{0, 1}},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, noShortage, "cannot connect to h:1: connection refused", [2]int64{}},
	} {
		explained := explainDial(c.err, "h:1")
		var r run
		r.short(explained)
		if lacks(c.err) != c.lacks || lacks(explained) != c.lacks || !strings.HasPrefix(explained.Error(), c.cause) || trace.Fix(explained) == "" ||
			r.outOfFiles.Load() != c.counts[0] || r.outOfPorts.Load() != c.counts[1] {
			t.Errorf("%v: %v, counted %d and %d", c.err, explained, r.outOfFiles.Load(), r.outOfPorts.Load())
		}
	}
}

// TestOutOfDescriptorsInARun: such requests are refused, and counted in the run.
func TestOutOfDescriptorsInARun(t *testing.T) {
	c := Config{URLs: []string{"http://h"}, Dir: t.TempDir(), Model: "m", NoProbe: true, source: traceOf(trace.ClockTrace, at(0, 10, 1), at(1, 10, 1))}
	c.Dial = func(context.Context, string) (net.Conn, error) {
		return nil, explainDial(os.NewSyscallError("socket", syscall.EMFILE), "h:80")
	}
	kept := &memory{}
	c.sink = kept
	run, err := Run(t.Context(), c)
	if err != nil || run.Ended.Client.OutOfDescriptors != 2 || run.Ended.Client.OutOfPorts != 0 {
		t.Fatalf("%+v, error %v", run, err)
	}
	for _, r := range kept.got {
		if r.Outcome != results.OutcomeRefused || !strings.HasPrefix(r.Cause.Value, "this client ran out of file descriptors") {
			t.Errorf("%s: %s", r.Outcome, r.Cause.Value)
		}
	}
}
