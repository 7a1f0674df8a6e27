package replay

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock"
	"reprise/replay/mock/batch"
	"reprise/replay/mock/pipe"
	"reprise/replay/protocol"
	"reprise/trace"
	"reprise/trace/results"
)

// memory is a trace and a recorder in memory: files are compressed with state
// that goroutines of several bubbles would share.
type memory struct {
	meta trace.Meta
	rows []trace.Request
	next int
	got  []results.Result
}

func (m *memory) Meta() trace.Meta { return m.meta }
func (m *memory) Close() error     { return nil }
func (m *memory) Read(b *trace.Batch, n int) error {
	b.Reset()
	if m.next == len(m.rows) {
		return io.EOF
	}
	for ; m.next < len(m.rows) && b.Len() < n; m.next++ {
		b.Append(&m.rows[m.next])
	}
	return nil
}

func (m *memory) Add(r *results.Result) {
	kept := *r
	kept.Ledger = slices.Clone(r.Ledger)
	m.got = append(m.got, kept)
}
func (m *memory) Pending() int { return 0 }
func (m *memory) Full() bool   { return false }
func (m *memory) Drop() int    { return 0 }
func (m *memory) Flush() error { return nil }

// traceOf is a trace of our own making.
func traceOf(clock string, rows ...trace.Request) func() rowReader {
	for i := range rows {
		rows[i].ID = int64(i)
		rows[i].Operation = trace.OpChat
	}
	return func() rowReader { return &memory{meta: trace.Meta{Clock: clock}, rows: rows} }
}

func at(ms int64, in, out int64) trace.Request {
	return trace.Request{Arrival: trace.Some(time.Duration(ms) * time.Millisecond), InputTokens: trace.Some(in), OutputTokens: trace.Some(out)}
}

// exact is a mock without noise: 1 ms a prompt token, 10 ms a step, whatever
// the batch.
func exact() mock.Config {
	return mock.Config{Engine: batch.Config{PrefillRate: 1000, StepBase: 10 * time.Millisecond, StepPerSequence: -1, CacheTokens: -1}}
}

// replayTo runs c against a mock in memory and returns what was recorded.
func replayTo(t *testing.T, ctx context.Context, server *mock.Server, c Config) (map[int64]results.Result, *results.Run, error) {
	t.Helper()
	c.NoProbe = true
	return replayProbed(t, ctx, server, c)
}

// replayProbed is replayTo with the small requests before the run.
func replayProbed(t *testing.T, ctx context.Context, server *mock.Server, c Config) (map[int64]results.Result, *results.Run, error) {
	t.Helper()
	list, run, err := played(t, ctx, server, c)
	got := map[int64]results.Result{}
	for _, r := range list {
		if _, twice := got[r.ID]; twice {
			t.Errorf("id %d recorded twice", r.ID)
		}
		got[r.ID] = r
	}
	return got, run, err
}

// played is replayProbed that returns the records in the order in which they ended.
func played(t *testing.T, ctx context.Context, server *mock.Server, c Config) ([]results.Result, *results.Run, error) {
	t.Helper()
	l := pipe.Listen()
	serverCtx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(serverCtx, l) }()
	c.Dial = func(ctx context.Context, _ string) (net.Conn, error) { return l.Dial(ctx) }
	c.URLs = []string{"http://mock"}
	c.Dir = t.TempDir()
	c.portable = true
	kept := &memory{}
	c.sink = kept
	run, err := Run(ctx, c)
	stop()
	<-served
	return kept.got, run, err
}

func TestReplayIsOnTimeAndExact(t *testing.T) {
	path := traceOf(trace.ClockTrace, at(0, 100, 5), at(0, 100, 1), at(250, 50, 3), at(1000, 20, 4))
	for _, protocolName := range []string{"chat", "completions"} {
		synctest.Test(t, func(t *testing.T) {
			server := mock.New(exact())
			p, _ := protocol.ByName(protocolName)
			got, run, err := replayTo(t, t.Context(), server, Config{source: path, Protocol: p})
			if err != nil {
				t.Fatal(err)
			}
			if run.Ended.Sent != 4 || run.Ended.Unsent != 0 || len(got) != 4 || run.Label != "open loop" {
				t.Fatalf("ended %+v with %d records", run.Ended, len(got))
			}
			due := []time.Duration{0, 0, 250 * time.Millisecond, time.Second}
			for id, r := range got {
				if late, ok := results.Lateness(&r); !ok || late != 0 {
					t.Errorf("%s id %d: lateness %v %v", protocolName, id, late, ok)
				}
				if r.Due.Value != due[id] || r.Sent.Value != due[id] || r.Outcome != results.OutcomeOK {
					t.Errorf("%s id %d: due %v, sent %v, outcome %s %v", protocolName, id, r.Due.Value, r.Sent.Value, r.Outcome, r.Cause)
				}
				if r.PlannedInputTokens != r.CountedInputTokens || r.PlannedOutputTokens != r.OutputTokens {
					t.Errorf("%s id %d: planned %v/%v tokens, the server counted %v/%v", protocolName, id, r.PlannedInputTokens, r.PlannedOutputTokens, r.CountedInputTokens, r.OutputTokens)
				}
				if r.LedgerDifference.Known && r.LedgerDifference.Value != 0 {
					t.Errorf("%s id %d: ledger difference %d", protocolName, id, r.LedgerDifference.Value)
				}
			}
			sameAsMock(t, server, got)
		})
	}
}

// sameAsMock holds the client's account against the server's: counts exactly,
// and in a bubble, where the wire takes no time, instants too.
func sameAsMock(t *testing.T, server *mock.Server, got map[int64]results.Result) {
	t.Helper()
	records, dropped := server.Account()
	if dropped != 0 || len(records) != len(got) {
		t.Errorf("the mock counted %d requests and dropped %d, the client %d", len(records), dropped, len(got))
	}
	for _, m := range records {
		var id int64
		fmt.Sscanf(m.RequestID, "reprise-%d", &id)
		r, ok := got[id]
		if !ok {
			t.Errorf("the mock saw %q, the client did not record it", m.RequestID)
			continue
		}
		if int64(m.PromptTokens) != r.CountedInputTokens.Value || int64(m.SentTokens) != r.OutputTokens.Value {
			t.Errorf("id %d: mock %d/%d tokens, client %d/%d", id, m.PromptTokens, m.SentTokens, r.CountedInputTokens.Value, r.OutputTokens.Value)
		}
		i := 0
		for c := range results.Chunks(r.Ledger) {
			if !c.HasTokens() {
				continue
			}
			if i < len(m.Chunks) {
				since := (m.Chunks[i].At - m.Arrival).Truncate(time.Microsecond)
				if c.At != since {
					t.Errorf("id %d chunk %d: read %v after sent, written %v after arrival", id, i, c.At, since)
				}
			}
			i++
		}
		if i != len(m.Chunks) {
			t.Errorf("id %d: %d chunks with tokens, the mock wrote %d", id, i, len(m.Chunks))
		}
	}
}

func TestPacingFlags(t *testing.T) {
	path := traceOf(trace.ClockTrace, at(0, 10, 1), at(1000, 10, 1), at(2000, 10, 1), at(3000, 10, 1))
	for name, c := range map[string]struct {
		s    Selection
		want map[int64]time.Duration
	}{
		"speed":    {Selection{Speed: 2}, map[int64]time.Duration{0: 0, 1: 500 * time.Millisecond, 2: time.Second, 3: 1500 * time.Millisecond}},
		"window":   {Selection{From: time.Second, To: 3 * time.Second}, map[int64]time.Duration{1: 0, 2: time.Second}},
		"limit":    {Selection{Limit: 2}, map[int64]time.Duration{0: 0, 1: time.Second}},
		"arrivals": {Selection{Arrivals: Arrivals{Kind: "constant", Rate: 10}, Limit: 3}, map[int64]time.Duration{0: 0, 1: 100 * time.Millisecond, 2: 200 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, _, err := replayTo(t, t.Context(), mock.New(exact()), Config{source: path, Selection: c.s})
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != len(c.want) {
					t.Errorf("%d requests, want %d", len(got), len(c.want))
				}
				for id, want := range c.want {
					if r := got[id]; r.Sent.Value != want {
						t.Errorf("id %d sent at %v, want %v", id, r.Sent.Value, want)
					}
				}
			})
		})
	}
}

func TestSessionClocksArePlaced(t *testing.T) {
	row := func(session string, ms int64) trace.Request {
		r := at(ms, 10, 1)
		r.Session = trace.Some(session)
		return r
	}
	path := traceOf(trace.ClockSession, row("a", 0), row("a", 5000), row("b", 0), row("b", 100))
	if _, err := Run(t.Context(), Config{source: path, URLs: []string{"http://x"}, Dir: t.TempDir()}); err == nil || trace.Fix(err) == "" {
		t.Errorf("a session clock was replayed as if it were one: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		got, _, err := replayTo(t, t.Context(), mock.New(exact()), Config{source: path, Selection: Selection{SessionArrivals: Arrivals{Kind: "constant", Rate: 0.5}, Speed: 10}})
		if err != nil {
			t.Fatal(err)
		}
		// Session starts keep the stated rate; speed changes the times within.
		for id, want := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second, 2010 * time.Millisecond} {
			if r := got[int64(id)]; r.Sent.Value != want {
				t.Errorf("id %d sent at %v, want %v", id, r.Sent.Value, want)
			}
		}
	})
}

func TestCapIsCountedAndNeverExceeded(t *testing.T) {
	path := traceOf(trace.ClockTrace, at(0, 100, 1), at(0, 100, 1), at(0, 100, 1))
	synctest.Test(t, func(t *testing.T) {
		got, run, err := replayTo(t, t.Context(), mock.New(exact()), Config{source: path, MaxInFlight: 1})
		if err != nil {
			t.Fatal(err)
		}
		if run.Ended.Capped != 2 || run.Label != "capped at 1 in flight" {
			t.Errorf("capped %d, label %q", run.Ended.Capped, run.Label)
		}
		for id := range int64(2) {
			before, r := got[id], got[id+1]
			if r.Eligible != before.End || r.HoldCause.Value != "max-in-flight" || r.Due.Value != 0 {
				t.Errorf("id %d: due %v, eligible %v (%s), the one before ended %v", id+1, r.Due.Value, r.Eligible.Value, r.HoldCause.Value, before.End.Value)
			}
			if late, _ := results.Lateness(&r); late != 0 {
				t.Errorf("id %d: the hold counts as lateness %v", id+1, late)
			}
		}
	})
}

func TestInterruptWaitsTheGraceAndWritesEverything(t *testing.T) {
	path := traceOf(trace.ClockTrace, at(0, 10, 1), at(100, 5000, 1), at(200, 60_000, 1), at(9000, 10, 1))
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, interrupt)
		got, run, err := replayTo(t, ctx, mock.New(exact()), Config{source: path, Grace: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if !run.Ended.Interrupted || run.Ended.Sent != 3 || run.Ended.Unsent != 1 {
			t.Errorf("ended %+v", run.Ended)
		}
		if got[0].Outcome != results.OutcomeOK || got[1].Outcome != results.OutcomeOK || got[2].Outcome != results.OutcomeCut {
			t.Errorf("outcomes %s, %s, %s", got[0].Outcome, got[1].Outcome, got[2].Outcome)
		}
		if end := got[2].End.Value; end != 11*time.Second {
			t.Errorf("cut at %v, want the interrupt at 1 s and a grace of 10 s", end)
		}
	})
}

func TestInterruptAfterTheLastRequestWasSent(t *testing.T) {
	path := traceOf(trace.ClockTrace, at(0, 10, 1), at(100, 60_000, 1))
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, interrupt)
		got, run, err := replayTo(t, ctx, mock.New(exact()), Config{source: path})
		if err != nil {
			t.Fatal(err)
		}
		if !run.Ended.Interrupted || run.Ended.Sent != 2 || run.Ended.Unsent != 0 {
			t.Errorf("ended %+v", run.Ended)
		}
		if end := got[1].End.Value; got[1].Outcome != results.OutcomeCut || end != time.Second+DefaultGrace {
			t.Errorf("%s at %v, want it cut a grace of %v after the interrupt at 1 s", got[1].Outcome, end, DefaultGrace)
		}
	})
}

func TestLimitsEndARequest(t *testing.T) {
	path := traceOf(trace.ClockTrace, at(0, 5000, 3))
	for name, c := range map[string]struct {
		config Config
		end    time.Duration
		cause  string
	}{
		"total": {Config{Timeout: time.Second}, time.Second, "not complete within 1s"},
		"bytes": {Config{BytesTimeout: 2 * time.Second}, 2 * time.Second, "no byte for 2s"},
		"token": {Config{TokenTimeout: 3 * time.Second}, 3 * time.Second, "no token for 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.config.source = path
				got, _, err := replayTo(t, t.Context(), mock.New(exact()), c.config)
				if err != nil {
					t.Fatal(err)
				}
				if r := got[0]; r.Outcome != results.OutcomeTimeout || r.End.Value != c.end || r.Cause.Value != c.cause {
					t.Errorf("outcome %s at %v: %s", r.Outcome, r.End.Value, r.Cause.Value)
				}
			})
		})
	}
}

func TestProbeLearnsTheEndpoint(t *testing.T) {
	rows := traceOf(trace.ClockTrace, at(0, 100, 5), at(10, 200, 1), at(20, 9, 2))
	for name, c := range map[string]struct {
		change   func(*mock.Config)
		template int64
		running  bool
		exact    []bool // by id: planned = counted input
		fails    string
	}{
		"plain":            {func(*mock.Config) {}, 0, true, []bool{true, true, true}, ""},
		"template":         {func(m *mock.Config) { m.TemplatePrefix, m.TemplateSuffix = 7, 5 }, 12, true, []bool{true, true, false}, ""},
		"no running usage": {func(m *mock.Config) { m.Usage = mock.UsageFinal }, 0, false, []bool{true, true, true}, ""},
		"refuses":          {func(m *mock.Config) { m.Refuse = []string{"ignore_eos"} }, 0, false, nil, "--output-length exact"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := exact()
				c.change(&m)
				got, run, err := replayProbed(t, t.Context(), mock.New(m), Config{source: rows})
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) || trace.Fix(err) == "" {
						t.Errorf("error %v, want %q and a way out", err, c.fails)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if run.Probe == nil || run.Probe.TemplateTokens == nil || *run.Probe.TemplateTokens != c.template || run.Probe.RunningUsage != c.running {
					t.Errorf("probe %+v", run.Probe)
				}
				for id, exact := range c.exact {
					r := got[int64(id)]
					if (r.PlannedInputTokens == r.CountedInputTokens) != exact {
						t.Errorf("id %d: planned %v, counted %v", id, r.PlannedInputTokens, r.CountedInputTokens)
					}
					if r.Sent.Value != r.Due.Value {
						t.Errorf("id %d: due %v, sent %v", id, r.Due.Value, r.Sent.Value)
					}
				}
			})
		})
	}
}

// A protocol that cannot ask for an exact length is probed as it is replayed.
func TestProbeAsksAsTheRunDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := exact()
		got, run, err := replayProbed(t, t.Context(), mock.New(m), Config{
			source: traceOf(trace.ClockTrace, at(0, 100, 5)), Protocol: protocol.Messages{}, Output: OutputCap,
			Tokenizer: func(text []byte) int { return len(strings.Fields(string(text))) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := got[0]; r.Outcome != results.OutcomeOK || r.PlannedInputTokens != r.CountedInputTokens {
			t.Errorf("%s, planned %v, counted %v: %s", r.Outcome, r.PlannedInputTokens, r.CountedInputTokens, r.Cause.Value)
		}
		if run.Probe.ExactFields || !slices.ContainsFunc(run.Warnings, func(note string) bool { return strings.HasSuffix(note, "counted with the local tokenizer") }) {
			t.Errorf("probe %+v", run.Probe)
		}
	})
}
