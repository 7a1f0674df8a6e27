package batch

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

const ms = time.Millisecond

// plain is an engine whose times are easy to say: 10 ms a step, 1 ms per 10
// prompt tokens, nothing per sequence.
var plain = Config{PrefillRate: 10_000, StepBase: 10 * ms, StepPerSequence: -1}

func simulate(t *testing.T, c Config, arrivals ...Arrival) []Timeline {
	t.Helper()
	timelines, err := Simulate(c, arrivals)
	if err != nil {
		t.Fatal(err)
	}
	return timelines
}

// poisson returns n arrivals at rate per second with drawn lengths.
func poisson(seed uint64, n int, rate float64) []Arrival {
	r := rand.New(rand.NewPCG(seed, 1))
	arrivals := make([]Arrival, n)
	at := 0.0
	for i := range arrivals {
		at += r.ExpFloat64() / rate
		blocks := make([]uint64, r.IntN(20))
		for j := range blocks {
			blocks[j] = uint64(j)<<8 | uint64(r.IntN(4)&i)
		}
		arrivals[i] = Arrival{
			At:           time.Duration(at * float64(time.Second)),
			PromptTokens: 16*len(blocks) + r.IntN(16),
			Blocks:       blocks,
			OutputTokens: 1 + r.IntN(200),
			Seed:         uint64(i),
		}
	}
	return arrivals
}

func TestLoneRequestHasTheTimesOfTheFormula(t *testing.T) {
	got := simulate(t, plain, Arrival{At: 5 * ms, PromptTokens: 1000, OutputTokens: 3})[0]
	want := Timeline{
		Arrival: 5 * ms, Admitted: 5 * ms,
		Chunks: []Chunk{{At: 115 * ms, Tokens: 1}, {At: 125 * ms, Tokens: 1}, {At: 135 * ms, Tokens: 1}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLongPromptIsComputedInChunks(t *testing.T) {
	c := plain
	c.PrefillChunk = 400
	got := simulate(t, c, Arrival{PromptTokens: 1000, OutputTokens: 1}, Arrival{PromptTokens: 100, OutputTokens: 1})
	// 400; 400; 200 of the first and the 100 of the second.
	if want := 3*10*ms + 110*ms; got[0].TTFT() != want || got[1].TTFT() != want {
		t.Errorf("TTFT %v and %v, want %v", got[0].TTFT(), got[1].TTFT(), want)
	}
}

func TestArrivalWaitsForTheStepInProgress(t *testing.T) {
	got := simulate(t, plain, Arrival{PromptTokens: 10, OutputTokens: 5}, Arrival{At: 12 * ms, PromptTokens: 10, OutputTokens: 1})
	if got[1].Admitted != 21*ms { // steps end at 11 and 21
		t.Errorf("admitted at %v, want 21ms", got[1].Admitted)
	}
	if got[1].TTFT() != 20*ms { // 9 of waiting, 11 of its step
		t.Errorf("TTFT %v, want 20ms", got[1].TTFT())
	}
	if d := got[0].Chunks[2].At - got[0].Chunks[1].At; d != 11*ms { // the other's prefill holds up its decode
		t.Errorf("gap %v, want 11ms", d)
	}
}

func TestTokensAreConserved(t *testing.T) {
	for seed := range uint64(40) {
		c := Config{MaxBatch: 8, KVTokens: 3000, Seed: seed, Jitter: 0.2}
		switch seed % 4 {
		case 1:
			c.Speculation = []float64{1, 2, 1}
		case 2:
			c.CacheTokens = 160
		case 3:
			c.CacheTokens = -1
		}
		arrivals := poisson(seed, 200, 50)
		for i, line := range simulate(t, c, arrivals...) {
			if line.Tokens() != arrivals[i].OutputTokens {
				t.Fatalf("seed %d: request %d got %d tokens of %d", seed, i, line.Tokens(), arrivals[i].OutputTokens)
			}
			if line.Admitted < line.Arrival || line.Chunks[0].At <= line.Admitted {
				t.Fatalf("seed %d: request %d out of order: %+v", seed, i, line)
			}
			for j := 1; j < len(line.Chunks); j++ {
				if line.Chunks[j].At <= line.Chunks[j-1].At {
					t.Fatalf("seed %d: request %d: chunk %d not after the one before", seed, i, j)
				}
			}
		}
	}
}

func TestSameSeedSameRun(t *testing.T) {
	c := Config{Seed: 7, Jitter: 0.3, Speculation: []float64{1, 1, 1}}
	arrivals := poisson(3, 300, 30)
	one, two := simulate(t, c, arrivals...), simulate(t, c, arrivals...)
	if !reflect.DeepEqual(one, two) {
		t.Error("two runs of one seed differ")
	}
	c.Seed = 8
	if reflect.DeepEqual(one, simulate(t, c, arrivals...)) {
		t.Error("another seed gave the same run")
	}
}

func TestTTFTGrowsWithTheUncachedPrompt(t *testing.T) {
	blocks := make([]uint64, 100)
	for i := range blocks {
		blocks[i] = uint64(i)
	}
	last := time.Duration(0)
	for shared := 100; shared >= 0; shared -= 10 {
		first := Arrival{PromptTokens: shared * 16, Blocks: blocks[:shared], OutputTokens: 1}
		second := Arrival{At: time.Second, PromptTokens: 1605, Blocks: blocks, OutputTokens: 1}
		got := simulate(t, plain, first, second)[1]
		if got.HitBlocks != shared || got.CachedTokens != 16*shared {
			t.Fatalf("hits %d blocks, %d tokens; want %d blocks", got.HitBlocks, got.CachedTokens, shared)
		}
		if want := plain.Step(0, 1605-16*shared); got.TTFT() != want || want <= last {
			t.Fatalf("TTFT %v with %d shared, want %v (before %v)", got.TTFT(), shared, want, last)
		}
		last = got.TTFT()
	}
}

func TestWholePromptCachedStillComputesABlock(t *testing.T) {
	a := Arrival{PromptTokens: 48, Blocks: []uint64{1, 2, 3}, OutputTokens: 1}
	b := a
	b.At = time.Second
	got := simulate(t, plain, a, b)[1]
	if got.HitBlocks != 3 || got.CachedTokens != 32 {
		t.Errorf("%d blocks hit, %d tokens cached; want 3 and 32", got.HitBlocks, got.CachedTokens)
	}
}

func TestBlocksHitOnlyAsAPrefix(t *testing.T) {
	got := simulate(t, plain,
		Arrival{PromptTokens: 60, Blocks: []uint64{1, 2, 3}, OutputTokens: 1},
		Arrival{PromptTokens: 60, Blocks: []uint64{9, 2, 3}, OutputTokens: 1},
		Arrival{PromptTokens: 60, Blocks: []uint64{1, 8, 3}, OutputTokens: 1},
	)
	if got[1].HitBlocks != 0 || got[2].HitBlocks != 1 {
		t.Errorf("hits %d and %d, want 0 and 1", got[1].HitBlocks, got[2].HitBlocks)
	}
}

func TestLRUDropsTheLeastRecentlyUsed(t *testing.T) {
	c := newCache(Config{CacheTokens: 64, BlockTokens: 16}) // 4 blocks
	steps := []struct {
		blocks []uint64
		hits   int
	}{
		{[]uint64{1, 2}, 0},
		{[]uint64{3, 4}, 0},
		{[]uint64{1, 2}, 2},
		{[]uint64{5}, 0},                  // drops 4, the tail of the older prompt
		{[]uint64{3, 4}, 1},               // 3 is there; 4 comes back and drops 2
		{[]uint64{1, 2}, 1},               // which drops 5
		{[]uint64{5}, 0},                  //
		{[]uint64{6, 7, 8, 9, 10, 11}, 0}, // longer than the cache: its head stays
		{[]uint64{6, 7, 8, 9, 10, 11}, 4},
	}
	for i, s := range steps {
		if hits := c.bring(s.blocks); hits != s.hits {
			t.Errorf("step %d: %v hit %d, want %d", i, s.blocks, hits, s.hits)
		}
		if c.len() > 4 {
			t.Fatalf("step %d: %d blocks in a cache of 4", i, c.len())
		}
	}
}

// TestLRUWithRoomEqualsNoLimit holds the two stores of blocks against each other.
func TestLRUWithRoomEqualsNoLimit(t *testing.T) {
	arrivals := poisson(11, 500, 100)
	limited := plain
	limited.CacheTokens = 1 << 30
	if !reflect.DeepEqual(simulate(t, plain, arrivals...), simulate(t, limited, arrivals...)) {
		t.Error("a cache with room for all behaves unlike one without limit")
	}
}

func TestBatchAndKVStayInTheirBounds(t *testing.T) {
	for seed := range uint64(20) {
		c := Config{MaxBatch: 4, KVTokens: 1200, Seed: seed}
		b := New(c)
		most, left := 0, 0
		for _, a := range poisson(seed, 150, 1000) {
			if _, err := b.Arrive(a.At, Request{PromptTokens: a.PromptTokens, Blocks: a.Blocks, OutputTokens: a.OutputTokens, Sink: &Timeline{}}); err != nil {
				t.Fatal(err)
			}
			left++
		}
		for {
			if _, ok := b.Next(); !ok {
				break
			}
			load := b.Load()
			most = max(most, load.Running)
			if load.Running > c.MaxBatch || load.KVUsed > load.KVTokens {
				t.Fatalf("seed %d: load %+v", seed, load)
			}
			if load.Running == 0 {
				t.Fatalf("seed %d: a step of nobody, %d waiting", seed, load.Waiting)
			}
			b.Finish()
		}
		if load := b.Load(); load.Running != 0 || load.Waiting != 0 || load.KVUsed != 0 {
			t.Errorf("seed %d: %d arrived, at the end %+v", seed, left, load)
		}
		if most < 2 {
			t.Errorf("seed %d: never more than %d at once; the test shows nothing", seed, most)
		}
	}
}

// TestThroughputSaturatesAtCapacity offers an engine of known capacity half of
// it, and then twice as much.
func TestThroughputSaturatesAtCapacity(t *testing.T) {
	c := Config{PrefillRate: math.Inf(1), StepBase: 10 * ms, StepPerSequence: 100 * time.Microsecond, MaxBatch: 32}
	capacity := c.DecodeRate(32) // 32 / 13.2 ms = 2424 tokens/s
	if math.Abs(capacity-2424.24) > 0.01 {
		t.Fatalf("capacity %v", capacity)
	}
	rate := func(share float64) float64 {
		const output, n = 50, 2000
		arrivals := make([]Arrival, n)
		for i := range arrivals {
			arrivals[i] = Arrival{At: time.Duration(float64(i) * output / (share * capacity) * float64(time.Second)), PromptTokens: 1, OutputTokens: output}
		}
		timelines := simulate(t, c, arrivals...)
		return n * output / timelines[n-1].End().Seconds()
	}
	if got := rate(0.5); math.Abs(got/(0.5*capacity)-1) > 0.02 {
		t.Errorf("at half of capacity %.0f tokens/s of %.0f", got, capacity)
	}
	// One token of 50 comes with the step that admits, which holds the batch's
	// share for it, so the rate stays within 2 % of the formula.
	if got := rate(2); math.Abs(got/capacity-1) > 0.02 {
		t.Errorf("at twice the capacity %.0f tokens/s of %.0f", got, capacity)
	}
}

func TestKVLimitsTheBatch(t *testing.T) {
	c := plain
	c.KVTokens = 250 // two of 100+10, not three
	a := Arrival{PromptTokens: 100, OutputTokens: 10}
	got := simulate(t, c, a, a, a)
	if got[1].Admitted != 0 || got[2].Admitted != got[0].End() {
		t.Errorf("admitted at %v and %v, want 0 and %v", got[1].Admitted, got[2].Admitted, got[0].End())
	}
}

func TestTooLongIsRefused(t *testing.T) {
	c := plain
	c.KVTokens = 100
	_, err := Simulate(c, []Arrival{{PromptTokens: 60, OutputTokens: 41}})
	if !errors.Is(err, ErrTooLong) {
		t.Errorf("error %v, want ErrTooLong", err)
	}
}

func TestSpeculationGivesSeveralTokens(t *testing.T) {
	c := plain
	c.Speculation = []float64{0, 0, 1}
	got := simulate(t, c, Arrival{PromptTokens: 10, OutputTokens: 8})[0]
	want := []Chunk{{11 * ms, 1}, {21 * ms, 3}, {31 * ms, 3}, {41 * ms, 1}}
	if !reflect.DeepEqual(got.Chunks, want) {
		t.Errorf("chunks %v, want %v", got.Chunks, want)
	}
}

func TestCancelledSequenceLeaves(t *testing.T) {
	c := plain
	c.MaxBatch = 1
	b := New(c)
	lines := make([]Timeline, 3)
	var sequences []*Sequence
	for i := range lines {
		s, err := b.Arrive(0, Request{PromptTokens: 10, OutputTokens: 5, Sink: &lines[i]})
		if err != nil {
			t.Fatal(err)
		}
		sequences = append(sequences, s)
	}
	b.Next()
	b.Finish()
	b.Next()
	b.Cancel(sequences[0]) // in the batch
	b.Cancel(sequences[1]) // in the queue
	if l := b.Load(); l.Running != 1 || l.Waiting != 1 {
		t.Errorf("load %+v, want 1 running and 1 waiting", l)
	}
	for b.Finish(); ; b.Finish() {
		if _, ok := b.Next(); !ok {
			break
		}
	}
	if a, b, c := lines[0].Tokens(), lines[1].Tokens(), lines[2].Tokens(); a != 1 || b != 0 || c != 5 {
		t.Errorf("tokens %d, %d, %d; want 1, 0, 5", a, b, c)
	}
	if l := b.Load(); l.KVUsed != 0 {
		t.Errorf("KV left over: %+v", l)
	}
}

func TestJitterKeepsTheMean(t *testing.T) {
	c := plain
	c.Jitter = 0.5
	got := simulate(t, c, Arrival{PromptTokens: 10, OutputTokens: 4001})[0]
	mean := (got.End() - got.Chunks[0].At) / 4000
	if mean < 9800*time.Microsecond || mean > 10200*time.Microsecond {
		t.Errorf("mean step %v, want 10ms", mean)
	}
	for i := 1; i < len(got.Chunks); i++ {
		if d := got.Chunks[i].At - got.Chunks[i-1].At; d < 5*ms || d > 15*ms {
			t.Fatalf("step %d took %v, want 5 to 15 ms", i, d)
		}
	}
}

func BenchmarkSimulate(b *testing.B) {
	arrivals := poisson(1, 1000, 60)
	tokens := 0
	for _, a := range arrivals {
		tokens += a.OutputTokens
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Simulate(Config{}, arrivals); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
}
