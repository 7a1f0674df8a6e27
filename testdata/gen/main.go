// Gen writes a made-up trace in the format of the published Mooncake traces, to
// try things on: conversations that begin with one of a few system prompts, so
// that prefix blocks repeat within a conversation and between conversations.
// Same flags, same bytes. It holds no recorded traffic.
//
//	go run ./testdata/gen -n 600 -seed 1 > sample.jsonl
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// blockTokens is the block size of the published traces.
const blockTokens = 512

// A row is one line of the trace.
type row struct {
	timestamp     int64 // ms since the trace began
	input, output int   // tokens
	ids           []int64
}

// write writes the row as the published files are written, spaces included; an
// error stays in w until it is flushed.
func (r row) write(w *bufio.Writer) {
	ids := strings.Join(strings.Fields(fmt.Sprint(r.ids)), ", ")
	fmt.Fprintf(w, "{\"timestamp\": %d, \"input_length\": %d, \"output_length\": %d, \"hash_ids\": %s}\n", r.timestamp, r.input, r.output, ids)
}

func main() {
	n := flag.Int("n", 600, "requests")
	seed := flag.Uint64("seed", 1, "of all that is drawn")
	span := flag.Float64("span", 600, "seconds from the first to about the last request")
	flag.Parse()
	if *n < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	w := bufio.NewWriter(os.Stdout)
	for _, r := range generate(rand.New(rand.NewPCG(*seed, 0)), *n, *span) {
		r.write(w)
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate draws conversations that start at even chances over the span until
// there are n requests, and puts them in order of time.
func generate(rng *rand.Rand, n int, span float64) []row {
	g := &generator{rng: rng}
	prompts := make([][]int64, 4)
	for i := range prompts {
		prompts[i] = g.ids(2 + i)
	}
	var rows []row
	for len(rows) < n {
		start := rng.Float64() * span * 1000
		turns := 1 + int(rng.ExpFloat64()*3)
		rows = append(rows, g.conversation(start, prompts[rng.IntN(len(prompts))], turns)...)
	}
	rows = rows[:n]
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.timestamp, b.timestamp) })
	first := rows[0].timestamp
	for i := range rows {
		rows[i].timestamp -= first
	}
	return rows
}

type generator struct {
	rng  *rand.Rand
	next int64
}

// ids returns n ids that were not used before.
func (g *generator) ids(n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = g.next
		g.next++
	}
	return ids
}

// conversation draws turns whose prompts hold all that came before. Full blocks
// keep their ids from turn to turn; the short last block has an id of its own,
// since its tokens are part of another block in the next turn.
func (g *generator) conversation(at float64, blocks []int64, turns int) []row {
	blocks = slices.Clone(blocks)
	tokens := len(blocks) * blockTokens
	rows := make([]row, 0, turns)
	for range turns {
		tokens += 20 + g.lognormal(180, 0.9)
		if missing := tokens/blockTokens - len(blocks); missing > 0 {
			blocks = append(blocks, g.ids(missing)...)
		}
		ids := slices.Clone(blocks)
		if tokens%blockTokens > 0 {
			ids = append(ids, g.ids(1)...)
		}
		output := 1 + g.lognormal(90, 0.6)
		rows = append(rows, row{int64(at), tokens, output, ids})
		tokens += output
		at += 1000 * (2 + g.rng.ExpFloat64()*15) // answer, reading and typing
	}
	return rows
}

// lognormal draws a whole number with the given median and sigma, at most 20
// times the median.
func (g *generator) lognormal(median, sigma float64) int {
	return int(min(median*math.Exp(sigma*g.rng.NormFloat64()), 20*median))
}
