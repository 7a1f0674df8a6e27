package jsonx_test

import (
	"fmt"
	"testing"

	"reprise/formats/jsonx"
)

func TestInt(t *testing.T) {
	for text, want := range map[string]int64{"5": 5, "-5": -5, "6758.0": 6758, "1e3": 1000, "9007199254740993": 9007199254740993} {
		if got, err := jsonx.Int([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"1.5", "NaN", `"5"`, "1e400", "", "true"} {
		if got, err := jsonx.Int([]byte(text)); err == nil {
			t.Errorf("%s was read as %d", text, got)
		}
	}
}

func TestIDsKeep64Bits(t *testing.T) {
	row, err := jsonx.Parse([]byte(`{"ids":[0,4294967297,18446744073709551615,7.0],"none":null,"empty":[],"bad":[-1],"text":["1x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	ids, err := row.IDs("ids")
	if err != nil || fmt.Sprint(ids) != "[0 4294967297 18446744073709551615 7]" {
		t.Errorf("%v, %v", ids, err)
	}
	if ids, err := row.IDs("none"); ids != nil || err != nil {
		t.Errorf("null: %v, %v", ids, err)
	}
	if ids, err := row.IDs("empty"); ids == nil || len(ids) != 0 || err != nil {
		t.Errorf("empty: %v, %v", ids, err)
	}
	for _, field := range []string{"bad", "text"} {
		if ids, err := row.IDs(field); err == nil {
			t.Errorf("%s: %v", field, ids)
		}
	}
}

func TestWhatNobodyTakesIsLeft(t *testing.T) {
	row, err := jsonx.Parse([]byte(`{"b": [1, {"x": "é"}], "a": 5, "taken": "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := row.String("other", "taken"); err != nil || s.Value != "x" {
		t.Errorf("%v, %v", s, err)
	}
	if got := row.Attributes(); len(got) != 2 || got["b"] != `[1,{"x":"é"}]` || got["a"] != "5" {
		t.Errorf("left: %v", got)
	}
	for _, text := range []string{"", "null", "[1]", `{"a":`, `{"a":NaN}`} {
		if _, err := jsonx.Parse([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
