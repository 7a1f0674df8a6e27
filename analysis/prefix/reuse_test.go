package prefix

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"reprise/analysis/stats"
)

// golden is the part of golden/fits.json that is about blocks.
type golden struct {
	BlockSize   int32      `json:"block_size"`
	InputLength []int64    `json:"input_length"`
	HashIDs     [][]uint64 `json:"hash_ids"`
	Infinite    struct {
		Total       int64 `json:"blocks_total"`
		Hit         int64 `json:"blocks_hit"`
		Unique      int64 `json:"unique_blocks"`
		TokensTotal int64 `json:"tokens_total"`
		TokensHit   int64 `json:"tokens_hit"`
	} `json:"infinite"`
	LRUPrefix []struct {
		Capacity  int     `json:"capacity_blocks"`
		Hit       int64   `json:"blocks_hit"`
		TokenRate float64 `json:"hit_rate_tokens"`
		Evictions int64   `json:"evictions"`
	} `json:"lru_prefix"`
	LRUBlock []struct {
		Capacity int64 `json:"capacity_blocks"`
		Hit      int64 `json:"blocks_hit"`
	} `json:"lru_block"`
	StackDistance struct {
		Reaccesses int64     `json:"reaccesses"`
		P          []float64 `json:"p"`
		Type1      []int64   `json:"stack_distance_type1"`
	} `json:"stack_distance"`
	AnyHit  *int64 `json:"requests_with_any_hit"`
	FullHit *int64 `json:"requests_full_hit"`
	Once    *int64 `json:"blocks_used_once"`
}

func shared(t *testing.T, parts ...string) *os.File {
	t.Helper()
	dir := os.Getenv("REPRISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(append([]string{dir}, parts...)...))
	if err != nil {
		t.Skipf("public traces are not here (set REPRISE_SHARED): %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// check holds a trace against its golden values. Token hits need the lengths of
// the last blocks; with them, a golden id of two lengths is two blocks here.
func (g *golden) check(t *testing.T, lengths bool) {
	t.Helper()
	var r Reuse
	var tokens int64
	lru := make([]PrefixLRU, len(g.LRUPrefix))
	lruHit, lruTokens := make([]int64, len(lru)), make([]int64, len(lru))
	for i, ids := range g.HashIDs {
		in := int64(-1)
		if lengths {
			in = g.InputLength[i]
		}
		served := func(blocks int64) int64 { return min(blocks*int64(g.BlockSize), g.InputLength[i]) }
		seen := r.Observe(Request{Model: "m", IDs: ids, BlockTokens: g.BlockSize, InputTokens: in, Session: -1})
		tokens += served(seen.HitBlocks)
		for j := range lru {
			lru[j].Capacity = g.LRUPrefix[j].Capacity
			h := lru[j].Observe("m", ids, g.BlockSize, in)
			lruHit[j] += h.HitBlocks
			lruTokens[j] += served(h.HitBlocks)
		}
	}
	h := r.Hits()
	distinct, once := r.Distinct()
	equal := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s = %d, want %d", what, got, want)
		}
	}
	equal("blocks_total", h.Blocks, g.Infinite.Total)
	equal("blocks_hit", h.HitBlocks, g.Infinite.Hit)
	equal("unique_blocks", distinct, g.Infinite.Unique)
	equal("tokens_hit", tokens, g.Infinite.TokensHit)
	if lengths {
		equal("tokens_total", h.Tokens, g.Infinite.TokensTotal)
		equal("tokens_hit of blocks", h.HitTokens, g.Infinite.TokensHit)
	}
	for i, want := range g.LRUPrefix {
		name := fmt.Sprintf("lru_prefix[%d]", want.Capacity)
		equal(name+".blocks_hit", lruHit[i], want.Hit)
		equal(name+".evictions", lru[i].Evictions, want.Evictions)
		if rate := float64(lruTokens[i]) / float64(g.Infinite.TokensTotal); math.Abs(rate-want.TokenRate) > 1e-9*want.TokenRate {
			t.Errorf("%s.hit_rate_tokens = %v, want %v", name, rate, want.TokenRate)
		}
	}
	for _, want := range g.LRUBlock {
		equal(fmt.Sprintf("lru_block[%d]", want.Capacity), r.LRU(want.Capacity)[0].HitBlocks, want.Hit)
	}
	equal("reaccesses", r.Reaccesses(), g.StackDistance.Reaccesses)
	if got := r.Distances(g.StackDistance.P...); !slices.Equal(got, g.StackDistance.Type1) {
		t.Errorf("stack distances %v, want %v", got, g.StackDistance.Type1)
	}
	_, anyHit, fullHit, _ := r.Requests()
	for _, c := range []struct {
		what string
		got  int64
		want *int64
	}{{"requests_with_any_hit", anyHit, g.AnyHit}, {"requests_full_hit", fullHit, g.FullHit}, {"blocks_used_once", once, g.Once}} {
		if c.want != nil {
			equal(c.what, c.got, *c.want)
		}
	}
	if n, ok := r.Sessions(); lengths && (!ok || n != 7373) {
		t.Errorf("%d sessions", n)
	}
}

func TestGoldenHand(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "stats", "testdata", "hand.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Hand struct {
			Prefix8 golden `json:"prefix_8"`
		} `json:"hand"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	file.Hand.Prefix8.check(t, false)
}

func TestGoldenTrace(t *testing.T) {
	var file struct {
		DataSets map[string]struct {
			Prefix golden `json:"prefix"`
		} `json:"datasets"`
	}
	if err := json.NewDecoder(shared(t, "golden", "fits.json")).Decode(&file); err != nil {
		t.Fatal(err)
	}
	g := file.DataSets["mooncake_conversation"].Prefix
	g.InputLength, g.HashIDs = conversation(t)
	g.check(t, true)
}

func conversation(t *testing.T) (lengths []int64, ids [][]uint64) {
	t.Helper()
	lines := bufio.NewScanner(shared(t, "data", "mooncake", "conversation_trace.jsonl"))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var row struct {
			Input int64    `json:"input_length"`
			IDs   []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		lengths, ids = append(lengths, row.Input), append(ids, row.IDs)
	}
	return lengths, ids
}

// made returns requests over few blocks, some repeated within one request.
func made(seed uint64, requests, blocks int) [][]uint64 {
	r := stats.Stream(seed)
	out := make([][]uint64, requests)
	for i := range out {
		for range r.IntN(8) {
			out[i] = append(out[i], uint64(r.ExpFloat64()*float64(blocks)/4))
		}
	}
	return out
}

// TestMattson: the stack distances of one pass give what a block LRU of each
// capacity does when it is run.
func TestMattson(t *testing.T) {
	for seed := range uint64(30) {
		blocks := 4 + int(seed)*40 // positions are compacted many times
		trace := made(seed, 2000, blocks)
		var r Reuse
		for _, ids := range trace {
			r.Observe(Request{IDs: ids, BlockTokens: 16, InputTokens: -1, Session: -1})
		}
		for _, capacity := range []int{1, 2, 3, 7, blocks / 2, blocks, 10 * blocks} {
			want := plainLRU(trace, capacity)
			got := r.LRU(int64(capacity))[0]
			if got.HitBlocks != want || got.HitTokens != 16*want {
				t.Fatalf("seed %d, capacity %d: %+v, want %d", seed, capacity, got, want)
			}
		}
	}
}

// plainLRU keeps the blocks in a slice, most recent last.
func plainLRU(trace [][]uint64, capacity int) (hits int64) {
	var order []uint64
	for _, ids := range trace {
		for _, id := range ids {
			if i := slices.Index(order, id); i >= 0 {
				hits++
				order = slices.Delete(order, i, i+1)
			} else if len(order) == capacity {
				order = order[1:]
			}
			order = append(order, id)
		}
	}
	return hits
}

// TestReuseAgainstTheParts: Reuse says what Infinite and Linker say.
func TestReuseAgainstTheParts(t *testing.T) {
	var r Reuse
	var c Infinite
	var l Linker
	for i, ids := range made(99, 5000, 4000) {
		model, in := []string{"a", "b"}[i%2], int64(16*len(ids)-i%16)
		in = max(in, 0)
		seen := r.Observe(Request{Model: model, IDs: ids, BlockTokens: 16, InputTokens: in, Session: -1})
		session, turn := l.Link(model, ids, 16, in)
		if seen.Hits != c.Observe(model, ids, 16, in) || seen.Session != int64(session) || seen.Turn != turn {
			t.Fatalf("request %d: %+v, session %d turn %d", i, seen, session, turn)
		}
	}
	if n, _ := r.Distinct(); n != int64(c.Distinct()) {
		t.Errorf("%d distinct blocks, want %d", n, c.Distinct())
	}
}

func TestSharingAndTimes(t *testing.T) {
	var r Reuse
	at := int64(0)
	see := func(session int64, ids ...uint64) {
		at += 100
		r.Observe(Request{IDs: ids, BlockTokens: 1, InputTokens: -1, Session: session, At: at, AtKnown: true})
	}
	for s := range int64(12) {
		see(s, 1, 2+uint64(s/4), 100+uint64(s))
	}
	see(0, 1)
	got, ok := r.Sharing()
	if want := []Share{{1, 12, 12}, {4, 3, 12}, {SharedByMany, 1, 13}}; !ok || !slices.Equal(got, want) {
		t.Errorf("sharing %v, want %v", got, want)
	}
	if s := r.Times().Sample(1); s.N() != 12+9 || s.Quantiles1(1)[0] != 100 {
		t.Errorf("%d times", s.N())
	}
	see(-1, 1, 2, 500) // owned by given sessions: not theirs
	if seen := r.Observe(Request{IDs: []uint64{1, 2, 500, 6}, Session: -1, BlockTokens: 1, InputTokens: -1}); seen.Session != 0 || seen.Turn != 1 || !seen.Inferred {
		t.Errorf("mixed sessions: %+v", seen)
	}
}

// TestSample: beyond MaxBlocks the numbers are estimates that agree with the
// exact ones within a few standard errors, and memory stays bounded.
func TestSample(t *testing.T) {
	for seed := range uint64(5) {
		var exact Reuse
		sample := Reuse{MaxBlocks: 4000}
		r := stats.Stream(seed, 1)
		for range 30000 {
			root := uint64(r.ExpFloat64() * 3000)
			ids := make([]uint64, 1+r.IntN(10))
			for i := range ids {
				ids[i] = root*16 + uint64(i)
			}
			q := Request{IDs: ids, BlockTokens: 16, InputTokens: -1, Session: -1}
			exact.Observe(q)
			sample.Observe(q)
		}
		se := sample.StandardError()
		if sample.Rate() == 1 || sample.table.n > 4000 || se <= 0 || se > 0.05 {
			t.Fatalf("rate %v, %d blocks kept, standard error %v", sample.Rate(), sample.table.n, se)
		}
		total := float64(exact.Hits().Blocks)
		if sample.Hits().Blocks != exact.Hits().Blocks {
			t.Errorf("accesses %d, want %d", sample.Hits().Blocks, exact.Hits().Blocks)
		}
		near := func(what string, got, want int64) {
			t.Helper()
			if math.Abs(float64(got-want)) > 4*se*total {
				t.Errorf("seed %d: %s %d, want %d (standard error %v of %v)", seed, what, got, want, se, total)
			}
		}
		near("hits", sample.Hits().HitBlocks, exact.Hits().HitBlocks)
		capacities := []int64{100, 1000, 5000, 20000, 1 << 40}
		for i, p := range sample.LRU(capacities...) {
			near(fmt.Sprint("LRU ", capacities[i]), p.HitBlocks, exact.LRU(capacities[i])[0].HitBlocks)
		}
		if end := sample.LRU(1 << 40)[0]; end.HitBlocks != sample.Hits().HitBlocks {
			t.Errorf("the LRU curve ends at %d, a cache without limit hits %d", end.HitBlocks, sample.Hits().HitBlocks)
		}
		all, _ := sample.Distinct()
		want, _ := exact.Distinct()
		if math.Abs(float64(all)/float64(want)-1) > 0.1 {
			t.Errorf("distinct %d, want %d", all, want)
		}
		if _, ok := sample.Sessions(); ok {
			t.Error("sessions inferred from a sample")
		}
	}
}

func TestReuseOfNothing(t *testing.T) {
	var r Reuse
	if r.Distances(0.5) != nil || r.LRU(5)[0] != (Point{Capacity: 5}) || r.StandardError() != 0 {
		t.Error("numbers of nothing")
	}
	r.Observe(Request{Session: -1, InputTokens: -1})
	if all, _ := r.Distinct(); all != 0 || r.Hits() != (Hits{}) {
		t.Error("blocks of an empty prompt")
	}
}

func BenchmarkReuse(b *testing.B) {
	trace := made(1, 100000, 1<<20)
	var blocks int
	for b.Loop() {
		var r Reuse
		blocks = 0
		for _, ids := range trace {
			r.Observe(Request{IDs: ids, BlockTokens: 16, InputTokens: -1, Session: -1})
			blocks += len(ids)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(blocks), "ns/block")
}

func ExampleReuse() {
	var r Reuse
	for _, ids := range [][]uint64{{1, 2, 3}, {7, 8}, {1, 2, 4}} {
		r.Observe(Request{Model: "m", IDs: ids, BlockTokens: 16, InputTokens: -1, Session: -1})
	}
	for _, p := range r.LRU(4, 5) {
		fmt.Printf("%d blocks: %d hits\n", p.Capacity, p.HitBlocks)
	}
	// Output:
	// 4 blocks: 0 hits
	// 5 blocks: 2 hits
}
