package replay

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

// conversationRows are two turns in deltas; the second begins with the recorded
// answer to the first.
func conversationRows() func() rowReader {
	first, second := at(0, 0, 3), at(0, 0, 3)
	for _, r := range []*trace.Request{&first, &second} {
		r.InputTokens, r.Session, r.MessagesMode = trace.Optional[int64]{}, trace.Some("s"), trace.Some(trace.MessagesDelta)
	}
	first.Messages = trace.Some(`[{"role":"user","content":"one"}]`)
	second.Messages = trace.Some(`[{"role":"assistant","content":"recorded"},{"role":"user","content":"two"}]`)
	second.After, second.Delay = []trace.Dependency{{ID: 0, Kind: trace.AfterTurn}}, trace.Some(time.Duration(0))
	return traceOf(trace.ClockTrace, first, second)
}

func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		history History
		want    string
	}{"recorded": {HistoryRecorded, "recorded"}, "live": {HistoryLive, "said \"now\""}} {
		var seen [][]string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			var body struct {
				Messages []struct{ Content string } `json:"messages"`
			}
			if err := json.Unmarshal(text, &body); err != nil {
				t.Errorf("%s: %v in %s", name, err, text)
			}
			var contents []string
			for _, m := range body.Messages {
				contents = append(contents, m.Content)
			}
			seen = append(seen, contents)
			io.WriteString(w, strings.Join([]string{
				`data: {"choices":[{"index":0,"delta":{"content":"said "}}]}`,
				`data: {"choices":[{"index":0,"delta":{"content":"\"now\""},"finish_reason":"stop"}]}`, `data: [DONE]`, ""}, "\n\n"))
		}))
		_, err := Run(t.Context(), Config{source: conversationRows(), sink: &memory{}, Dir: t.TempDir(), URLs: []string{server.URL}, Model: "m", NoProbe: true, Pace: PaceCausal, History: c.history})
		server.Close()
		if err != nil {
			t.Fatal(err)
		}
		if want := [][]string{{"one"}, {"one", c.want, "two"}}; !reflect.DeepEqual(seen, want) {
			t.Errorf("%s: the server saw %q, want %q", name, seen, want)
		}
	}
	config := Config{source: conversationRows(), URLs: []string{"http://x"}, History: HistoryLive}
	if err := config.Check(); err == nil || trace.Fix(err) == "" {
		t.Errorf("live history in an open loop: %v", err)
	}
}

func TestALiveAnswerLeavesToolCallsAlone(t *testing.T) {
	c := &conversation{answer: []byte(`{"role":"assistant","content":"live"}`)}
	delta := []byte(`[{"role":"assistant","content":null,"tool_calls":[{"id":"t1"}]},{"role":"tool","tool_call_id":"t1","content":"5"}]`)
	got, err := c.withAnswer(delta)
	if err != nil || string(got) != string(delta) {
		t.Errorf("%s, %v", got, err)
	}
}
