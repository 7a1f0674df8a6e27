package aiperf_test

import (
	"strings"
	"testing"
	"time"

	"reprise/formats/aiperf"
	"reprise/formats/importtest"
	"reprise/trace"
)

func exported(t *testing.T, clock string, rows ...trace.Request) (lines []string, lost string, advice string) {
	t.Helper()
	e := &aiperf.Exporter{}
	var b strings.Builder
	losses, err := e.Export(t.Context(), trace.Meta{Clock: clock}, importtest.Made(rows...), &b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), strings.Join(losses, "; "), strings.Join(e.Advice(), "; ")
}

func hold(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func at(ms float64) trace.Optional[time.Duration] {
	return trace.Some(time.Duration(ms * float64(time.Millisecond)))
}

func TestExportBlocks(t *testing.T) {
	some := trace.Some[int64]
	lines, lost, advice := exported(t, trace.ClockTrace,
		trace.Request{Arrival: at(0), Session: trace.Some("a"), InputTokens: some(40), OutputTokens: some(5), Blocks: []uint64{1 << 63, 9, 4}, BlockTokens: trace.Some[int32](16)},
		trace.Request{Arrival: at(0.5), InputTokens: some(48), OutputTokens: some(0), Blocks: []uint64{1 << 63, 9, 4}, BlockTokens: trace.Some[int32](16)},
		trace.Request{Arrival: at(1), InputTokens: some(0), OutputTokens: some(1)},
	)
	hold(t, "rows", lines,
		`{"timestamp":0,"input_length":40,"output_length":5,"hash_ids":[0,1,2]}`,
		`{"timestamp":0.5,"input_length":48,"hash_ids":[0,1,3]}`,
		`{"timestamp":1,"input_length":1,"output_length":1}`)
	if want := "answers of 0 tokens (written without a limit) of 1 rows; prefix shared with a short last block (given an id of its own) of 1 rows; prompts of 0 tokens (written as 1) of 1 rows; sessions and turns of 1 rows"; lost != want {
		t.Errorf("lost: %s", lost)
	}
	if !strings.HasSuffix(advice, "--custom-dataset-type mooncake_trace --fixed-schedule --isl-block-size 16") {
		t.Error(advice)
	}
}

// Rows of a session without blocks say what is new.
func TestExportTurns(t *testing.T) {
	some := trace.Some[int64]
	turn := func(ms float64, in, out int64) trace.Request {
		return trace.Request{Arrival: at(ms), Session: trace.Some("a"), InputTokens: some(in), OutputTokens: some(out), Delay: at(ms / 2)}
	}
	lines, lost, _ := exported(t, trace.ClockTrace, turn(0, 10, 5), turn(10, 25, 5), turn(20, 12, 5), turn(30, 30, 1))
	hold(t, "turns", lines,
		`{"session_id":"a","timestamp":0,"delay":0,"input_length":10,"output_length":5}`,
		`{"session_id":"a","timestamp":10,"delay":5,"input_length":10,"output_length":5}`,
		`{"timestamp":20,"input_length":12,"output_length":5}`, // less than before: it stands alone
		`{"session_id":"a","timestamp":30,"delay":15,"input_length":13,"output_length":1}`)
	if lost != "delays of 1 rows; sessions and turns of 1 rows" {
		t.Errorf("lost: %s", lost)
	}
}

// Messages that hold only what is new get those before; kinds are kept apart.
func TestExportContent(t *testing.T) {
	message := func(turn int32, mode, text string) trace.Request {
		return trace.Request{Session: trace.Some("a"), Turn: trace.Some(turn), MessagesMode: trace.Some(mode), Messages: trace.Some(text)}
	}
	body := trace.Request{Session: trace.Some("a"), Turn: trace.Some[int32](3), Body: trace.Some(`{"model":"m"}`), Extra: trace.Some(`{"x":1}`)}
	lines, lost, advice := exported(t, trace.ClockNone,
		message(0, trace.MessagesDelta, `[{"role":"user","content":"<1>"}]`),
		message(1, trace.MessagesDelta, `[ {"role":"assistant","content":"2"},{"role":"user","content":"3"}]`),
		message(3, trace.MessagesDelta, `[{"role":"user","content":"lost"}]`),
		body,
		trace.Request{Prompt: trace.Some("text"), InputTokens: trace.Some[int64](1), MaxOutputTokens: trace.Some[int64](7)},
		trace.Request{},
	)
	hold(t, "content", lines,
		`{"session_id":"a","messages":[{"role":"user","content":"<1>"}]}`,
		`{"session_id":"a","messages":[{"role":"user","content":"<1>"},{"role":"assistant","content":"2"},{"role":"user","content":"3"}]}`,
		`{"session_id":"a/payload","payload":{"model":"m"},"extra":{"x":1}}`,
		`{"text_input":"text","output_length":7}`)
	if lost != "token counts of literal content of 1 rows; whole row (neither content nor a count of prompt tokens) of 2 rows" {
		t.Errorf("lost: %s", lost)
	}
	if strings.Contains(advice, "block-size") {
		t.Error(advice)
	}
}
