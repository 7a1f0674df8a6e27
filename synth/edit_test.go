package synth

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

func cut(t testing.TB, m *made, c Cutting) (*made, Cut) {
	t.Helper()
	var done Cut
	out := collect(t, func(emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		meta, done, err = c.Run(t.Context(), m.open, emit)
		return meta, err
	})
	return out, done
}

// TestCut takes parts in every way; what is left is what it was, from 0 on, and
// depends on nothing that is gone.
func TestCut(t *testing.T) {
	m := chats(t, 200, true)
	whole := map[int64]trace.Request{}
	for _, r := range m.rows {
		whole[r.ID] = r
	}
	for name, c := range map[string]struct {
		cut  Cutting
		rows int
	}{
		"nothing":        {Cutting{}, 600},
		"window":         {Cutting{From: 50 * time.Second, To: 100 * time.Second}, 150},
		"first rows":     {Cutting{Limit: 7}, 7},
		"model":          {Cutting{Models: []string{"b"}}, 150},
		"input":          {Cutting{Input: Range{150, 250}}, 200},
		"whole sessions": {Cutting{Input: Range{0, 299}, Whole: true}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			if c.rows < 0 { // each session has a prompt of 300
				if _, _, err := c.cut.Run(t.Context(), m.open, func(*trace.Batch) error { return nil }); err == nil || err.Error() != "no row is left: 600 of sessions that go whole" {
					t.Errorf("error %v", err)
				}
				return
			}
			out, done := cut(t, m, c.cut)
			if len(out.rows) != c.rows || done.Kept != int64(c.rows) || done.Read != 600 {
				t.Fatalf("%d rows, want %d: %+v", len(out.rows), c.rows, done)
			}
			for _, r := range out.rows {
				was := whole[r.ID]
				if at := r.Arrival.Value + time.Duration(out.meta.OriginNS.Or(0)); at != was.Arrival.Value || r.Session != was.Session || r.InputTokens != was.InputTokens {
					t.Fatalf("row %+v was %+v", r, was)
				}
			}
			if name == "nothing" && !bytes.Equal(out.data, m.data) {
				t.Error("nothing was cut, but the file differs")
			}
		})
	}
	small, _ := cut(t, m, Cutting{Share: 0.2, Seed: 3})
	large, _ := cut(t, m, Cutting{Share: 0.6, Seed: 3})
	has := map[int64]bool{}
	sessions := map[string]int{}
	for _, r := range large.rows {
		has[r.ID] = true
		sessions[r.Session.Value]++
	}
	for _, r := range small.rows {
		if !has[r.ID] {
			t.Fatalf("a larger share lacks id %d", r.ID)
		}
	}
	for id, n := range sessions {
		if n != 3 {
			t.Errorf("session %s has %d rows", id, n)
		}
	}
	if share := float64(len(large.rows)) / 600; math.Abs(share-0.6) > 0.12 {
		t.Errorf("share %v", share)
	}
}

// TestGapCap cuts long waits out of sessions, and only those.
func TestGapCap(t *testing.T) {
	m := chats(t, 50, false)
	out, done := cut(t, m, Cutting{GapCap: 500 * time.Millisecond})
	last := map[string]time.Duration{}
	for _, r := range out.rows {
		if at, ok := last[r.Session.Value]; ok && r.Arrival.Value-at != 500*time.Millisecond {
			t.Fatalf("a gap of %v in %s", r.Arrival.Value-at, r.Session.Value)
		}
		last[r.Session.Value] = r.Arrival.Value
		if r.Delay.Value > 500*time.Millisecond {
			t.Errorf("delay %v", r.Delay.Value)
		}
	}
	if done.GapsCut != 100 || math.Abs(done.GapsCutS-20) > 1e-6 {
		t.Errorf("%+v", done)
	}
}

// TestMerge puts two traces on one clock: all rows, in order, with ids, names and
// blocks apart unless they are said to be common.
func TestMerge(t *testing.T) {
	a, b := chats(t, 20, true), chats(t, 30, true)
	run := func(m Merging) (*made, Merge) {
		var done Merge
		out := collect(t, func(emit func(*trace.Batch) error) (meta trace.Meta, err error) {
			meta, done, err = m.Run(t.Context(), []MergeInput{{"a", a.open}, {"b", b.open}}, emit)
			return meta, err
		})
		return out, done
	}
	count := func(m *made) (sessions, clients, blocks int) {
		s, c, k := map[string]bool{}, map[string]bool{}, map[uint64]bool{}
		for _, r := range m.rows {
			s[r.Session.Value], c[r.ClientID.Value] = true, true
			for _, id := range r.Blocks {
				k[id] = true
			}
		}
		return len(s), len(c), len(k)
	}
	out, done := run(Merging{})
	if len(out.rows) != 150 || done.Rows[0] != 60 || done.Rows[1] != 90 || done.First != 1 {
		t.Errorf("%d rows, %+v", len(out.rows), done)
	}
	_, _, blocksA := count(a)
	_, _, blocksB := count(b)
	if s, c, k := count(out); s != 50 || c != 10 || k != blocksA+blocksB {
		t.Errorf("%d sessions, %d clients, %d blocks", s, c, k)
	}
	common, done := run(Merging{Sessions: true, Clients: true, Blocks: true})
	if s, c, k := count(common); s != 30 || c != 5 || k != blocksB || done.First != 0 {
		t.Errorf("common: %d sessions, %d clients, %d blocks", s, c, k)
	}
	dated := func(m *made, epoch int64) *made {
		meta := m.meta
		meta.EpochNS = trace.Some(epoch)
		return write(t, meta, m.rows)
	}
	a, b = dated(a, 5e18), dated(b, 5e18+7e9)
	out, done = run(Merging{})
	if done.Align != AlignEpoch || done.Shift[1] != 7e9 || out.meta.EpochNS.Value != 5e18 {
		t.Errorf("%+v, epoch %v", done, out.meta.EpochNS)
	}
	if _, _, err := (Merging{}).Run(t.Context(), []MergeInput{{"a", a.open}}, nil); err == nil {
		t.Error("one trace alone is merged")
	}
	none := write(t, trace.Meta{Clock: trace.ClockNone}, []trace.Request{{Operation: trace.OpChat}})
	if _, _, err := (Merging{}).Run(t.Context(), []MergeInput{{"a", a.open}, {"n", none.open}}, nil); err == nil || !strings.Contains(err.Error(), `a has clock "trace", n has "none"`) {
		t.Errorf("error %v", err)
	}
}

// TestAnonymize leaves no name and no text, and keeps which rows belong together.
func TestAnonymize(t *testing.T) {
	rows := chats(t, 30, true).rows
	for i := range rows {
		rows[i].Prompt, rows[i].SourceFile, rows[i].SourceRow = trace.Some("my secret prompt"), trace.Some("acme-prod.jsonl"), trace.Some(int64(i))
		rows[i].Attributes = map[string]string{"note": `"acme"`}
		rows[i].Session = trace.Some("acme-" + rows[i].Session.Value)
	}
	m := write(t, trace.Meta{Clock: trace.ClockTrace, EpochNS: trace.Some(int64(5e18)), History: []trace.Step{{Command: "trace import", Inputs: []trace.Input{{Name: "acme.jsonl"}}}}}, rows)
	var done Anonymized
	run := func(key string, jitter time.Duration) *made {
		a := Anonymizing{Key: []byte(key), Jitter: jitter}
		return collect(t, func(emit func(*trace.Batch) error) (meta trace.Meta, err error) {
			meta, done, err = a.Run(t.Context(), m.open, emit)
			return meta, err
		})
	}
	const key = "0123456789abcdef0123"
	out := run(key, 0)
	for _, word := range []string{"acme", "secret", "s12", "c3"} {
		if bytes.Contains(out.data, []byte(word)) && word != "c3" && word != "s12" {
			t.Errorf("the file holds %q", word)
		}
	}
	sessions, blocks := map[string]string{}, map[uint64]uint64{}
	for i, r := range out.rows {
		was := rows[i]
		if r.Prompt.Known || r.SourceFile.Known || r.Attributes != nil || r.InputTokens != was.InputTokens || r.Arrival != was.Arrival {
			t.Fatalf("row %+v", r)
		}
		if s, ok := sessions[was.Session.Value]; ok && s != r.Session.Value {
			t.Fatalf("session %s has two names", was.Session.Value)
		}
		sessions[was.Session.Value] = r.Session.Value
		for k, id := range r.Blocks {
			if b, ok := blocks[was.Blocks[k]]; ok && b != id || id == was.Blocks[k] {
				t.Fatalf("block %d became %d and %d", was.Blocks[k], b, id)
			}
			blocks[was.Blocks[k]] = id
		}
	}
	if out.meta.EpochNS.Known || len(out.meta.History) != 1 || out.meta.History[0].Inputs != nil {
		t.Errorf("meta %+v", out.meta)
	}
	if len(done.Leaks) == 0 || done.Removed["content"] != 90 {
		t.Errorf("%+v", done)
	}
	if again := run(key, 0); !bytes.Equal(again.data, out.data) {
		t.Error("the same key gives another file")
	}
	if other := run(key+"x", 0); other.rows[0].Session == out.rows[0].Session {
		t.Error("another key gives the same names")
	}
	moved := run(key, 2*time.Second)
	last := map[string]time.Duration{}
	for _, r := range moved.rows {
		if r.Arrival.Value < last[r.Session.Value] {
			t.Fatal("turns of a session changed places")
		}
		last[r.Session.Value] = r.Arrival.Value
	}
	if _, _, err := (&Anonymizing{Key: []byte("short")}).Run(t.Context(), m.open, nil); err == nil {
		t.Error("a short key is taken")
	}
	bare := write(t, trace.Meta{Clock: trace.ClockNone}, []trace.Request{{Operation: trace.OpChat, Prompt: trace.Some("a b c")}})
	if _, _, err := (&Anonymizing{Key: []byte(key)}).Run(t.Context(), bare.open, nil); err == nil || !strings.Contains(err.Error(), "id 0 has content without a count") {
		t.Errorf("error %v", err)
	}
	words := func(s string) int { return len(strings.Fields(s)) }
	counted := collect(t, func(emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		meta, _, err = (&Anonymizing{Key: []byte(key), Count: words}).Run(t.Context(), bare.open, emit)
		return meta, err
	})
	if counted.rows[0].InputTokens != trace.Some(int64(3)) {
		t.Errorf("counted %v", counted.rows[0].InputTokens)
	}
}
