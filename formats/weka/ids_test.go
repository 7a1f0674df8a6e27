package weka

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/formats/jsonx"
)

func TestNamespacesCanBeUndone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	edge := []uint64{0, 1, 1<<40 - 1, 1 << 40, math.MaxUint64}
	for range 2000 {
		ordinal, id := rng.Uint64N(1<<24), rng.Uint64()
		for _, id := range append(edge, id) {
			for _, permuted := range []bool{false, true} {
				if !permuted && id>>idBits != 0 {
					continue
				}
				if got, ok := unspaced(spaced(id, ordinal, permuted), ordinal, permuted); !ok || got != id {
					t.Fatalf("id %d of session %d, permuted %v, came back as %d", id, ordinal, permuted, got)
				}
			}
		}
	}
}

func TestCollisionsAreFound(t *testing.T) {
	var n namespaces
	n.place([][]uint64{{1, 2, 3}})
	_, permuted := n.place([][]uint64{{math.MaxUint64, unpermute(1<<idBits|2) ^ permute(2)}}) // made to meet id 2 of the first
	if !permuted || n.collisions() != 1 {
		t.Errorf("permuted %v, %d collisions, want 1", permuted, n.collisions())
	}
}

func TestPlainIDsReadAsOthers(t *testing.T) {
	for _, text := range []string{`[]`, `[ ]`, `[0]`, `[1,22, 333]`, `[ 1 ,2]`, `[18446744073709551615]`, `[1.0,1e3]`, "[1,\n2]", `[-1]`, `["1"]`, `[1.5]`, `{}`} {
		got, err := parseIDs([]byte(text))
		want, wantErr := jsonx.Row{"hash_ids": []byte(text)}.IDs("hash_ids")
		if !slices.Equal(got, want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %v, %v; want %v, %v", text, got, err, want, wantErr)
		}
	}
}

func BenchmarkParseIDs(b *testing.B) {
	text := []byte{'['}
	for i := range 2000 {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, "123456"...)
	}
	text = append(text, ']')
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseIDs(text); err != nil {
			b.Fatal(err)
		}
	}
}
