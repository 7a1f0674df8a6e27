package analysis

import (
	"math"
	"strconv"
)

// numberText writes a number with four significant digits and without an
// exponent, whole numbers with all digits.
func numberText(v float64) string { return significantText(v, 4) }

// shortText is numberText with three digits.
func shortText(v float64) string { return significantText(v, 3) }

func significantText(v float64, n int) string {
	size := math.Abs(v)
	switch {
	case v == math.Trunc(v) && size < 1<<53:
		return Grouped(int64(v))
	case size >= 100 && size >= math.Pow10(n-1):
		return Grouped(int64(math.Round(v)))
	}
	digits := n - 1 - int(math.Floor(math.Log10(size)))
	return trimmed(strconv.FormatFloat(v, 'f', min(digits, 12), 64))
}

// trimmed drops zeros after the point.
func trimmed(text string) string {
	for len(text) > 1 && text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return text
}

// optionalText writes a number that may be missing.
func optionalText(v *float64) string {
	if v == nil {
		return "n/a"
	}
	return numberText(*v)
}
