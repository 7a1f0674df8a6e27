package sessions_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/formats/sessions"
	"reprise/trace"
)

// rows are written as session:start-end, in seconds; end "?" is unknown.
func chained(parallel bool, rows ...string) string {
	c := sessions.Chain{}
	c.Reset(parallel)
	b := trace.NewBatch()
	for i, text := range rows {
		r := trace.Request{ID: int64(i), Operation: "chat"}
		session, times, _ := strings.Cut(text, ":")
		if session != "" {
			r.Session = trace.Some(session)
		}
		start, end, _ := strings.Cut(times, "-")
		at, err := time.ParseDuration(start + "s")
		if err == nil {
			r.Arrival = trace.Some(at)
		}
		if to, err := time.ParseDuration(end + "s"); err == nil {
			r.RecordedE2E = trace.Some(to - at)
		}
		b.Append(&r)
	}
	c.Sequence(b)
	var out []string
	for i := range b.Len() {
		r := b.Row(i)
		text := "-"
		if r.Turn.Known {
			text = fmt.Sprint(r.Turn.Value)
		}
		for _, d := range r.After {
			text += fmt.Sprintf(" after %d", d.ID)
		}
		if r.Delay.Known {
			text += fmt.Sprintf(" +%v", r.Delay.Value)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestChain(t *testing.T) {
	for _, c := range []struct {
		name     string
		parallel bool
		rows     []string
		want     string
	}{
		{"turns in order", false, []string{"a:0-2", "b:1-2", "a:5-6", ":6-7", "a:7-9"}, "0, 0, 1 after 0 +3s, -, 2 after 2 +1s"},
		{"a turn before the end", false, []string{"a:0-9", "a:5-6"}, "0, 1 after 0 +0s"},
		{"ends unknown", false, []string{"a:0-?", "a:5-6"}, "0, 1 after 0"},
		{"no times", false, []string{"a:?-?", "a:?-?"}, "0, 1 after 0"},
		{"side by side", true, []string{"a:0-2", "a:3-9", "a:4-6", "a:7-8", "a:10-11"}, "0, 1 after 0 +1s, 2 after 0 +2s, 3 after 2 +1s, 4 after 1 +1s"},
		{"none has ended", true, []string{"a:0-9", "a:1-8"}, "0, 1"},
		{"side by side, ends unknown", true, []string{"a:0-?", "a:1-8", "a:9-?"}, "0, 1 after 0, 2 after 1 +1s"},
	} {
		if got := chained(c.parallel, c.rows...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
