package stats

import (
	"math"
	"slices"
)

// tauB returns Kendall's tau-b by Knight's method (1966): with the pairs sorted
// by x and then y, the discordant ones are the inversions of y.
func (p *Pairs) tauB(x, y *margin, discordant int64) float64 {
	n := float64(len(p.packed))
	all := n * (n - 1) / 2
	tx, ty := x.ties(), y.ties()
	var both, run int64
	for i, v := range p.packed {
		if i > 0 && v == p.packed[i-1] {
			run++ // this one is equal to run earlier ones
			both += run
		} else {
			run = 0
		}
	}
	top := all - tx - ty + float64(both) - 2*float64(discordant)
	return min(1, max(-1, top/(math.Sqrt(all-tx)*math.Sqrt(all-ty))))
}

// inversions sorts v and returns how many pairs were out of order. buf is as
// long as v.
func inversions(v, buf []uint32) int64 {
	const small = 24
	var count int64
	for from := 0; from < len(v); from += small {
		part := v[from:min(from+small, len(v))]
		for i := 1; i < len(part); i++ {
			x, j := part[i], i
			for ; j > 0 && part[j-1] > x; j-- {
				part[j] = part[j-1]
			}
			part[j] = x
			count += int64(i - j)
		}
	}
	src, dst := v, buf
	for width := small; width < len(v); width *= 2 {
		for from := 0; from < len(v); from += 2 * width {
			mid, end := min(from+width, len(v)), min(from+2*width, len(v))
			count += mergeRuns(dst[from:end], src[from:mid], src[mid:end])
		}
		src, dst = dst, src
	}
	if len(v) > 0 && &src[0] != &v[0] {
		copy(v, src)
	}
	return count
}

// mergeRuns merges two sorted runs and returns the inversions between them.
func mergeRuns(dst, a, b []uint32) int64 {
	var count int64
	i, j := 0, 0
	for k := range dst {
		switch {
		case j == len(b) || i < len(a) && a[i] <= b[j]:
			dst[k] = a[i]
			i++
		default:
			dst[k] = b[j]
			j++
			count += int64(len(a) - i)
		}
	}
	return count
}

// A Bin says what y is among the pairs whose x lies in one part of its range.
type Bin struct {
	FromX, ToX int64 // smallest and largest x
	N          int64
	MeanY      float64
	MedianY    float64 // type 7
	P90Y       float64 // type 7
}

// Bins cuts the pairs into at most k bins of about equal count by x and
// describes y in each. Equal x are never split: bin i holds the x above the
// (i-1)/k quantile and not above the i/k quantile (type 1), so there are fewer
// bins where one x has more than its share. It sorts p.
func (p *Pairs) Bins(k int) []Bin {
	slices.Sort(p.packed)
	var bins []Bin
	var ys []int64
	n := int64(len(p.packed))
	from := int64(0)
	for i := 1; i <= k && n > 0; i++ {
		edge := p.packed[rank1(n, float64(i)/float64(k))-1] >> 32
		to := from
		ys = ys[:0]
		var sum total
		for ; to < n && p.packed[to]>>32 <= edge; to++ {
			y := int64(uint32(p.packed[to]))
			ys = append(ys, y)
			sum.add(float64(y))
		}
		if to == from {
			continue
		}
		slices.Sort(ys)
		b := Bin{FromX: int64(p.packed[from] >> 32), ToX: int64(p.packed[to-1] >> 32), N: to - from, MeanY: sum.value() / float64(to-from)}
		b.MedianY, _ = Quantile7(ys, 0.5)
		b.P90Y, _ = Quantile7(ys, 0.9)
		bins = append(bins, b)
		from = to
	}
	return bins
}
