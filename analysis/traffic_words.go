package analysis

import (
	"math"
	"strconv"
)

// numberText writes a number with four significant digits and without an
// exponent, whole numbers with all digits.
func numberText(v float64) string {
	size := math.Abs(v)
	switch {
	case v == math.Trunc(v) && size < 1<<53:
		return Grouped(int64(v))
	case size >= 1000:
		return Grouped(int64(math.Round(v)))
	}
	digits := 3 - int(math.Floor(math.Log10(size)))
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
