package replay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"reprise/replay/protocol"
	"reprise/trace"
	"reprise/trace/results"
)

// Defaults of a Config; the flags of the command read them from here.
const (
	DefaultTimeout  = 10 * time.Minute
	DefaultGrace    = 30 * time.Second
	DefaultOutput   = OutputExact
	DefaultProtocol = "chat"
	DefaultH2Conns  = 1
)

// Values of Config.Output.
const (
	OutputExact = "exact" // ask for just the recorded length: max_tokens, min_tokens, ignore_eos
	OutputCap   = "cap"   // ask for no more than the recorded length: max_tokens
	OutputFree  = "free"  // the server decides; a recorded limit is asked for
)

// A Config says what to replay, how and against what. The zero value of each
// field is its default.
type Config struct {
	Trace     string    // path of a canonical trace
	Times     string    // path of a file of times: Trace is a share that Deal made; "" = it is the whole
	Selection Selection // which rows, when
	Dir       string    // run directory; must exist and be empty
	Shard     Shard     // which of these rows are this worker's; all, without others

	URLs     []string          // targets; requests go to them in turn
	Protocol protocol.Protocol // nil = chat
	Models   map[string]string // recorded name to the name to send; "" maps rows without a model
	Model    string            // name for all rows that Models does not map
	Stream   StreamMode        // whether to ask for streams
	Output   string            // "" = DefaultOutput

	Headers   []protocol.Header // of the user; they win
	APIKey    string            // sent as the protocol wants it; never stored
	ExtraBody [][]byte          // JSON objects merged into each body
	Scope     string            // of prompts: another scope shares no prompt text
	Salt      Salt              // marker against warm prefix caches
	Flush     string            // URL to post to before the run, so that the server empties its prefix cache; "" = none

	Cancel  Cancel        // which requests are given up on purpose
	Pace    string        // "" = PaceSchedule
	History History       // whose answers later turns of a conversation in deltas carry
	GapCap  time.Duration // longest wait after an earlier request, for causal and think pacing; 0 = none

	OnError string // "" = ErrorWait: what an error does to those that come after it
	WarmUp  WarmUp // what is sent first, and kept apart
	// CoolDown is the last part of the run that is kept apart likewise; only where it is
	// known when the last request begins.
	CoolDown time.Duration
	CoolFrom trace.Optional[time.Duration] // when it begins, where that is known of the whole run and this is a shard
	Phase    string                        // name of the phase of all other requests; "" = none

	MaxInFlight  int           // cap on requests in flight; 0 = none: open loop
	Timeout      time.Duration // per request, from sent; 0 = DefaultTimeout, below 0 = none
	BytesTimeout time.Duration // longest wait for a byte; 0 = none
	TokenTimeout time.Duration // longest wait for a token; 0 = none
	Grace        time.Duration // after sending has stopped; 0 = DefaultGrace after an interrupt, else until the requests' own limits; below 0 = none

	// Tokenizer counts the tokens of a chunk's text where the server sent no
	// count; such counts are labelled local. nil leaves them unknown.
	Tokenizer func(text []byte) int

	HTTP2   bool // instead of HTTP/1.1; with http URLs the server must know (h2c)
	H2Conns int  // connections to open for each URL; 0 = DefaultH2Conns. More are opened when the server takes no more streams on those

	TLS        TLS
	UnixSocket string // path; all connections go there, whatever the URLs' hosts
	Proxy      string // "" = as the environment says (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), ProxyNone, or the URL of an HTTP proxy

	// AbortErrorRate ends the run once that share of the requests that have ended
	// has failed, after AbortAfter of them; 0 = never. Requests given up on purpose
	// have not failed.
	AbortErrorRate float64

	Labels   map[string]string // into run.json
	Warnings []string          // into run.json, beside those of the run
	Flags    map[string]string // into run.json, as given, without secrets

	Version  string                                                  // of the program
	Dial     func(ctx context.Context, url string) (net.Conn, error) // nil = the network
	Progress func(Progress)                                          // called about every second; nil = none

	// Observe is called when the clock starts, with the time at its 0, and what it
	// returns when the last request has ended, before run.json is written: for what
	// goes on beside a run. Neither may take long. nil = nothing.
	Observe func(begin time.Time) (over func(*results.Run))

	NoRealtime bool // send from a thread like any other, even where it may go before others (Linux SCHED_FIFO)
	NoProbe    bool // do not ask the endpoint before the run; running usage is then asked for, and no template overhead is known

	runningUsage  bool // ask for usage on every event
	overhead      int  // tokens that the endpoint's template adds to a prompt
	overheadKnown bool // the probe found it

	descriptors int64 // that this process may have open; 0 = ask the system

	Histograms bool // Progress carries the histograms behind its quantiles

	// Start returns the instant of time 0, for which the run then waits; it is called
	// when the first requests are ready. nil = at once.
	Start func(ctx context.Context) (time.Time, error)

	// Admit is asked before a request begins, with its place among all that are selected.
	// What may not begin is not sent; in a closed loop it is asked again until it may.
	// nil = all may.
	Admit func(seq int) bool

	portable bool         // wait with package time, as in a synctest bubble
	Begin    func() error // called when all is ready to begin, before anything is written to Dir; nil = nothing to do

	source func() rowReader // instead of Trace
	sink   sink             // instead of the files of Dir
}

// A WarmUp is the beginning of a run whose requests are sent and recorded as the
// others, in a phase of their own that stays out of every number. The zero value is
// none.
type WarmUp struct {
	For      time.Duration // requests eligible before that
	Requests int64         // or so many, the first that are sent
}

// ProxyNone as Config.Proxy uses none, whatever the environment says.
const ProxyNone = "none"

// AbortAfter is how many requests must have ended before a run is aborted.
const AbortAfter = 50

// A StreamMode says whether streams are asked for.
type StreamMode string

// Stream modes. The zero value is StreamOn.
const (
	StreamOn       StreamMode = ""         // always: TTFT and ITL need it
	StreamOff      StreamMode = "off"      // never
	StreamRecorded StreamMode = "recorded" // as the trace says; on where it does not
)

// A History says whose answers stand in the history of a conversation.
type History string

// Histories. The zero value is HistoryRecorded.
const (
	HistoryRecorded History = ""     // as the trace has them
	HistoryLive     History = "live" // what this run's server said; needs causal or think pacing
)

// A TLS says how https servers are trusted.
type TLS struct {
	CAFile   string // PEM; added to the system's authorities
	CertFile string // PEM; a certificate of the client, with KeyFile
	KeyFile  string // PEM
	Insecure bool   // any certificate is taken
}

// pace returns the pacing's name. Users wait for answers; in a closed loop, and
// over whole sessions, turns follow one another.
func (c *Config) pace() string {
	switch {
	case c.Pace != "":
		return c.Pace
	case c.Selection.Load.Kind == LoadUsers:
		return PaceCausal
	case c.Selection.Load.closed():
		return PaceThink
	}
	return PaceSchedule
}

// paced tells whether requests wait for others.
func (c *Config) paced() bool { return c.pace() != PaceSchedule }

func (c *Config) protocol() protocol.Protocol {
	if c.Protocol == nil {
		return protocol.Chat{}
	}
	return c.Protocol
}

func (c *Config) timeout() time.Duration {
	switch {
	case c.Timeout < 0:
		return 0
	case c.Timeout == 0:
		return DefaultTimeout
	}
	return c.Timeout
}

// model returns the name to send for a recorded one; ok is false if it is
// mapped to nothing.
func (c *Config) model(recorded string) (name string, ok bool) {
	if name, ok := c.Models[recorded]; ok {
		return name, true
	}
	return c.Model, c.Model != ""
}

// check refuses flags that exclude each other.
func (c *Config) check() error {
	switch {
	case len(c.URLs) == 0:
		return trace.WithFix(fmt.Errorf("no target"), "name one with --url, such as --url http://localhost:8000")
	case c.MaxInFlight < 0:
		return fmt.Errorf("--max-in-flight %d: must not be below 0", c.MaxInFlight)
	}
	if err := c.checkHTTP2(); err != nil {
		return err
	}
	if err := c.checkLoad(); err != nil {
		return err
	}
	switch c.pace() {
	case PaceThink:
	case PaceSchedule, PaceCausal:
		if c.GapCap != 0 {
			return trace.WithFix(fmt.Errorf("--gap-cap shortens the wait after an earlier request, but under --pace %s requests keep their recorded due times", c.pace()), "use --pace think, or cut the gaps of a weka trace when it is imported: trace import --gap-cap")
		}
	default:
		return trace.WithFix(fmt.Errorf("--pace %q", c.Pace), "use schedule, causal or think")
	}
	switch c.Salt {
	case SaltNone, SaltRun, SaltSession:
	default:
		return trace.WithFix(fmt.Errorf("--cache-salt %q", c.Salt), "use none, run or session")
	}
	if c.History == HistoryLive && !c.paced() {
		return trace.WithFix(errors.New("--history live: a turn has to wait for the answer before it"), "use it with --pace causal or --pace think")
	}
	switch c.Output {
	case "", OutputExact, OutputCap, OutputFree:
	default:
		return trace.WithFix(fmt.Errorf("--output-length %q", c.Output), "use exact, cap or free")
	}
	return nil
}
