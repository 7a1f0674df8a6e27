package tokens

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestCacheMakesTheSamePrompts holds a cache that forgets all the time, and one
// that never does, against the text itself.
func TestCacheMakesTheSamePrompts(t *testing.T) {
	text := Text{Seed: 3, Scope: "run"}
	for name, c := range map[string]struct {
		limit, ids int
	}{"small": {1, 4000}, "large": {64 << 20, 300}} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache(text, c.limit)
			r := rand.New(rand.NewPCG(1, 2))
			var got, want []byte
			for range 400 {
				p := Plan{Tokens: r.IntN(9000), Overhead: r.IntN(30), BlockTokens: []int{16, 256, 512}[r.IntN(3)], Fill: r.Uint64()}
				for range r.IntN(24) {
					p.Blocks = append(p.Blocks, uint64(r.IntN(c.ids)))
				}
				got, want = cache.AppendPrompt(got[:0], p), text.AppendPrompt(want[:0], p)
				if !bytes.Equal(got, want) {
					t.Fatalf("%+v: the cache makes another prompt", p)
				}
				if n := cache.recent.bytes + cache.before.bytes; n > 2*cache.limit {
					t.Fatalf("%d bytes are kept, the limit is %d", n, 2*cache.limit)
				}
			}
			if name == "small" && len(cache.before.at) == 0 {
				t.Error("it never forgot")
			}
		})
	}
}

// TestCacheDoesNotAllocate builds a prompt of known blocks.
func TestCacheDoesNotAllocate(t *testing.T) {
	cache, p := NewCache(Text{Seed: 1}, 1<<20), Plan{Tokens: 2000, BlockTokens: 512, Blocks: []uint64{1, 2, 3}}
	buf := cache.AppendPrompt(nil, p)
	if n := testing.AllocsPerRun(50, func() { buf = cache.AppendPrompt(buf[:0], p) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
