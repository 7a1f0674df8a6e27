package trace

import (
	"fmt"
	"strings"
)

// Plural writes a count with what it counts, a noun in the singular: "1 run", "0 runs",
// "2 properties".
func Plural[N int | int64](n N, noun string) string { return fmt.Sprintf("%d %s", n, Nouns(n, noun)) }

// Nouns is a noun as it stands after a count.
func Nouns[N int | int64](n N, noun string) string {
	stem, isY := strings.CutSuffix(noun, "y")
	switch {
	case n == 1:
		return noun
	case isY && !strings.HasSuffix(stem, "a") && !strings.HasSuffix(stem, "e") && !strings.HasSuffix(stem, "o"):
		return stem + "ies"
	}
	return noun + "s"
}
