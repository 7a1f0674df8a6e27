package peers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/formats/importtest"
	"reprise/formats/peers"
	"reprise/trace"
)

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		d      time.Duration
		digits int
		want   string
	}{
		{0, 3, "0"}, {1, 3, "0.000001"}, {1500 * time.Microsecond, 3, "1.5"}, {2 * time.Second, 3, "2000"}, {2 * time.Second, 0, "2"},
		{1234567890123456789, 0, "1234567890.123456789"}, {-1500 * time.Microsecond, 3, "-1.5"}, {10 * time.Millisecond, 0, "0.01"},
	} {
		if got := peers.Decimal(c.d, c.digits); string(got) != c.want {
			t.Errorf("%v with %d digits: %s, want %s", c.d, c.digits, got, c.want)
		}
	}
}

func row(in int64, size int32, ids ...uint64) *trace.Request {
	return &trace.Request{InputTokens: trace.Some(in), Blocks: ids, BlockTokens: trace.Some(size)}
}

// An id stands for one length, and equal blocks keep equal ids.
func TestRenamer(t *testing.T) {
	var n peers.Renamer
	for i, c := range []struct {
		row  *trace.Request
		want string
	}{
		{row(20, 16, 1<<63, 7), "[0 1] true"},
		{row(20, 16, 1<<63, 7), "[0 1] true"},
		{row(32, 16, 1<<63, 7), "[0 2] true"}, // 7 is a whole block now
		{row(40, 16, 1<<63, 7), "[0 2] true"}, // the tail has no id
		{row(40, 32, 1, 2), "[] false"},       // another size
		{row(16, 16, 1, 2), "[] false"},       // no room
		{row(16, 16), "[] false"},
	} {
		ids, ok := n.Row(c.row, c.row.InputTokens.Value)
		if got := fmt.Sprint(ids, ok); got != c.want {
			t.Errorf("row %d: %s, want %s", i, got, c.want)
		}
	}
	if n.Split != 1 || n.Size != 16 || n.Fresh() != 3 {
		t.Errorf("%+v", n)
	}
}

func TestLosses(t *testing.T) {
	l := peers.Losses{}
	r := &trace.Request{Model: trace.Some("m"), Session: trace.Some("s"), Status: trace.Some(trace.StatusOK), Blocks: []uint64{}}
	l.Row(r, peers.Sessions)
	l.Row(r)
	if got := strings.Join(l.List(), "; "); got != "model of 2 rows; sessions and turns of 1 rows" {
		t.Error(got)
	}
}

func TestUserText(t *testing.T) {
	for messages, want := range map[string]string{
		`[{"role":"user","content":"a\nb"}]`:                              "a\nb",
		`[{"role":"user","content":[{"type":"text","text":"a"}]}]`:        "",
		`[{"role":"system","content":"s"},{"role":"user","content":"a"}]`: "",
		`[{"role":"assistant","content":"s"}]`:                            "",
		`not JSON`:                                                        "",
	} {
		got, ok := peers.UserText(&trace.Request{Messages: trace.Some(messages)})
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", messages, got, ok)
		}
	}
}

func TestLines(t *testing.T) {
	var b strings.Builder
	n, err := peers.Lines(t.Context(), importtest.Made(trace.Request{}, trace.Request{}, trace.Request{}), &b, func(r *trace.Request) any {
		if r.ID == 1 {
			return nil
		}
		return map[string]any{"id": r.ID, "text": json.RawMessage(`"<&>"`)}
	})
	if want := "{\"id\":0,\"text\":\"<&>\"}\n{\"id\":2,\"text\":\"<&>\"}\n"; err != nil || n != 2 || b.String() != want {
		t.Errorf("%d, %v, %q", n, err, &b)
	}
}
