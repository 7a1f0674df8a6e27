package prefix_test

import (
	"fmt"
	"testing"

	"reprise/analysis/prefix"
)

func TestObserve(t *testing.T) {
	var c prefix.Infinite
	for i, s := range []struct {
		model string
		ids   []uint64
		in    int64
		want  prefix.Hits
	}{
		{"m", []uint64{1, 2}, 1024, prefix.Hits{Blocks: 2, Tokens: 1024}},
		{"m", []uint64{1, 2, 3}, 1300, prefix.Hits{Blocks: 3, HitBlocks: 2, Tokens: 1300, HitTokens: 1024}},
		{"m", []uint64{1, 2, 3}, 1536, prefix.Hits{Blocks: 3, HitBlocks: 2, Tokens: 1536, HitTokens: 1024}}, // id 3 was short before
		{"m", []uint64{9, 2}, 1024, prefix.Hits{Blocks: 2, Tokens: 1024}},                                   // 2 is known, but not as a prefix
		{"other", []uint64{1}, 512, prefix.Hits{Blocks: 1, Tokens: 512}},                                    // a cache is per model
		{"m", []uint64{1 << 32}, 512, prefix.Hits{Blocks: 1, Tokens: 512}},                                  // ids keep 64 bits
		{"m", []uint64{1, 2}, -1, prefix.Hits{Blocks: 2, HitBlocks: 2, Tokens: 1024, HitTokens: 1024}},
	} {
		if got := c.Observe(s.model, s.ids, 512, s.in); got != s.want {
			t.Errorf("request %d: %+v, want %+v", i, got, s.want)
		}
	}
}

func ExampleInfinite() {
	var c prefix.Infinite
	c.Observe("m", []uint64{7, 8}, 16, 32)
	h := c.Observe("m", []uint64{7, 8, 9}, 16, 40)
	fmt.Printf("%d of %d tokens were cached\n", h.HitTokens, h.Tokens)
	// Output: 32 of 40 tokens were cached
}
