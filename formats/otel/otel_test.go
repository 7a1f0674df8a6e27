package otel_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/otel"
)

func imp() formats.Importer { return &otel.Importer{} }

func TestGolden(t *testing.T) {
	importtest.Golden(t, imp(), "otel", "otlp.jsonl")
	importtest.Golden(t, imp(), "otel", "flat.json")
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "otel", "otlp.jsonl", "flat.json") }

const good = `{"trace_id":"t","span_id":"a","start_time":"2026-02-25T10:00:00Z","end_time":"2026-02-25T10:00:01Z","attributes":{"gen_ai.operation.name":"chat","gen_ai.output.text":"x"}}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.jsonl", good, func(n int) string { return strings.Replace(good, `"x"`, `"`+strings.Repeat("x", n)+`"`, 1) })
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, otel.Detect, map[string]bool{
		good:                              true,
		`{"resourceSpans":[]}`:            true,
		`{"resourceSpans":{}}`:            false,
		`{"spans":[{"id":"x"}]}`:          false,
		`{"session_id":"s","spans":"[]"}`: true,
		`{"name":"x","context":{},"start_time":"","attributes":{}}`: true,
		`{"spans":[{"name":"x","span_id":"y"}],"trace_id":"t"}`:     true,
		`{"session_id":"s","input":"x","output":"y","timestamp":1}`: false,
	})
}

// A client's span and the server's below it are one call, wherever they stand.
func TestServerBelowClientIsOneCall(t *testing.T) {
	r := importtest.Load(t, imp(), importtest.Testdata+"/otel/otlp.jsonl")
	n := 0
	for _, row := range r.Rows {
		if row.SourceID.Value == "s1" {
			t.Errorf("the server's span is a row: %+v", row)
		}
		if row.SourceID.Value == "c1" {
			n++
			if row.RecordedTTFT.Value != 125e6 || row.RecordedE2E.Value != 2e9 || row.InputTokens.Value != 50 || row.Attributes["inner.gen_ai.latency.time_in_queue"] != "0.01" {
				t.Errorf("%+v", row)
			}
		}
	}
	if n != 1 || r.Meta.Counts.Merged["same call"] != 1 || r.Meta.Counts.Merged["wraps calls"] != 1 {
		t.Errorf("%d rows of the client, merged %v", n, r.Meta.Counts.Merged)
	}
}

func TestSessionColumn(t *testing.T) {
	path := importtest.Testdata + "/otel/flat.json"
	for column, want := range map[string]string{"": "s t t -", otel.SessionNone: "- - - -", otel.SessionTrace: "t t t u", "exgentic.session.id": "s - - -"} {
		r := importtest.Load(t, &otel.Importer{SessionColumn: column}, path)
		got := map[string]string{}
		for _, row := range r.Rows {
			got[row.SourceID.Value] = row.Session.Or("-")
		}
		if s := fmt.Sprintf("%s %s %s %s", got["a"], got["b"], got["c"], got["d"]); s != want {
			t.Errorf("%q: %s, want %s", column, s, want)
		}
	}
}

// An agent's span names the session of the calls within it.
func TestSessionOfSpanAround(t *testing.T) {
	agent := strings.NewReplacer(`"chat"`, `"invoke_agent"`, `"gen_ai.output.text":"x"`, `"gen_ai.conversation.id":"talk"`).Replace(good)
	call := strings.NewReplacer(`"a"`, `"b"`, `"attributes"`, `"parent_span_id":"a","attributes"`).Replace(good)
	if r := importtest.Text(t, imp(), "x.jsonl", agent+call); r.Rows[0].Session.Value != "talk" {
		t.Errorf("%+v", r.Rows[0])
	}
}

// Parents that go round end.
func TestCircles(t *testing.T) {
	var text strings.Builder
	for i := range 3 {
		text.WriteString(strings.NewReplacer(`"a"`, fmt.Sprintf(`"s%d"`, i), `"attributes"`, fmt.Sprintf(`"parent_span_id":"s%d","attributes"`, (i+1)%3)).Replace(good))
	}
	if r := importtest.Text(t, imp(), "x.jsonl", text.String()); len(r.Rows) == 0 {
		t.Errorf("rejected %v", r.Rejected)
	}
}

func TestPublishedFiles(t *testing.T) {
	for file, spans := range map[string]int{"multi_agent_research.json": 12, "parallel_requests.json": 5, "simple_chain.json": 3} {
		path := importtest.Shared(t, "otel", file)
		r := importtest.Load(t, imp(), path)
		sessions := map[string]bool{}
		for _, row := range r.Rows {
			sessions[row.Session.Value] = true
			if !row.Messages.Known || !row.OutputText.Known || !row.RecordedE2E.Known || !row.MaxOutputTokens.Known || row.Model.Value != "gpt-4" || row.OutputTokens.Known {
				t.Errorf("%s: %+v", file, row)
			}
		}
		if len(r.Rows) != spans || r.Meta.Counts.Read != int64(spans) || len(sessions) != 1 || len(r.Rejected) > 0 {
			t.Errorf("%s: %d rows, read %d, %d sessions, rejected %v", file, len(r.Rows), r.Meta.Counts.Read, len(sessions), r.Rejected)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var in struct {
			Spans []struct {
				Attributes struct {
					Messages string `json:"gen_ai.input.messages"`
				}
			}
		}
		if err := json.Unmarshal(data, &in); err != nil {
			t.Fatal(err)
		}
		for i, row := range r.Rows {
			var want, got any
			json.Unmarshal([]byte(in.Spans[row.SourceRow.Value-1+row.ID].Attributes.Messages), &want)
			json.Unmarshal([]byte(row.Messages.Value), &got)
			if fmt.Sprint(want) != fmt.Sprint(got) {
				t.Errorf("%s: messages of row %d differ", file, i)
			}
		}
	}
}
