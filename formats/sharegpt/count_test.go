package sharegpt_test

import (
	"fmt"
	"strings"
	"testing"

	"reprise/formats/importtest"
	"reprise/formats/sharegpt"
)

// TestCount counts words: input is all texts so far, new input the turn's own,
// output the recorded answer. Attachments and tool calls are not guessed.
func TestCount(t *testing.T) {
	words := func(s string) int { return len(strings.Fields(s)) }
	for _, c := range []struct{ name, text, want string }{
		{"turns", `[{"conversations": [
			{"from": "system", "value": "be brief"},
			{"from": "human", "value": "one two three"}, {"from": "gpt", "value": "four five"},
			{"from": "human", "value": "six"}, {"from": "gpt", "value": "seven eight nine"}]}]`, "5/5/2 8/1/3"},
		{"starts with an answer", `[{"conversations": [
			{"from": "gpt", "value": "a b"}, {"from": "human", "value": "c"}, {"from": "gpt", "value": "d"}]}]`, "3/3/1"},
		{"no answer", `[{"conversations": [{"from": "human", "value": "a b"}]}]`, "2/2/-"},
		{"tool call", `[{"tools": "[]", "conversations": [
			{"from": "human", "value": "a b"}, {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {}}"},
			{"from": "observation", "value": "c"}, {"from": "gpt", "value": "d e"}]}]`, "2/2/- 7/1/2"},
		{"image", `[{"images": ["x.png"], "conversations": [{"from": "human", "value": "<image> a"}, {"from": "gpt", "value": "b"}]}]`, "-/-/1"},
	} {
		in := importtest.Text(t, &sharegpt.Importer{Count: words, Counter: "words"}, "x.json", c.text)
		var got []string
		show := func(v int64, known bool) string {
			if !known {
				return "-"
			}
			return fmt.Sprint(v)
		}
		for _, r := range in.Rows {
			got = append(got, show(r.InputTokens.Get())+"/"+show(r.NewInputTokens.Get())+"/"+show(r.OutputTokens.Get()))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: %s, want %s", c.name, g, c.want)
		}
		if len(in.Meta.Guesses) != 1 || in.Meta.Guesses[0].Evidence != "counted by words" {
			t.Errorf("%s: guesses %+v", c.name, in.Meta.Guesses)
		}
	}
}
