package tokens

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestWordList(t *testing.T) {
	list := Words()
	if len(list) != 4096 {
		t.Errorf("%d words, want 4096", len(list))
	}
	if !slices.IsSorted(list) {
		t.Error("words are not in alphabetical order")
	}
	if n := len(slices.Compact(slices.Clone(list))); n != len(list) {
		t.Errorf("%d words occur twice", len(list)-n)
	}
	shape := regexp.MustCompile(`^[a-z]{3,14}$`)
	for _, w := range list {
		if !shape.MatchString(w) {
			t.Errorf("%q is not 3 to 14 lower-case ASCII letters", w)
		}
	}
	if slices.Contains(list, Opening) {
		t.Errorf("the opening word %q is in the list, so a block could begin like a prompt", Opening)
	}
	if want := strings.Join(list, "\n") + "\n"; wordList != want {
		t.Error("words.txt is not one word a line")
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0}, {" ", 0}, {"Here", 1}, {" river", 1}, {"Here river table", 3}, {" river table", 2},
		{"Here river\n", 2}, {"\n\nHere  river\ttable ", 3},
	} {
		if got := Count(c.text); got != c.want {
			t.Errorf("Count(%q) = %d, want %d", c.text, got, c.want)
		}
		if got := Count([]byte(c.text)); got != c.want {
			t.Errorf("Count([]byte(%q)) = %d, want %d", c.text, got, c.want)
		}
	}
}

func TestEntriesHoldTheList(t *testing.T) {
	for i, w := range Words() {
		var buf [len(entry{})]byte
		if got := string(buf[:put(buf[:], uint64(i))]); got != " "+w {
			t.Errorf("word %d is %q in text, %q in the list", i, got, w)
		}
	}
}
