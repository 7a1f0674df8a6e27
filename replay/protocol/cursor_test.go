package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzCursor holds the cursor against encoding/json: both accept the same
// texts, and read the same string and the same number of elements from them.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e3,true,false,null,{"b":"c"}],"d":""}`, `"\u00e9\ud83d\ude00\ud800x\n\/"`, `[]`, `[,]`, `[1,]`, `{"a":1,}`, `{,}`, `{"a"}`,
		`01`, `-`, `1.`, `1e`, `1e+5`, ` 7.0 `, `nul`, `"\x"`, "\"\x01\"", "\"\xE4\xBD\"", `{"a":1}{`, ``, `[[[[1]]]`, `{"\u0061":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := cursor{b: text}
		c.skip()
		if valid := json.Valid(text); c.ended() != valid {
			t.Fatalf("%q: accepted %v, encoding/json %v", text, c.ended(), valid)
		}
		var s string
		c = cursor{b: text}
		if raw, ok := c.str(); ok && c.ended() && json.Unmarshal(text, &s) == nil {
			if got := strings.ToValidUTF8(string(appendUnescaped(nil, raw)), "\uFFFD"); got != strings.ToValidUTF8(s, "\uFFFD") && !strings.Contains(s, "\uFFFD") {
				t.Fatalf("%q: read %q, encoding/json %q", text, got, s)
			}
		}
		var list []json.RawMessage
		c = cursor{b: text}
		if n := c.length(); n.Known && c.ended() && json.Unmarshal(text, &list) == nil && int(n.Value) != len(list) {
			t.Fatalf("%q: %d elements, encoding/json %d", text, n.Value, len(list))
		}
		var object map[string]json.RawMessage
		c = cursor{b: text}
		keys := map[string]bool{}
		if c.object() {
			for key, ok := c.key(); ok; key, ok = c.key() {
				keys[strings.ToValidUTF8(string(key), "\uFFFD")] = true
				c.skip()
			}
			if c.ended() && json.Unmarshal(text, &object) == nil && len(keys) != len(object) && !strings.Contains(string(text), "\\u") {
				for k := range object {
					if !keys[k] && !strings.Contains(k, "\uFFFD") {
						t.Fatalf("%q: key %q was not seen", text, k)
					}
				}
			}
		}
	})
}

func TestCursorIntegers(t *testing.T) {
	for text, want := range map[string]int64{"7": 7, "7.0": 7, "7e0": 7, "-3": -3, "1234567890123456": 1234567890123456, "0": 0} {
		c := cursor{b: []byte(text)}
		if n := c.integer(); !n.Known || n.Value != want || !c.ended() {
			t.Errorf("%s: %+v", text, n)
		}
	}
	for _, text := range []string{"null", `"7"`, "7.5", "1e300", "[]", "{}", "true"} {
		c := cursor{b: []byte(text)}
		if n := c.integer(); n.Known || !c.ended() {
			t.Errorf("%s: %+v", text, n)
		}
	}
}

func TestEscapeText(t *testing.T) {
	for _, text := range []string{"", "plain", "\"quoted\" \\ \n\t\x00\x1f <&>", "\u4f60\U0001F600\u2028"} {
		raw := EscapeText(nil, text)
		var back string
		if err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &back); err != nil || back != text {
			t.Errorf("%q became %q: %v", text, raw, err)
		}
		if got := string(appendUnescaped(nil, raw)); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	}
	if got := string(EscapeText(nil, "a\xE4\xBD")); got != "a\uFFFD\uFFFD" {
		t.Errorf("bytes that are not UTF-8: %q", got)
	}
}
