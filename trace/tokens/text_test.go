package tokens

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

func block(t Text, b Block, n int) string { return string(t.AppendBlock(nil, b, n)) }

// lengths are the counts where AppendBlock changes course.
var lengths = []int{-1, 0, 1, 2, idWords - 1, idWords, idWords + 1, idWords + perDraw, 16, 100, 512,
	idWords + batch - 1, idWords + batch, idWords + batch + 1, 3 * batch, 5000}

func TestBlockCountsToItsLength(t *testing.T) {
	known := make(map[string]bool)
	for _, w := range Words() {
		known[w] = true
	}
	for _, n := range lengths {
		text := block(Text{Seed: 7}, Block{ID: 42, Size: 512}, n)
		if got, want := Count(text), max(0, n); got != want {
			t.Errorf("%d words asked for, %d made", want, got)
		}
		for i, w := range strings.Split(text, " ")[min(1, len(text)):] {
			if i < max(0, n) && !known[w] {
				t.Fatalf("word %d of %d is %q, which is not listed", i, n, w)
			}
		}
	}
}

func TestShorterBlockIsPrefix(t *testing.T) {
	full := block(Text{Seed: 7, Scope: "run"}, Block{ID: 1 << 63, Size: 512}, 5000)
	for _, n := range lengths {
		part := block(Text{Seed: 7, Scope: "run"}, Block{ID: 1 << 63, Size: 512}, n)
		if !strings.HasPrefix(full, part) || len(part) < len(full) && full[len(part)] != ' ' {
			t.Errorf("%d words are not the first words of the whole block", n)
		}
	}
}

func TestBlockKeepsWhatIsInFront(t *testing.T) {
	for _, room := range []int{0, 1, 100, 10_000} {
		dst := append(make([]byte, 0, room+4), "head"...)
		dst = Text{}.AppendBlock(dst, Block{ID: 3}, 600)
		if want := "head" + block(Text{}, Block{ID: 3}, 600); string(dst) != want {
			t.Errorf("with %d bytes of room the text is another", room)
		}
	}
}

func TestTextDependsOnAllOfItsName(t *testing.T) {
	base := Text{Seed: 1, Scope: "a"}
	want := block(base, Block{ID: 5, Size: 16}, 16)
	for name, got := range map[string]string{
		"seed":  block(Text{Seed: 2, Scope: "a"}, Block{ID: 5, Size: 16}, 16),
		"scope": block(Text{Seed: 1, Scope: "b"}, Block{ID: 5, Size: 16}, 16),
		"empty": block(Text{Seed: 1}, Block{ID: 5, Size: 16}, 16),
		"id":    block(base, Block{ID: 6, Size: 16}, 16),
		"size":  block(base, Block{ID: 5, Size: 512}, 16),
		"fill":  block(base, Block{ID: 5}, 16),
	} {
		if got == want {
			t.Errorf("another %s gives the same text", name)
		}
	}
}

// TestBlocksArePure makes the same blocks on several goroutines, each in its own order.
func TestBlocksArePure(t *testing.T) {
	text, sizes := Text{Seed: 11, Scope: "s"}, []int{3, 16, 600}
	want := make([]string, 300)
	for i := range want {
		want[i] = block(text, Block{ID: uint64(i), Size: 600}, sizes[i%len(sizes)])
	}
	var wg sync.WaitGroup
	for worker := range uint64(4) {
		wg.Go(func() {
			var buf []byte
			for _, i := range rand.New(rand.NewPCG(worker, 0)).Perm(len(want)) {
				buf = text.AppendBlock(buf[:0], Block{ID: uint64(i), Size: 600}, sizes[i%len(sizes)])
				if string(buf) != want[i] {
					t.Errorf("worker %d made another block %d", worker, i)
				}
			}
		})
	}
	wg.Wait()
}

// heads reports how many of the ids share their first k words with another, from
// the digits that those words are.
func heads(key uint64, ids func(yield func(uint64) bool), k int) (shared int) {
	seen := make(map[[idWords]uint16]bool)
	for id := range ids {
		d := digits(key, id)
		clear(d[k:])
		if seen[d] {
			shared++
		}
		seen[d] = true
	}
	return shared
}

func upTo(n uint64, f func(uint64) uint64) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for i := range n {
			if !yield(f(i)) {
				return
			}
		}
	}
}

func TestIDsAreToldApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	key := Text{Seed: 9, Scope: "run"}.key(512)
	for _, c := range []struct {
		name  string
		ids   func(func(uint64) bool)
		words int
		most  int // ids that may share so many words with another
	}{
		{"first 4096", upTo(4096, func(i uint64) uint64 { return i }), 1, 0},
		{"counted up", upTo(1_000_000, func(i uint64) uint64 { return i }), 2, 0},
		{"counted up from 2^40", upTo(100_000, func(i uint64) uint64 { return 1<<40 + i }), 2, 0},
		{"random", upTo(1_000_000, func(uint64) uint64 { return rng.Uint64() }), 6, 0},
		// Sessions in the high bits: by chance 100,000 ids make about 300 pairs in 24 bits.
		{"high bits", upTo(100_000, func(i uint64) uint64 { return i << 40 }), 2, 400},
		{"high bits, whole", upTo(100_000, func(i uint64) uint64 { return i << 40 }), 6, 0},
		{"bit flips", upTo(64, func(i uint64) uint64 { return 1 << i }), 2, 0},
	} {
		if got := heads(key, c.ids, c.words); got > c.most {
			t.Errorf("%s: %d ids share their first %d words with another, want at most %d", c.name, got, c.words, c.most)
		}
	}
}

// TestDigitsCanBeUndone is the proof that no two ids have the same six words.
func TestDigitsCanBeUndone(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		key, id := rng.Uint64(), rng.Uint64()>>rng.UintN(64)
		if got := undo(key, digits(key, id)); got != id {
			t.Fatalf("digits of %#x under %#x undo to %#x", id, key, got)
		}
	}
}

func undo(key uint64, d [idWords]uint16) (id uint64) {
	for i := idWords - 1; i >= 0; i-- {
		var before uint64
		for _, w := range d[:i] {
			before = before<<wordBits | uint64(w)
		}
		id = id<<wordBits | (uint64(d[i])^mask(key, i, id, before))&wordMask
	}
	return id
}

// TestWordsAreEven looks at the frequencies of words, in the head of blocks and behind it:
// the chi-square statistic of 4,095 degrees of freedom has mean 4,095 and
// standard deviation 90.
func TestWordsAreEven(t *testing.T) {
	index := make(map[string]int)
	for i, w := range Words() {
		index[w] = i
	}
	const blocks, size = 4096, 32
	var count [size][numWords]int
	for id := range uint64(blocks) {
		for i, w := range strings.Fields(block(Text{Seed: 5}, Block{ID: id << 32, Size: size}, size)) {
			count[i][index[w]]++
		}
	}
	for place := range count {
		chi := 0.0
		for _, n := range count[place] {
			d := float64(n) - blocks/numWords
			chi += d * d / (blocks / numWords)
		}
		if chi < 4095-6*90 || chi > 4095+6*90 {
			t.Errorf("word %d of blocks: chi-square %.0f, want about 4095", place, chi)
		}
	}
}

func TestAppendBlockAllocatesNothingWithRoom(t *testing.T) {
	buf := make([]byte, 0, 512*len(entry{}))
	if n := testing.AllocsPerRun(10, func() { buf = Text{Scope: "run"}.AppendBlock(buf[:0], Block{ID: 1, Size: 512}, 512) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(10, func() { Text{}.AppendBlock(nil, Block{ID: 1}, 100_000) }); n > 2 {
		t.Errorf("%v allocations for a long text, want at most its growth by the mean and one correction", n)
	}
}

func BenchmarkAppendBlock(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
	}{{"16", 16}, {"512", 512}, {"8192", 8192}} {
		b.Run(c.name, func(b *testing.B) {
			buf := Text{}.AppendBlock(nil, Block{}, c.n)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			var id uint64
			for b.Loop() {
				id++
				buf = Text{Scope: "run"}.AppendBlock(buf[:0], Block{ID: id, Size: c.n}, c.n)
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	text := bytes.Clone(Text{}.AppendBlock(nil, Block{}, 8192))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Count(text)
	}
}
