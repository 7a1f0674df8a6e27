package mock

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A FaultKind is one way in which a server fails.
type FaultKind string

const (
	FaultStatus      FaultKind = "status"       // an HTTP error instead of an answer
	FaultReset       FaultKind = "reset"        // the connection is reset before the headers
	FaultSlowHeaders FaultKind = "slow-headers" // the headers come Delay late; the engine works on meanwhile
	FaultStall       FaultKind = "stall"        // the stream pauses for Delay; what the engine made meanwhile then comes in a burst, as behind a stuck hop
	FaultCut         FaultKind = "cut"          // the connection is reset in mid-stream
	FaultTruncate    FaultKind = "truncate"     // the stream ends cleanly, without finish_reason or end marker
	FaultError       FaultKind = "error"        // an error object in mid-stream, which ends it
	FaultMalformed   FaultKind = "malformed"    // an event that is no JSON; the stream goes on
)

// faultKinds in the order of the constants.
var faultKinds = []FaultKind{FaultStatus, FaultReset, FaultSlowHeaders, FaultStall, FaultCut, FaultTruncate, FaultError, FaultMalformed}

// Defaults of Fault.
const (
	DefaultFaultStatus = http.StatusInternalServerError
	DefaultFaultAfter  = 1           // chunks
	DefaultFaultDelay  = time.Second //
)

// A Fault says how and when to fail. Without Share and Every it takes every request.
type Fault struct {
	Kind  FaultKind
	Share float64 // of the requests, drawn by seed in order of arrival
	Every int     // every so-manieth request: Every, 2×Every, ...

	Status     int           // of FaultStatus; 0 = 500
	RetryAfter time.Duration // of FaultStatus: Retry-After, in whole seconds, rounded up; 0 = no such header

	// After is how many chunks with tokens come before a fault in mid-stream; a
	// shorter stream has it before its end. 0 = 1, negative = before the first.
	After int
	Delay time.Duration // of FaultStall and FaultSlowHeaders; 0 = 1 s
}

// FaultHeader is a request header with a fault for this request, as ParseFault
// reads it; the body field mock_fault does the same. Either goes before Config.Faults.
const FaultHeader = "X-Mock-Fault"

// ParseFault reads a fault as KIND[,KEY=VALUE]..., for example
// "status,code=429,retry=2s,share=10%" or "stall,after=3,delay=500ms,every=7".
func ParseFault(s string) (Fault, error) {
	kind, rest, more := strings.Cut(s, ",")
	f := Fault{Kind: FaultKind(kind)}
	if !f.Kind.known() {
		return Fault{}, fmt.Errorf("fault %q: want one of %s", kind, kindList())
	}
	for more {
		var part string
		part, rest, more = strings.Cut(rest, ",")
		key, value, _ := strings.Cut(part, "=")
		if err := f.set(key, value); err != nil {
			return Fault{}, fmt.Errorf("fault %s: %s: %w", kind, key, err)
		}
	}
	return f, nil
}

// String returns what ParseFault reads.
func (f Fault) String() string {
	s := string(f.Kind)
	add := func(key, value string) { s += "," + key + "=" + value }
	if f.Share != 0 {
		add("share", strconv.FormatFloat(f.Share, 'g', -1, 64))
	}
	if f.Every != 0 {
		add("every", strconv.Itoa(f.Every))
	}
	if f.Status != 0 {
		add("code", strconv.Itoa(f.Status))
	}
	if f.RetryAfter != 0 {
		add("retry", f.RetryAfter.String())
	}
	if f.After != 0 {
		add("after", strconv.Itoa(max(f.After, 0)))
	}
	if f.Delay != 0 {
		add("delay", f.Delay.String())
	}
	return s
}

func (k FaultKind) known() bool {
	for _, one := range faultKinds {
		if k == one {
			return true
		}
	}
	return false
}

func kindList() string {
	names := make([]string, len(faultKinds))
	for i, k := range faultKinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// set takes one KEY=VALUE.
func (f *Fault) set(key, value string) (err error) {
	switch key {
	case "share":
		f.Share, err = parseShare(value)
	case "every":
		f.Every, err = parseCount(value, 1, math.MaxInt32)
	case "code":
		f.Status, err = parseCount(value, 400, 599)
	case "after":
		if f.After, err = parseCount(value, 0, math.MaxInt32); f.After == 0 {
			f.After = -1
		}
	case "retry":
		f.RetryAfter, err = parseDelay(value)
	case "delay":
		f.Delay, err = parseDelay(value)
	default:
		err = errors.New("want share, every, code, retry, after or delay")
	}
	return err
}

func parseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, fmt.Errorf("want a share such as 10%% or 0.1, got %q", s)
	}
	return share, nil
}

func parseCount(s string, low, high int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("want a number from %d to %d, got %q", low, high, s)
	}
	return n, nil
}

func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("want a duration such as 250ms, got %q", s)
	}
	return d, nil
}

// takes reports whether the fault is for the request with this ordinal (from
// 0); rule is the fault's place in the list.
func (f *Fault) takes(seed uint64, rule int, ordinal uint64) bool {
	if f.Every > 0 {
		return (ordinal+1)%uint64(f.Every) == 0
	}
	if f.Share > 0 {
		return float64(mixed(seed^mixed(uint64(rule)<<48^ordinal)))/(1<<64) < f.Share
	}
	return true
}

// fault returns the fault for a request, or nil.
func (c *Config) fault(ordinal uint64, asked string) (*Fault, error) {
	if asked != "" {
		f, err := ParseFault(asked)
		if err != nil || !f.takes(c.Seed, len(c.Faults), ordinal) {
			return nil, err
		}
		return f.withDefaults(), nil
	}
	for i, f := range c.Faults {
		if f.takes(c.Seed, i, ordinal) {
			return f.withDefaults(), nil
		}
	}
	return nil, nil
}

func (f Fault) withDefaults() *Fault {
	f.Status = orDefault(f.Status, DefaultFaultStatus)
	f.After = max(orDefault(f.After, DefaultFaultAfter), 0)
	if f.Delay == 0 {
		f.Delay = DefaultFaultDelay
	}
	return &f
}

// is reports whether there is a fault of this kind.
func (f *Fault) is(kind FaultKind) bool { return f != nil && f.Kind == kind }

// midStream reports whether there is a fault that waits for After chunks.
func (f *Fault) midStream() bool {
	if f == nil {
		return false
	}
	switch f.Kind {
	case FaultStall, FaultCut, FaultTruncate, FaultError, FaultMalformed:
		return true
	}
	return false
}

// mixed spreads the bits of h (the finaliser of SplitMix64).
func mixed(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
