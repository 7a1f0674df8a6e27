package mock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock/batch"
	"reprise/replay/mock/pipe"
)

// tokenTimes returns when events with text came.
func tokenTimes(t *testing.T, a answer) (times []time.Duration, tokens []int) {
	t.Helper()
	for _, e := range a.events {
		if e.text == "[DONE]" {
			continue
		}
		for _, c := range decode(t, e.text).Choices {
			n := words(c.Text) + words(c.Delta.Reasoning_content)
			if c.Delta.Content != nil {
				n += words(*c.Delta.Content)
			}
			if n > 0 {
				times, tokens = append(times, e.at), append(tokens, n)
			}
		}
	}
	return times, tokens
}

func TestTimesAreExact(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		time.Sleep(123456 * time.Microsecond)
		a := r.post("/v1/chat/completions", chat(prompt(1000, 0, "x"), 4, ""))
		times, tokens := tokenTimes(r.T, a)
		if want := []time.Duration{110 * ms, 120 * ms, 130 * ms, 140 * ms}; !slices.Equal(times, want) {
			t.Errorf("tokens at %v, want %v", times, want)
		}
		if want := []int{1, 1, 1, 1}; !slices.Equal(tokens, want) {
			t.Errorf("tokens %v, want %v", tokens, want)
		}
		if a.at != 0 || a.events[0].at != 0 {
			t.Errorf("headers at %v and role at %v, want both at once", a.at, a.events[0].at)
		}
		if a.end != 140*ms || a.err != nil {
			t.Errorf("end at %v, error %v", a.end, a.err)
		}
	})
}

// TestLiveEqualsSimulation drives the live server and the model with the same
// arrivals, and wants the same times.
func TestLiveEqualsSimulation(t *testing.T) {
	engine := batch.Config{MaxBatch: 4, KVTokens: 4000}
	var arrivals []batch.Arrival
	for i := range 30 {
		arrivals = append(arrivals, batch.Arrival{
			At:           time.Duration(i*i%7+20*i) * ms * 2,
			PromptTokens: 50 + 97*i%400, OutputTokens: 5 + i%11,
		})
	}
	slices.SortFunc(arrivals, func(a, b batch.Arrival) int { return int(a.At - b.At) })
	want, err := batch.Simulate(engine, arrivals)
	if err != nil {
		t.Fatal(err)
	}
	engine.PrefillRate = batch.DefaultPrefillRate
	bubble(t, Config{Engine: engine}, func(r *rig) {
		var group sync.WaitGroup
		for i, arrival := range arrivals {
			group.Go(func() {
				time.Sleep(arrival.At)
				a := r.post("/v1/completions", fmt.Sprintf(`{"prompt":%q,"stream":true,"max_tokens":%d,"ignore_eos":true}`,
					prompt(arrival.PromptTokens, 0, fmt.Sprint("p", i, "-")), arrival.OutputTokens))
				times, _ := tokenTimes(r.T, a)
				for j := range times {
					if got := arrival.At + times[j]; got != want[i].Chunks[j].At {
						t.Errorf("request %d token %d at %v, want %v", i, j, got, want[i].Chunks[j].At)
					}
				}
				if len(times) != len(want[i].Chunks) {
					t.Errorf("request %d: %d chunks, want %d", i, len(times), len(want[i].Chunks))
				}
			})
		}
		group.Wait()
	})
}

func TestTokensPerChunk(t *testing.T) {
	bubble(t, Config{TokensPerChunk: 4}, func(r *rig) {
		times, tokens := tokenTimes(r.T, r.post("/v1/chat/completions", chat("a", 10, "")))
		if want := []int{4, 4, 2}; !slices.Equal(tokens, want) {
			t.Errorf("tokens %v, want %v", tokens, want)
		}
		first := 10*ms + 100*time.Microsecond
		if want := []time.Duration{first + 30*ms, first + 70*ms, first + 90*ms}; !slices.Equal(times, want) {
			t.Errorf("at %v, want %v", times, want)
		}
	})
}

func TestSpeculationMixesTokensPerChunk(t *testing.T) {
	c := Config{Seed: 5, Engine: batch.Config{Speculation: []float64{1, 1, 1}}}
	var runs [2][]int
	for i := range runs {
		bubble(t, c, func(r *rig) {
			_, runs[i] = tokenTimes(r.T, r.post("/v1/chat/completions", chat("a", 60, "")))
		})
	}
	sum := 0
	for _, n := range runs[0] {
		sum += n
	}
	if sum != 60 || slices.Max(runs[0]) != 3 || slices.Min(runs[0]) != 1 {
		t.Errorf("tokens %v, want 60 in ones to threes", runs[0])
	}
	if !slices.Equal(runs[0], runs[1]) {
		t.Errorf("one seed, two mixes: %v and %v", runs[0], runs[1])
	}
}

// TestAccountIsWhatTheClientSaw compares the two accounts of one stream, which
// no time on the wire separates.
func TestAccountIsWhatTheClientSaw(t *testing.T) {
	bubble(t, Config{ReasoningShare: 0.5}, func(r *rig) {
		time.Sleep(50 * ms)
		sent := time.Since(r.server.Start())
		body := chat(prompt(100, 0, "x"), 7, "")
		a := r.post("/v1/chat/completions", body, "X-Request-Id", "r-1")
		times, tokens := tokenTimes(r.T, a)
		got := r.record()
		var chunks []ChunkSent
		for i := range times {
			chunks = append(chunks, ChunkSent{At: sent + times[i], Tokens: int32(tokens[i])})
		}
		want := Record{
			RequestID: "r-1", Operation: "chat", Model: "mock", Stream: true,
			Arrival: sent, BodyBytes: int64(len(body)), PromptTokens: 100,
			PlannedTokens: 7, SentTokens: 7, ReasoningTokens: 4, Chunks: chunks,
			Headers: sent, End: sent + a.end, Status: 200, Outcome: OutcomeCompleted,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if id := a.header.Get("X-Request-Id"); id != "r-1" {
			t.Errorf("request id %q came back", id)
		}
	})
}

func TestPrefixHitsShortenPrefill(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for _, p := range []string{prompt(320, 320, ""), prompt(320, 200, "other"), prompt(320, 320, ""), prompt(320, 0, "new")} {
			r.post("/v1/completions", fmt.Sprintf(`{"prompt":%q,"stream":true,"max_tokens":1,"ignore_eos":true}`, p))
		}
		records, _ := r.server.Account()
		want := []struct {
			blocks, tokens, cached int
		}{{0, 0, 0}, {12, 192, 192}, {20, 320, 304}, {0, 0, 0}}
		for i, w := range want {
			got := records[i]
			if got.HitBlocks != w.blocks || got.HitTokens != w.tokens || got.CachedTokens != w.cached {
				t.Errorf("request %d: hits %d blocks, %d tokens, cached %d; want %+v", i, got.HitBlocks, got.HitTokens, got.CachedTokens, w)
			}
			ttft := got.Chunks[0].At - got.Arrival
			if want := plain.Step(0, 320-w.cached); ttft != want {
				t.Errorf("request %d: TTFT %v, want %v", i, ttft, want)
			}
		}
	})
}

func TestClientGone(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		ctx, cancel := context.WithTimeout(r.Context(), 35*ms)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://mock/v1/chat/completions", strings.NewReader(chat("a", 1000, "")))
		if a := r.do(req); !errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline", a.err)
		}
		synctest.Wait()
		got := r.record()
		if got.Outcome != OutcomeClientGone || got.SentTokens != 3 || got.End != 35*ms {
			t.Errorf("%s at %v after %d tokens; want client_gone at 35ms after 3", got.Outcome, got.End, got.SentTokens)
		}
		time.Sleep(10 * ms)
		synctest.Wait()
		if load := r.server.Load(); load.Running != 0 || load.KVUsed != 0 {
			t.Errorf("the engine works on: %+v", load)
		}
	})
}

func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, s := pipe.Listen(), New(Config{Engine: plain})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(35*ms, func() { cancel(errors.New("enough")) })
		client := &http.Client{Transport: &http.Transport{DialContext: ln.DialContext}}
		ended := make(chan error)
		go func() {
			r := rig{t, s, client}
			ended <- r.post("/v1/chat/completions", chat("a", 1000, "")).err
		}()
		begun := time.Now()
		if err := s.Serve(ctx, ln); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if at := time.Since(begun); at > 45*ms { // at most a step after the end
			t.Errorf("returned after %v", at)
		}
		records, _ := s.Account()
		if len(records) != 1 || records[0].Outcome != OutcomeStopped || records[0].End != 35*ms {
			t.Errorf("records %+v", records)
		}
		if err := <-ended; err == nil {
			t.Error("the client saw no error")
		}
	})
}

func TestServeReportsItsListener(t *testing.T) {
	ln := pipe.Listen()
	ln.Close()
	if err := New(Config{}).Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("error %v, want net.ErrClosed", err)
	}
}

func TestFaultsInStreams(t *testing.T) {
	first := 10*ms + 100*time.Microsecond // of the first token; then every 10 ms
	tests := []struct {
		fault   string
		status  int
		times   []time.Duration
		end     time.Duration
		done    bool // the end marker came
		err     error
		outcome string
	}{
		{"stall,after=2,delay=45ms", 200, []time.Duration{first, first + 10*ms, first + 65*ms, first + 65*ms, first + 65*ms, first + 65*ms}, first + 65*ms, true, nil, OutcomeCompleted},
		{"slow-headers,delay=25ms", 200, []time.Duration{25 * ms, 25 * ms, first + 20*ms, first + 30*ms, first + 40*ms, first + 50*ms}, first + 50*ms, true, nil, OutcomeCompleted},
		{"reset", 0, nil, 0, false, syscall.ECONNRESET, OutcomeFault},
		{"cut,after=2", 200, []time.Duration{first, first + 10*ms}, first + 20*ms, false, syscall.ECONNRESET, OutcomeFault},
		{"cut,after=0", 200, nil, first, false, syscall.ECONNRESET, OutcomeFault},
		{"truncate,after=3", 200, []time.Duration{first, first + 10*ms, first + 20*ms}, first + 30*ms, false, nil, OutcomeFault},
		{"truncate,after=99", 200, []time.Duration{first, first + 10*ms, first + 20*ms, first + 30*ms, first + 40*ms, first + 50*ms}, first + 50*ms, false, nil, OutcomeFault},
		{"status,code=503", 503, nil, 0, false, nil, OutcomeFault},
	}
	for _, test := range tests {
		t.Run(test.fault, func(t *testing.T) {
			bubble(t, Config{}, func(r *rig) {
				a := r.post("/v1/chat/completions", chat("a", 6, ""), FaultHeader, test.fault)
				times, _ := tokenTimes(r.T, a)
				if a.status != test.status || !slices.Equal(times, test.times) || a.end != test.end {
					t.Errorf("status %d, tokens at %v, end %v\nwant %d, %v, %v", a.status, times, a.end, test.status, test.times, test.end)
				}
				if !errors.Is(a.err, test.err) {
					t.Errorf("error %v, want %v", a.err, test.err)
				}
				if done := slices.Contains(a.texts(), "[DONE]"); done != test.done {
					t.Errorf("end marker %v, want %v", done, test.done)
				}
				synctest.Wait()
				kind, _, _ := strings.Cut(test.fault, ",")
				if got := r.record(); got.Outcome != test.outcome || got.Fault != kind || got.SentTokens != len(test.times) {
					t.Errorf("account has %s by %q, %d tokens", got.Outcome, got.Fault, got.SentTokens)
				}
			})
		})
	}
}

func TestBodyThatNeverEndsIsNoArrival(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		ctx, cancel := context.WithTimeout(r.Context(), 10*ms)
		defer cancel()
		body, w := io.Pipe()
		go func() {
			io.WriteString(w, `{"model":`)
			<-ctx.Done()
			w.CloseWithError(ctx.Err())
		}()
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://mock/v1/chat/completions", body)
		if a := r.do(req); a.err == nil {
			t.Errorf("answered with %d", a.status)
		}
		synctest.Wait()
		if records, _ := r.server.Account(); len(records) != 0 {
			t.Errorf("booked %+v", records)
		}
	})
}
