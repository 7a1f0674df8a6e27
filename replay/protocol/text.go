package protocol

import (
	"bytes"
	"unicode/utf8"
)

// appendUnescaped appends the text of a string's raw bytes, as checked by str.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i:]
		switch raw[1] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			var n int
			dst, n = appendUnicode(dst, raw)
			raw = raw[n:]
			continue
		default:
			dst = append(dst, raw[1])
		}
		raw = raw[2:]
	}
}

// appendUnicode appends the character of a \u escape, or of a pair of them, and
// returns the bytes read. Half a pair becomes U+FFFD.
func appendUnicode(dst, raw []byte) ([]byte, int) {
	r := hex4(raw[2:6])
	if r >= 0xD800 && r < 0xDC00 && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if low := hex4(raw[8:12]); low >= 0xDC00 && low < 0xE000 {
			return utf8.AppendRune(dst, 0x10000+(r-0xD800)<<10+(low-0xDC00)), 12
		}
	}
	return utf8.AppendRune(dst, r), 6 // AppendRune writes U+FFFD for a surrogate
}

func hex4(b []byte) (r rune) {
	for _, h := range b {
		r <<= 4
		switch {
		case h <= '9':
			r += rune(h - '0')
		case h <= 'F':
			r += rune(h-'A') + 10
		default:
			r += rune(h-'a') + 10
		}
	}
	return r
}

// EscapeText appends text as it stands between the quotes of a JSON string, the
// form of [Request.Prompt]. Bytes that are not UTF-8 become U+FFFD.
func EscapeText(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	for i := 0; i < len(text); {
		b := text[i]
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, '\\', 'n')
		case b < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		case b < utf8.RuneSelf:
			dst = append(dst, b)
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
	}
	return dst
}
