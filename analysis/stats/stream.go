package stats

import (
	"math/bits"
	"math/rand/v2"
)

// Random streams here are counter-based: a stream is a pure function of the
// seed and of keys such as (copy, session, purpose), so adding a copy never
// changes the numbers of another, and neither order nor the number of workers
// matters.

// Hash returns 64 well-mixed bits of seed and keys, in order: MurmurHash3's
// finalizer in the variant of Stafford (mix 13), once per key, as SplitMix64
// does it.
func Hash(seed uint64, keys ...uint64) uint64 {
	h := mix(seed + weyl)
	for _, k := range keys {
		h = mix(bits.RotateLeft64(h, 25) ^ mix(k+weyl))
	}
	return mix(h + uint64(len(keys))*weyl)
}

const weyl = 0x9e3779b97f4a7c15 // 2^64 over the weyl ratio

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Draw returns one number of the open interval (0, 1) for seed and keys.
func Draw(seed uint64, keys ...uint64) float64 {
	return (float64(Hash(seed, keys...)>>12) + 0.5) / (1 << 52)
}

// Stream returns the random stream of seed and keys.
func Stream(seed uint64, keys ...uint64) *rand.Rand {
	s := new(Source)
	s.Reset(seed, keys...)
	return rand.New(s)
}

// A Source is the source of a stream. One that is Reset for each of many short
// streams, below one *rand.Rand, allocates nothing. The zero value is the
// stream of no use: Reset it first.
type Source struct{ pcg rand.PCG }

// Reset starts the stream of seed and keys.
func (s *Source) Reset(seed uint64, keys ...uint64) {
	h := Hash(seed, keys...)
	s.pcg.Seed(h, mix(h+weyl))
}

// Uint64 returns the next 64 bits.
func (s *Source) Uint64() uint64 { return s.pcg.Uint64() }
