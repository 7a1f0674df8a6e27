package trace_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"reprise/trace"
)

// A row written as JSON reads back equal, literal JSON to the byte.
func TestJSONReadsBackEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rows := []trace.Request{
		{Operation: "chat", After: []trace.Dependency{}, Blocks: []uint64{}, Media: []trace.Media{}, Attributes: map[string]string{}},
		{ID: -3, Operation: "chat", Messages: trace.Some(`[ {"role":"user", "content":"<&>"}]`), Body: trace.Some("{\n\"a\": 1.0}"), Extra: trace.Some(`{"b":"<"}`),
			Attributes: map[string]string{"text": `"<a>"`, "null": "null", "spaced": `[1, 2]`, "broken": `{`}, Blocks: []uint64{1<<64 - 1}},
	}
	for i := range 200 {
		rows = append(rows, randomRequest(r, int64(i)))
	}
	for _, want := range rows {
		text, err := trace.AppendJSON([]byte("before"), &want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := trace.ParseJSON(text[len("before"):])
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v\nwant %+v", text, got, want)
		}
	}
}

func TestParseJSONErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":1,"operation":"chat","colour":"red"}`:     `json: unknown field "colour"`,
		`{"operation":"chat"}`:                           "no id or no operation, which every canonical row has",
		`{"id":1}`:                                       "no id or no operation, which every canonical row has",
		`{"id":1,"operation":"chat","input_tokens":1.5}`: "input_tokens: a JSON number 1.5, which it cannot be",
		`{"id":1,"operation":"chat"} {}`:                 "more than one JSON value",
		`{"id":1,"operation":"chat",}`:                   "not valid JSON at byte 28: invalid character '}' looking for beginning of object key string",
		`[]`:                                             "a JSON array instead of an object",
	} {
		if _, err := trace.ParseJSON([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(`{"id":1,"operation":"chat","messages":"[ ]","after":[{"id":0,"kind":"turn"}],"attributes":{"a":[1]},"attribute_texts":{"b":"x"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := trace.ParseJSON(text)
		if err != nil {
			return
		}
		again, err := trace.AppendJSON(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := trace.ParseJSON(again); err != nil || !reflect.DeepEqual(back, r) {
			t.Errorf("%v\n got %+v\nwant %+v", err, back, r)
		}
	})
}
