package replay

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// A sentRequest is what a worker would send, and when.
type sentRequest struct {
	at    start
	body  string
	after string
}

type requestOf struct {
	id   int64
	pass int32
}

// wouldSend gathers what a configuration sends, without sending it: at most so many
// requests, for a load without an end.
func wouldSend(t *testing.T, c Config, most int, to map[requestOf]sentRequest) {
	t.Helper()
	survey, err := Look(t.Context(), &c)
	if err != nil {
		t.Fatal(err)
	}
	text, n := newRenderer(&c, survey.turns), 0
	err = c.each(t.Context(), func(b *trace.Batch, row int, s start) error {
		if s.seq >= most {
			return errEnough
		}
		n++
		r := b.Row(row)
		if s.pass > 0 {
			again(&r, s.pass)
		}
		body, err := text.body(nil, &r, &results.Result{})
		if err != nil {
			return err
		}
		key := requestOf{b.ID.Values[row], s.pass}
		if _, twice := to[key]; twice {
			t.Fatalf("request %v is twice", key)
		}
		to[key] = sentRequest{at: s, body: string(body), after: fmt.Sprint(r.After, r.Delay, r.RecordedE2E, r.Cancel)}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dealtTrace is a trace of requests of every kind.
func dealtTrace(t *testing.T, random *rand.Rand) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, b := trace.NewWriter(f), trace.NewBatch()
	turns := map[string]int32{}
	last := map[string]int64{}
	for i := range int64(250) {
		r := at(10*i+random.Int64N(10), random.Int64N(60)+1, random.Int64N(9))
		r.ID, r.Operation, r.OutputText = 3*i, trace.OpChat, trace.Some("what came of it")
		r.RecordedE2E, r.Model = trace.Some(time.Duration(random.IntN(100))*time.Millisecond), trace.Some("m")
		if name := fmt.Sprint("s", random.IntN(20)); random.IntN(5) > 0 {
			turn := turns[name]
			r.Session, r.Turn = trace.Some(name), trace.Some(turn)
			if turn > 0 {
				r.After, r.Delay = []trace.Dependency{{ID: last[name], Kind: trace.AfterTurn}}, trace.Some(time.Duration(random.IntN(50))*time.Millisecond)
			}
			turns[name], last[name] = turn+1, r.ID
			if len(name) == 2 {
				r.Messages, r.MessagesMode = trace.Some(fmt.Sprintf(`[{"role":"user","content":"%d"}]`, random.IntN(100))), trace.Some(trace.MessagesDelta)
			}
		} else {
			r.Blocks, r.BlockTokens = []uint64{random.Uint64N(5), random.Uint64N(5)}, trace.Some(int32(16))
		}
		b.Append(&r)
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(trace.Meta{Clock: trace.ClockTrace}); err != nil {
		t.Fatal(err)
	}
	return path
}

// dealTo writes shares into a directory, and returns configurations for them.
func dealTo(t *testing.T, c Config, shards []Shard) []Config {
	t.Helper()
	dir, out := t.TempDir(), make([]Config, len(shards))
	survey, err := Look(t.Context(), &c)
	if err != nil {
		t.Fatal(err)
	}
	err = Deal(t.Context(), &c, survey, shards, func(i int, times []byte) (io.WriteCloser, error) {
		out[i] = c
		out[i].Shard, out[i].Trace, out[i].Times = shards[i], filepath.Join(dir, fmt.Sprint(i, ".parquet")), filepath.Join(dir, fmt.Sprint(i, ".times"))
		if err := os.WriteFile(out[i].Times, times, 0o644); err != nil {
			return nil, err
		}
		return os.Create(out[i].Trace)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSharesAreTheWholeRun: workers with shares alone send what one with the whole trace
// sends: the same requests with the same bodies at the same due times.
func TestSharesAreTheWholeRun(t *testing.T) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 1))
		path := dealtTrace(t, random)
		poisson, err := ParseArrivals("poisson:50")
		if err != nil {
			t.Fatal(err)
		}
		const many = 1700
		for name, c := range map[string]Config{
			"recorded":      {},
			"window":        {Selection: Selection{From: 300 * time.Millisecond, To: 2 * time.Second, Speed: 2.5}},
			"limit":         {Selection: Selection{Limit: 77}},
			"sessions":      {Selection: Selection{Sessions: 5}},
			"arrivals":      {Selection: Selection{Arrivals: poisson}},
			"recycled":      {Selection: Selection{Arrivals: poisson, Recycle: true, Limit: 700}},
			"some sessions": {Selection: Selection{Arrivals: poisson, Recycle: true, Sessions: 200}},
			"until":         {Selection: Selection{Arrivals: poisson, Recycle: true, Duration: 20 * time.Second}},
			"placed":        {Selection: Selection{SessionArrivals: poisson, Limit: 200}},
			"causal":        {Pace: PaceCausal, Selection: Selection{Speed: 3}},
			"think":         {Pace: PaceThink, Selection: Selection{SessionArrivals: poisson}},
			"concurrency":   {Selection: Selection{Load: Load{Kind: LoadConcurrency, N: 8}, Recycle: true, Limit: 650}},
			"endless":       {Selection: Selection{Load: Load{Kind: LoadConcurrency, N: 8}, Recycle: true, Duration: time.Minute}},
			"users":         {Pace: PaceCausal, Selection: Selection{Load: Load{Kind: LoadUsers, N: 7, Rate: 20}, Recycle: true, Limit: 700}},
			"users until":   {Pace: PaceCausal, Selection: Selection{Load: Load{Kind: LoadUsers, N: 7, Rate: 20}, Recycle: true, Duration: 20 * time.Second}},
			"live":          {Pace: PaceThink, History: HistoryLive},
		} {
			c.Trace, c.Selection.Seed = path, seed
			survey, err := Look(t.Context(), &c)
			if err != nil {
				t.Fatal(err)
			}
			want, got := map[requestOf]sentRequest{}, map[requestOf]sentRequest{}
			wouldSend(t, c, many, want)
			var shards []Shard
			for worker := range uint16(4) {
				shards = append(shards, Shard{Sessions: c.bySession(survey), Owns: func(slot uint16) bool { return slot%4 == worker }})
			}
			for _, share := range dealTo(t, c, shards) {
				wouldSend(t, share, many, got)
			}
			if len(got) != len(want) || len(want) < 77 && name != "sessions" || name == "endless" && len(want) != many {
				t.Fatalf("%s: %d of %d requests", name, len(got), len(want))
			}
			for key, w := range want {
				if g := got[key]; g != w {
					t.Fatalf("%s, seed %d: request %v is\n%+v\nand without shares\n%+v", name, seed, key, g, w)
				}
			}
		}
	}
}

// TestSharesOfTakeovers: what is taken over begins where it should, with a share and
// with the whole trace alike.
func TestSharesOfTakeovers(t *testing.T) {
	path := dealtTrace(t, rand.New(rand.NewPCG(7, 7)))
	poisson, err := ParseArrivals("poisson:50")
	if err != nil {
		t.Fatal(err)
	}
	closed := Selection{Load: Load{Kind: LoadConcurrency, N: 8}, Recycle: true}
	limited, endless := closed, closed
	limited.Limit, endless.Duration = 900, time.Minute
	mine := func(slot uint16) bool { return slot%3 == 1 }
	for name, c := range map[string]Config{
		"due":     {Shard: Shard{From: time.Second}},
		"later":   {Selection: Selection{Arrivals: poisson, Recycle: true, Limit: 900}, Shard: Shard{From: 13 * time.Second}},
		"think":   {Pace: PaceThink, Shard: Shard{From: time.Second, Whole: true, Sessions: true}},
		"closed":  {Selection: limited, Shard: Shard{FromSeq: 333, Whole: true, Sessions: true}},
		"single":  {Selection: limited, Pace: PaceSchedule, Shard: Shard{FromSeq: 333, Whole: true, Sessions: true}},
		"endless": {Selection: endless, Shard: Shard{FromSeq: 613, From: time.Second, Whole: true, Sessions: true}},
	} {
		c.Trace, c.Shard.Owns = path, mine
		want, got := map[requestOf]sentRequest{}, map[requestOf]sentRequest{}
		wouldSend(t, c, 1000, want)
		whole := c
		whole.Shard = Shard{}
		wouldSend(t, dealTo(t, whole, []Shard{c.Shard})[0], 1000, got)
		if len(got) != len(want) || len(want) < 10 && name != "think" {
			t.Fatalf("%s: %d of %d requests", name, len(got), len(want))
		}
		for key, w := range want {
			if got[key] != w {
				t.Fatalf("%s: request %v is\n%+v\nand with the whole trace\n%+v", name, key, got[key], w)
			}
		}
		if c.Shard.FromSeq == 0 {
			continue
		}
		for key, w := range want {
			if w.at.seq < c.Shard.FromSeq {
				t.Errorf("%s: request %v is taken over, its place is %d", name, key, w.at.seq)
			}
		}
	}
}

// FuzzTimes: no file of times makes the reader panic or go on forever.
func FuzzTimes(f *testing.F) {
	w := newTimesWriter(&Survey{Endless: true})
	w.add(3, start{due: 5, known: true, seq: 1})
	w.add(1, start{due: 7, pass: 2, seq: 9})
	f.Add(w.bytes)
	f.Add([]byte(timesMagic))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := newTimesReader(text)
		if err != nil {
			return
		}
		for n := 0; ; n++ {
			_, s, err := r.next()
			if err != nil {
				return
			}
			if n > len(text) || s.pass < 0 {
				t.Fatalf("%d requests in %d bytes, pass %d", n, len(text), s.pass)
			}
		}
	})
}
