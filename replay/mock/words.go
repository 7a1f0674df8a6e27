package mock

// vocabulary has what the mock says. All are plain ASCII words that JSON needs
// not escape.
var vocabulary = [64]string{
	"the", "of", "and", "to", "in", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not",
	"he", "his", "but", "at", "are", "this", "have", "from", "or", "had", "an", "they", "which", "one", "you", "were",
	"all", "her", "she", "there", "would", "their", "we", "him", "been", "has", "when", "who", "will", "no", "more", "if",
	"out", "so", "up", "said", "what", "its", "about", "than", "into", "them", "can", "only", "other", "time", "new", "some",
}

// A voice says words by seed: the same seed, the same text.
type voice struct {
	state uint64
	begun bool
}

// next returns the index of the next word.
func (v *voice) next() int {
	v.state += 0x9e3779b97f4a7c15
	return int((v.state * 0xbf58476d1ce4e5b9) >> 58)
}

// say appends n words with a blank before each, but for the very first.
func (v *voice) say(b []byte, n int) []byte {
	for range n {
		if v.begun {
			b = append(b, ' ')
		}
		v.begun = true
		b = append(b, vocabulary[v.next()]...)
	}
	return b
}
