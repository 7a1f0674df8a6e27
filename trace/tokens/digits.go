package tokens

// idWords is the number of words that carry a 64-bit id: six hold 72 bits.
const idWords = (64 + wordBits - 1) / wordBits

// digits writes id as idWords word numbers, by a bijection under key.
//
// Digit i is the i-th 12 bits of id, lowest first, masked with a hash of all
// higher bits of id and of the digits before it. It can be undone from the last
// digit to the first, so unequal ids have unequal digits. Ids that are equal above
// their low 12k bits have equal masks until they first differ, so they differ within k
// digits: ids that count up are told apart early, and the hash tells apart those
// that differ only in their high bits, as ids with a session in them do.
func digits(key, id uint64) (d [idWords]uint16) {
	var before uint64
	for i := range d {
		low, above := id&wordMask, id>>wordBits
		d[i] = uint16(low ^ mask(key, i, above, before))
		before = before<<wordBits | uint64(d[i])
		id = above
	}
	return d
}

// mask hides digit i, given the bits of the id above it and the digits before
// it, the last lowest.
func mask(key uint64, i int, above, before uint64) uint64 {
	return mix(mix(above^key)+before+uint64(i)*golden) & wordMask
}

// appendDigits appends the first n words that carry an id.
func appendDigits(dst []byte, d [idWords]uint16, n int) []byte {
	if n <= 0 {
		return dst
	}
	dst = grow(dst, n, n)
	pos, buf := len(dst), dst[:cap(dst)]
	for _, word := range d[:n] {
		pos += put(buf[pos:], uint64(word))
	}
	return buf[:pos]
}
