package tokens

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func prompt(t Text, p Plan) string { return string(t.AppendPrompt(nil, p)) }

// checkPrompt reports what of the promises of AppendPrompt the prompt of p breaks.
func checkPrompt(t *testing.T, text Text, p Plan) {
	t.Helper()
	got := prompt(text, p)
	if n, want := Count(got)+p.Overhead, max(p.Tokens, Shortest(p.Overhead)); n != want {
		t.Errorf("%+v: %d tokens, want %d", p, n, want)
	}
	if got != Opening && !strings.HasPrefix(got, Opening+" ") {
		t.Errorf("%+v: begins with %.20q", p, got)
	}
	if quoted, err := json.Marshal(got); err != nil || string(quoted) != `"`+got+`"` {
		t.Errorf("%+v: needs escaping in JSON", p)
	}
	if strings.Contains(got, "  ") || strings.HasSuffix(got, " ") {
		t.Errorf("%+v: has a space too many", p)
	}
}

func TestPromptIsExact(t *testing.T) {
	text := Text{Seed: 1}
	for _, p := range []Plan{
		{}, {Tokens: -5}, {Tokens: 1}, {Tokens: 2}, {Tokens: 1, Overhead: 9}, {Tokens: 10, Overhead: 9}, {Tokens: 11, Overhead: 9},
		{Tokens: 1024, BlockTokens: 512, Blocks: []uint64{1, 702}},
		{Tokens: 694, BlockTokens: 512, Blocks: []uint64{1, 702}},
		{Tokens: 600, BlockTokens: 512, Blocks: []uint64{1}, Overhead: 20},      // dropped tail: filled
		{Tokens: 600, BlockTokens: 512, Blocks: []uint64{1, 2, 3, 4}},           // more ids than room
		{Tokens: 512, BlockTokens: 512, Blocks: []uint64{1, 2}, Overhead: 600},  // no room at all
		{Tokens: 600, Blocks: []uint64{1, 2}},                                   // no block size
		{Tokens: 600, BlockTokens: -1, Blocks: []uint64{1, 2}},                  // nor here
		{Tokens: 100_000, BlockTokens: 16, Blocks: []uint64{7, 7, 7}, Fill: 99}, // fewer ids than room
	} {
		checkPrompt(t, text, p)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		p := Plan{Tokens: rng.IntN(4000), Overhead: rng.IntN(40), BlockTokens: 1 + rng.IntN(600), Fill: rng.Uint64()}
		for range rng.IntN(12) {
			p.Blocks = append(p.Blocks, rng.Uint64N(50))
		}
		checkPrompt(t, text, p)
	}
}

func TestPromptsShareTheirBlocks(t *testing.T) {
	const size, overhead = 512, 20
	text := Text{Seed: 3, Scope: "run"}
	at := func(tokens int, fill uint64, ids ...uint64) string {
		return prompt(text, Plan{Tokens: tokens, Overhead: overhead, Blocks: ids, BlockTokens: size, Fill: fill})
	}
	short, long, other := at(2*size, 1, 10, 11), at(3*size, 2, 10, 11, 12), at(3*size, 3, 10, 11, 13)
	if !strings.HasPrefix(long, short) {
		t.Error("the prompt of [10 11] is not the head of that of [10 11 12]")
	}
	whole := Opening + block(text, Block{ID: 10, Size: size}, size) + block(text, Block{ID: 11, Size: size}, size)
	if !strings.HasPrefix(whole, short) || !strings.HasPrefix(long, whole) {
		t.Error("the shorter prompt is not cut from blocks 10 and 11, or the longer does not hold both whole")
	}
	if got, want := common(long, other), Shortest(0)+2*size; got != want {
		t.Errorf("[10 11 12] and [10 11 13] share %d words, want %d", got, want)
	}
	if got := common(at(2*size, 1, 20, 11), at(2*size, 2, 21, 11)); got != 1 {
		t.Errorf("prompts with unequal first blocks share %d words, want the opening word alone", got)
	}
	if tail := at(2*size-182, 1, 10, 11); !strings.HasPrefix(short, tail) {
		t.Error("a partial last block is not the head of the full one")
	}
	dropped1, dropped2 := at(2*size+100, 1, 10, 11), at(2*size+100, 2, 10, 11)
	if got, want := common(dropped1, dropped2), Shortest(0)+2*size; got != want {
		t.Errorf("tails without an id share %d words, want %d", got, want)
	}
	if !strings.HasPrefix(at(900, 5), at(300, 5)) {
		t.Error("prompts of one Fill do not grow")
	}
	if got := common(at(900, 5), at(900, 6)); got != 1 {
		t.Errorf("prompts without blocks share %d words, want the opening word alone", got)
	}
}

// common counts the words that a and b have in common at their start.
func common(a, b string) (n int) {
	x, y := strings.Fields(a), strings.Fields(b)
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

func FuzzAppendPrompt(f *testing.F) {
	f.Add(uint64(1), "run", 694, 20, 512, uint64(1), uint64(702), uint64(9))
	f.Add(uint64(0), "", 0, 0, 0, uint64(0), uint64(0), uint64(0))
	f.Add(uint64(1), "x", -3, 5, -1, uint64(1)<<63, uint64(2), uint64(3))
	f.Fuzz(func(t *testing.T, seed uint64, scope string, tokens, overhead, blockTokens int, a, b, fill uint64) {
		const most = 20_000
		text := Text{Seed: seed, Scope: scope}
		p := Plan{Tokens: tokens % most, Overhead: max(0, overhead%most), Blocks: []uint64{a, b}, BlockTokens: blockTokens % most, Fill: fill}
		checkPrompt(t, text, p)
		longer := p
		longer.Tokens++
		if !strings.HasPrefix(prompt(text, longer), prompt(text, p)) {
			t.Errorf("%+v: one token more changes the prompt", p)
		}
	})
}

func BenchmarkAppendPrompt(b *testing.B) {
	for _, size := range []int{16, 512} {
		b.Run(fmt.Sprintf("8k/block%d", size), func(b *testing.B) {
			p := Plan{Tokens: 8000, Overhead: 20, BlockTokens: size, Blocks: make([]uint64, 8000/size)}
			buf := Text{}.AppendPrompt(nil, p)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				p.Fill++
				for i := range p.Blocks {
					p.Blocks[i]++
				}
				buf = Text{Scope: "run"}.AppendPrompt(buf[:0], p)
			}
		})
	}
}
