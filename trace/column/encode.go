package column

import (
	"encoding/binary"
	"math/bits"
)

// A run is a number of equal levels or dictionary positions, one after another.
type run struct{ value, n uint32 }

// runs are levels or positions of a page.
type runs []run

func (r *runs) add(value uint32, n int) {
	if n == 0 {
		return
	}
	if last := len(*r) - 1; last >= 0 && (*r)[last].value == value {
		(*r)[last].n += uint32(n)
		return
	}
	*r = append(*r, run{value, uint32(n)})
}

// appendHybrid appends runs in Parquet's RLE and bit-packed hybrid of width
// bits: runs of 8 and more by their length, what is between in groups of 8.
func appendHybrid(dst []byte, list runs, width int) []byte {
	var group [8]uint32
	filled := 0
	header := -1 // of the open series of groups, a byte of dst
	groups := 0
	pack := func() {
		if header >= 0 && groups == 63 { // what one header byte can say
			header = -1
		}
		if header < 0 {
			header, groups = len(dst), 0
			dst = append(dst, 0)
		}
		groups++
		dst[header] = byte(groups<<1 | 1)
		dst = appendGroup(dst, &group, width)
		filled = 0
	}
	for _, r := range list {
		n := r.n
		for filled > 0 && n > 0 || n > 0 && n < 8 {
			group[filled] = r.value
			filled++
			n--
			if filled == 8 {
				pack()
			}
		}
		if n == 0 {
			continue
		}
		header = -1
		dst = binary.AppendUvarint(dst, uint64(n)<<1)
		for v, b := r.value, 0; b < width; b += 8 {
			dst = append(dst, byte(v))
			v >>= 8
		}
	}
	if filled > 0 {
		clear(group[filled:])
		pack()
	}
	return dst
}

// appendGroup packs 8 values of width bits into width bytes.
func appendGroup(dst []byte, group *[8]uint32, width int) []byte {
	var acc uint64
	n := 0
	for _, v := range group {
		acc |= uint64(v) << n
		for n += width; n >= 8; n -= 8 {
			dst = append(dst, byte(acc))
			acc >>= 8
		}
	}
	return dst
}

// Shape of DELTA_BINARY_PACKED.
const (
	deltaBlock = 128
	deltaMini  = 32
	deltaMinis = deltaBlock / deltaMini
)

// appendDelta appends values in DELTA_BINARY_PACKED: of each block the smallest
// difference, and what the others have above it in as few bits as hold it.
//
// A list of times begins anew in each row, and the fall there would widen all
// of its block. With wide, the fall is left out of the smallest difference: it
// wraps around in its own 32 values, as the format allows, whose zero bytes the
// page's codec then takes.
func appendDelta[T int32 | int64 | uint64](dst []byte, values []T, wide bool) []byte {
	dst = binary.AppendUvarint(dst, deltaBlock)
	dst = binary.AppendUvarint(dst, deltaMinis)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	if len(values) == 0 {
		return binary.AppendVarint(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(values[0]))
	if allSame(values) {
		return appendSame(dst, len(values)-1)
	}
	width := bitsOf[T]()
	var block [deltaBlock]int64
	last := values[0]
	for values = values[1:]; len(values) > 0; {
		n := min(len(values), deltaBlock)
		if evenSteps(values[:n], last) {
			dst = append(binary.AppendVarint(dst, int64(values[0]-last)), make([]byte, deltaMinis)...) // widths of 0
			last, values = values[n-1], values[n:]
			continue
		}
		least := int64(values[0] - last)
		for i, v := range values[:n] {
			d := int64(v - last) // wraps around
			block[i] = d
			least = min(least, d)
			last = v
		}
		values = values[n:]
		if wide && least < 0 {
			least = smallestRise(block[:n], least)
		}
		dst = appendDeltaBlock(dst, &block, n, least, width)
	}
	return dst
}

// appendSame appends n differences of 0.
func appendSame(dst []byte, n int) []byte {
	blocks := (n + deltaBlock - 1) / deltaBlock
	return append(dst, make([]byte, blocks*(1+deltaMinis))...) // least differences and widths of 0
}

// evenSteps says whether each value differs from the one before as the first does
// from last.
func evenSteps[T int32 | int64 | uint64](values []T, last T) bool {
	step := values[0] - last
	for _, v := range values {
		if v-last != step {
			return false
		}
		last = v
	}
	return true
}

// bitsOf returns the size of T.
func bitsOf[T int32 | int64 | uint64]() int {
	var v T
	if _, ok := any(v).(int32); ok {
		return 32
	}
	return 64
}

// appendDeltaBlock appends n differences above least, which have so many bits.
func appendDeltaBlock(dst []byte, block *[deltaBlock]int64, n int, least int64, size int) []byte {
	mask := ^uint64(0) >> (64 - size)
	for i := n; i < len(block); i++ {
		block[i] = least
	}
	var widths [deltaMinis]int
	for m := range widths {
		var all uint64
		mini := (*[deltaMini]int64)(block[m*deltaMini:])
		for i, d := range mini {
			d := uint64(d-least) & mask
			mini[i] = int64(d)
			all |= d
		}
		widths[m] = bits.Len64(all)
	}
	dst = binary.AppendVarint(dst, least)
	for _, w := range widths {
		dst = append(dst, byte(w))
	}
	for m, w := range widths {
		if w > 0 {
			dst = appendPacked(dst, (*[deltaMini]int64)(block[m*deltaMini:]), w)
		}
	}
	return dst
}

// smallestRise is the smallest difference that is no fall, if falls are few.
func smallestRise(list []int64, least int64) int64 {
	rise, falls := int64(1<<62), 0
	for _, d := range list {
		if d < 0 {
			falls++
		} else {
			rise = min(rise, d)
		}
	}
	if falls > len(list)/deltaMini {
		return least
	}
	return rise
}

// appendPacked packs 32 values of width bits into 4*width bytes.
func appendPacked(dst []byte, values *[deltaMini]int64, width int) []byte {
	var acc uint64
	n := 0
	for _, v := range values {
		acc |= uint64(v) << n
		if n += width; n >= 64 {
			dst = binary.LittleEndian.AppendUint64(dst, acc)
			n -= 64
			acc = uint64(v) >> (width - n)
		}
	}
	if n > 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(acc))
	}
	return dst
}
