package column

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
)

// What is packed must be what another decoder reads, for any differences.
func FuzzDelta(f *testing.F) {
	seed := func(list ...int64) {
		var b []byte
		for _, v := range list {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		f.Add(b)
	}
	seed()
	seed(5)
	seed(1<<63-1, -1<<63, 0, -1, 1<<62)
	times := make([]int64, 0, 700)
	for i := range 700 {
		times = append(times, int64(i%200)*20_000+int64(i*7919%5000))
	}
	seed(times...)
	f.Fuzz(func(t *testing.T, data []byte) {
		var long []int64
		var short []int32
		for ; len(data) >= 8; data = data[8:] {
			v := int64(binary.LittleEndian.Uint64(data))
			long, short = append(long, v), append(short, int32(v))
		}
		for _, wide := range []bool{false, true} {
			got, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, appendDelta(nil, long, wide))
			if err != nil || !slices.Equal(got, long) {
				t.Fatalf("wide %v: %d values of 64 bits read back as %d, %v", wide, len(long), len(got), err)
			}
			got32, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, appendDelta(nil, short, wide))
			if err != nil || !slices.Equal(got32, short) {
				t.Fatalf("wide %v: %d values of 32 bits read back as %d, %v", wide, len(short), len(got32), err)
			}
		}
	})
}

func TestHybrid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		width := 1 + r.IntN(20)
		var list runs
		var want []int32
		for range r.IntN(60) {
			v, n := r.Uint32N(1<<width), 1+r.IntN(1+r.IntN(40))
			if r.IntN(20) == 0 {
				n += r.IntN(2000)
			}
			list.add(v, n)
			for range n {
				want = append(want, int32(v))
			}
		}
		e := &rle.Encoding{BitWidth: width}
		got, err := e.DecodeInt32(nil, appendHybrid(nil, list, width))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) < len(want) || len(got) >= len(want)+8 || !slices.Equal(got[:len(want)], want) {
			t.Fatalf("width %d: %d values read back as %d", width, len(want), len(got))
		}
	}
}

// Booleans are packed eight at a time, and by themselves at the end.
func TestPlainBools(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 40 {
		list := make([]bool, n)
		want := make([]byte, (n+7)/8)
		for i := range list {
			if list[i] = r.IntN(2) == 1; list[i] {
				want[i/8] |= 1 << (i % 8)
			}
		}
		if got := appendPlain(nil, list); !slices.Equal(got, want) {
			t.Errorf("%v: %08b, want %08b", list, got, want)
		}
	}
}

func TestAllSame(t *testing.T) {
	for _, c := range []struct {
		list []int32
		want bool
	}{{nil, true}, {[]int32{7}, true}, {[]int32{7, 7, 7}, true}, {[]int32{7, 8, 7}, false}, {[]int32{7, 7, 8}, false}} {
		if got := allSame(c.list); got != c.want {
			t.Errorf("%v: %v", c.list, got)
		}
	}
}
