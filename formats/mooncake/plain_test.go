package mooncake

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/formats/jsonx"
)

var ordinary = []string{
	`{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48, 2366, 2367]}`,
	`{"hash_ids":[],"output_length":0,"input_length":0}`,
	` { "input_length" : 12345678 , "timestamp" : 0.5 } `,
	`{"timestamp":1700000000000,"input_length":9223372036854775807,"hash_ids":[18446744073709551615,12345678,123456789,0]}`,
	`{"timestamp":12.25,"input_length":1}`,
	`{"timestamp": 0, "input_length": 1, "output_length": 9, "hash_ids": [8, 9, 10, 11, 98, 99, 100, 9999999, 10000000, 99999998, 99999999, 100000000, 3, 4]}`,
	`{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1000001,1000002,1000003, 1000004,  1000005 ,1000006]}`,
	`{"timestamp":2,"input_length":2,"output_length":3,"hash_ids":[0,1,2,3]}`,
	`{"timestamp":2,"input_length":2,"output_length":3,"hash_ids":[4,4,5,6,6,7]}`,
	`{"timestamp": 3.5, "input_length": 4, "output_length": 5, "hash_ids": []}`,
}

var notOrdinary = []string{
	``, `{}`, `[1]`, `null`, `{"input_length":1`, `{"input_length":1}}`, `{"input_length":1,}`, `{"input_length":01}`,
	`{"input_length":1,"input_length":2}`, `{"input_length":-1}`, `{"input_length":1e3}`, `{"input_length":6758.0}`,
	`{"input_length":9223372036854775808}`, `{"input_length":1,"hash_ids":[18446744073709551616]}`, `{"input_length":1,"hash_ids":[1.0]}`,
	`{"input_length":1,"hash_ids":[1,]}`, `{"input_length":1,"hash_ids":null}`, `{"input_length":1,"hash_ids":[1 2]}`,
	`{"timestamp":1}`, `{"timestamp":1.,"input_length":1}`, `{"timestamp":.5,"input_length":1}`, `{"timestamp":0.1e1,"input_length":1}`,
	`{"timestamp":0.00000000000001,"input_length":1}`, `{"timestamp":9223372036854775807,"input_length":1}`,
	`{"input_length":1,"x":2}`, `{"input_length":1x}`, `{"input\u005flength":1}`, `{"input_length":1,"session_id":"a"}`,
	`{"input_length":1234567x}`, `{"input_length":1234567:}`,
	`{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1000008, 1000009, 100000:, 100000;]}`,
	`{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1000008, 1000009, 100000:, 5]}`,
	`{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1000001, 1000002x, 1000003, 1000004]}`,
	`{"timestamq": 1, "input_length": 2, "output_length": 3, "hash_ids": [1]}`,
	`{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1000001, 1000002, 1000003`,
	`{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1000001, 1000002,, 1000003]}`,
	`{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1000001, 1000002, 1000003, ]}`,
	`{"timestamp": 1, "input_length": 2, "output_length": 3.5, "hash_ids": [1]}`,
	`{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1]}}`,
	`{"timestamp": 1, "input_length": , "output_length": 3, "hash_ids": [1]}`,
}

func TestScan(t *testing.T) {
	for _, before := range append(slices.Clone(ordinary), notOrdinary...) {
		for _, line := range ordinary {
			if !agree(t, before, line) {
				t.Errorf("%s after %s: left to the strict parser", line, before)
			}
		}
		for _, line := range notOrdinary {
			if agree(t, before, line) {
				t.Errorf("%s after %s: taken for an ordinary line", line, before)
			}
		}
	}
}

// Lines that differ in their values alone are read by their shape.
func TestScanAgain(t *testing.T) {
	var p plain
	if !p.scan([]byte(ordinary[0]), time.Millisecond) || !p.again([]byte(ordinary[5]), time.Millisecond) || p.again([]byte(ordinary[1]), time.Millisecond) {
		t.Error("a shape is not known again, or another is taken for it")
	}
}

// What scan reads is what the strict parser reads; the rest is left to that.
func FuzzScan(f *testing.F) {
	for i, line := range ordinary {
		f.Add(line, ordinary[(i+1)%len(ordinary)])
	}
	for _, line := range notOrdinary {
		f.Add(ordinary[5], line)
	}
	f.Fuzz(func(t *testing.T, before, line string) { agree(t, before, line) })
}

// agree reads a line both ways, after another, and says whether scan took it.
func agree(t *testing.T, before, line string) bool {
	t.Helper()
	p := plain{ids: []uint64{7}, at: 9, out: 9} // left by a line before
	for _, unit := range []time.Duration{time.Millisecond, time.Second, time.Nanosecond} {
		p.scan([]byte(before), unit)
		if !p.scan([]byte(line), unit) {
			continue
		}
		fields, err := jsonx.Parse([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if isHeader(fields) {
			t.Fatalf("%s: a header", line)
		}
		s := &state{im: &Importer{}, unit: unit, unknown: map[string]int64{}}
		want, err := s.parse(fields)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := p.row(); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s:\n got %+v\nwant %+v", line, got, want)
		}
	}
	return p.scan([]byte(line), time.Millisecond)
}

// The uses of an id are those of its first, whatever comes between.
func TestIDUses(t *testing.T) {
	var u idUses
	want := map[uint64]bool{}
	id := uint64(1)
	for i := range 200_000 {
		id = id*6364136223846793005 + 1442695040888963407
		at := id >> 47
		if i%3 == 0 {
			at = id | 1<<63 | 63 // far from all others
		}
		full := id>>20&1 == 0
		if _, seen := want[at]; !seen {
			want[at] = full
		}
		if got := u.first(at, full); got != want[at] {
			t.Fatalf("use %d of id %d: %v, want %v", i, at, got, want[at])
		}
	}
}

func BenchmarkScan(b *testing.B) {
	line := []byte(`{"timestamp": 27482, "input_length": 12088, "output_length": 52, "hash_ids": [` + strings.Repeat("10000123, ", 23) + `10000147]}`)
	var p plain
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if !p.scan(line, time.Millisecond) {
			b.Fatal("not ordinary")
		}
	}
}
