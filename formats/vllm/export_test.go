package vllm_test

import (
	"strings"
	"testing"

	"reprise/formats/importtest"
	"reprise/formats/vllm"
	"reprise/trace"
)

func TestExport(t *testing.T) {
	user := trace.Some(`[{"role":"user","content":"<hi>"}]`)
	var b strings.Builder
	lost, err := vllm.Exporter{}.Export(t.Context(), trace.Meta{}, importtest.Made(
		trace.Request{Prompt: trace.Some("a\nb"), OutputTokens: trace.Some[int64](3), InputTokens: trace.Some[int64](2)},
		trace.Request{Messages: user, MessagesMode: trace.Some(trace.MessagesFull)},
		trace.Request{Messages: user, MessagesMode: trace.Some(trace.MessagesDelta), Turn: trace.Some[int32](0)},
		trace.Request{Messages: user, MessagesMode: trace.Some(trace.MessagesDelta), Turn: trace.Some[int32](1)},
		trace.Request{Messages: user, Tools: trace.Some("[]")},
	), &b)
	want := "{\"prompt\":\"a\\nb\",\"output_tokens\":3}\n{\"prompt\":\"<hi>\"}\n{\"prompt\":\"<hi>\"}\n"
	if got := strings.Join(lost, "; "); err != nil || b.String() != want || got != "prompt token counts of 1 rows; whole row (no prompt that is one text) of 2 rows" {
		t.Errorf("%v\n%s\nlost %s", err, &b, got)
	}
	_, err = vllm.Exporter{}.Export(t.Context(), trace.Meta{}, importtest.Made(trace.Request{InputTokens: trace.Some[int64](3)}), &b)
	if err == nil || !strings.Contains(err.Error(), "none of 1 rows") || trace.Fix(err) == "" {
		t.Errorf("%v", err)
	}
}
