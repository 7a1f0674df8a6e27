package analysis

import (
	"math"
	"slices"

	"reprise/analysis/stats"
)

// densityBins bounds the bins of a [LengthDensity] on either side.
const densityBins = 64

// A LengthDensity counts rows by input and output length: cell (i, j) holds those
// of Input[i] to below Input[i+1] input tokens and Output[j] to below Output[j+1]
// output tokens. There are at most 64 bins a side, about equally wide by their
// logarithm.
type LengthDensity struct {
	N      int64      `json:"n"`               // rows in cells
	Zero   int64      `json:"zeros,omitempty"` // rows with a length of 0, which have none
	Input  []int64    `json:"input_from"`      // edges, one more than bins
	Output []int64    `json:"output_from"`
	Cells  [][3]int64 `json:"cells"` // i, j and the rows of cells that are not empty, by i, then j
}

// densityOf returns nil where no row has two lengths above 0.
func densityOf(pairs *stats.Pairs) *LengthDensity {
	low, high := [2]int64{math.MaxInt64, math.MaxInt64}, [2]int64{}
	d := &LengthDensity{}
	for in, out := range pairs.All() {
		if in == 0 || out == 0 {
			d.Zero++
			continue
		}
		d.N++
		low[0], high[0] = min(low[0], in), max(high[0], in)
		low[1], high[1] = min(low[1], out), max(high[1], out)
	}
	if d.N == 0 {
		return nil
	}
	d.Input, d.Output = densityEdges(low[0], high[0]), densityEdges(low[1], high[1])
	counts := make([]int64, len(d.Input)*len(d.Output))
	for in, out := range pairs.All() {
		if in > 0 && out > 0 {
			counts[binOf(d.Input, in)*len(d.Output)+binOf(d.Output, out)]++
		}
	}
	for k, n := range counts {
		if n > 0 {
			d.Cells = append(d.Cells, [3]int64{int64(k / len(d.Output)), int64(k % len(d.Output)), n})
		}
	}
	return d
}

// densityEdges cuts whole numbers from low to high, both above 0; bins of short
// lengths, which are narrower than a token, become one.
func densityEdges(low, high int64) []int64 {
	edges := []int64{low}
	ratio := float64(high+1) / float64(low)
	for i := 1; i < densityBins; i++ {
		if e := int64(math.Round(float64(low) * math.Pow(ratio, float64(i)/densityBins))); e > edges[len(edges)-1] && e <= high {
			edges = append(edges, e)
		}
	}
	return append(edges, high+1)
}

// binOf returns the bin that v is in, which lies between the first edge and the
// last.
func binOf(edges []int64, v int64) int {
	i, exact := slices.BinarySearch(edges, v)
	if exact {
		return i
	}
	return i - 1
}
