package weka_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/formats/importtest"
	"reprise/formats/weka"
	"reprise/trace"
)

const testdata = importtest.Testdata + "/weka"

// one wraps request entries into a session.
func one(entries string) string {
	return `{"id":"s","block_size":64,"hash_id_scope":"local","requests":[` + entries + `]}`
}

func TestGolden(t *testing.T) {
	importtest.Golden(t, &weka.Importer{}, "weka", "sample.jsonl")
	importtest.Golden(t, &weka.Importer{}, "weka", "bad.jsonl")
}

func at(s float64) trace.Optional[time.Duration] {
	return trace.Some(time.Duration(s * float64(time.Second)))
}

func after(r trace.Request) string {
	var parts []string
	for _, d := range r.After {
		parts = append(parts, fmt.Sprintf("%s %d", d.Kind, d.ID))
	}
	return strings.Join(parts, ", ")
}

func TestInputIsNotRecomputedFromBlocks(t *testing.T) {
	r := importtest.Text(t, &weka.Importer{}, "a.json", one(`{"t":0,"type":"n","in":100,"out":5,"hash_ids":[1,2]}`)).Rows[0]
	if r.InputTokens != trace.Some(int64(100)) || r.BlockTail != trace.Some(trace.TailPartial) || r.BlockTokens != trace.Some(int32(64)) {
		t.Errorf("input %v, tail %v, block %v; want 100, partial, 64", r.InputTokens, r.BlockTail, r.BlockTokens)
	}
}

func TestUnknownKeysAreKeptAndNamedOnce(t *testing.T) {
	entry := `{"t":%d,"type":"n","model":"m","in":64,"out":5,"hash_ids":[1],"input_types":[],"output_types":["text"],"stop":"","made_up":[1, {"x": null}]}`
	r := importtest.Text(t, &weka.Importer{}, "a.json", one(fmt.Sprintf(entry+","+entry, 0, 1)))
	if got := r.Rows[1].Attributes["made_up"]; got != `[1,{"x":null}]` {
		t.Errorf("made_up kept as %q", got)
	}
	if n := r.Meta.Counts.Notes["unknown request field made_up kept in attributes"]; n != 2 || len(r.Meta.Counts.Notes) != 1 {
		t.Errorf("notes %v", r.Meta.Counts.Notes)
	}
}

// One file counts from the marker, the other from the session's start; a guess
// for both together would be wrong for one.
func TestNestedTimeIsDecidedPerFile(t *testing.T) {
	session := `{"id":"%s","block_size":64,"requests":[{"t":0,"type":"n","in":64},{"t":100,"type":"subagent","agent_id":"a","requests":[{"t":%d,"type":"n","in":64}]}]}`
	dir := t.TempDir()
	a := importtest.Write(t, dir, "a.json", fmt.Sprintf(session, "A", 5))
	b := importtest.Write(t, dir, "b.json", fmt.Sprintf(session, "B", 105))
	r := importtest.Load(t, &weka.Importer{}, a, b)
	for _, i := range []int{1, 3} {
		if r.Rows[i].Arrival != at(105) {
			t.Errorf("session %s: sub-agent at %v, want 105 s", r.Rows[i].Session.Value, r.Rows[i].Arrival.Value)
		}
	}
	var decided []string
	for _, g := range r.Meta.Guesses {
		if g.Flag == "--nested-time" {
			decided = append(decided, g.Value+" "+strings.SplitN(g.Evidence, ":", 2)[0])
		}
	}
	if got := strings.Join(decided, "; "); got != "relative a.json; absolute b.json" {
		t.Errorf("decided %q", got)
	}

	forced := importtest.Load(t, &weka.Importer{NestedTime: weka.Relative}, b)
	if forced.Rows[1].Arrival != at(205) {
		t.Errorf("forced relative: %v, want 205 s", forced.Rows[1].Arrival.Value)
	}
	impossible := importtest.Load(t, &weka.Importer{NestedTime: weka.Absolute}, a)
	if len(impossible.Rejected) != 1 || impossible.Rejected[0].Field != "requests[1].requests[0].t" {
		t.Errorf("a time before the marker: rejected %v", impossible.Rejected)
	}
}

func TestThinkTimeIsNotStartToStart(t *testing.T) {
	r := importtest.Text(t, &weka.Importer{}, "a.json", one(`{"t":0,"type":"n","in":64,"api_time":10},{"t":12,"type":"n","in":64,"think_time":2}`)).Rows
	if r[1].Delay != at(2) || r[1].Arrival != at(12) || after(r[1]) != "turn 0" || r[0].RecordedE2E != at(10) {
		t.Errorf("delay %v, arrival %v, after %q", r[1].Delay, r[1].Arrival, after(r[1]))
	}
}

func TestIdleHoursAreCutOnlyIfAsked(t *testing.T) {
	entries := one(`{"t":0,"type":"n","in":64,"api_time":10},{"t":36000,"type":"n","in":64,"think_time":35990},{"t":36005,"type":"n","in":64}`)
	if r := importtest.Text(t, &weka.Importer{}, "a.json", entries).Rows; r[1].Arrival != at(36000) {
		t.Errorf("without a cap: %v", r[1].Arrival.Value)
	}
	r := importtest.Text(t, &weka.Importer{GapCap: time.Minute}, "a.json", entries)
	if r.Rows[1].Arrival != at(70) || r.Rows[1].Delay != at(60) || r.Rows[2].Arrival != at(75) {
		t.Errorf("with a cap of 60 s: %v after %v, then %v", r.Rows[1].Arrival.Value, r.Rows[1].Delay.Value, r.Rows[2].Arrival.Value)
	}
	if n := r.Meta.Counts.Notes; n["idle gaps cut"] != 1 || n["idle seconds cut in all"] != 35930 {
		t.Errorf("notes %v", n)
	}
}

func TestSameInstantOwnerIsStableAndCounted(t *testing.T) {
	r := importtest.Text(t, &weka.Importer{}, "a.json", one(`{"t":0,"type":"n","in":64,"hash_ids":[1]},{"t":0,"type":"n","in":64,"hash_ids":[1]},{"t":0,"type":"subagent","agent_id":"a","requests":[{"t":0,"type":"n","in":64}]},{"t":0,"type":"n","in":64,"hash_ids":[1]}`))
	for _, row := range r.Rows {
		if row.Agent.Known && after(row) != "spawn 1" {
			t.Errorf("sub-agent after %q, want the last request before its marker", after(row))
		}
	}
	if n := r.Meta.Counts.Notes["sub-agents whose parent is one of several requests at the same time; the last of these is taken"]; n != 1 {
		t.Errorf("notes %v", r.Meta.Counts.Notes)
	}
}

func TestJoins(t *testing.T) {
	const spawn = `{"t":0,"type":"n","in":64,"api_time":1},{"t":2,"type":"subagent","agent_id":"a","status":"%s","duration_ms":%s,"requests":[{"t":0,"type":"n","in":64,"api_time":6}]}`
	for _, c := range []struct {
		status, ms, next string
		after            string
		delay            float64
	}{
		{"completed", "10000", `{"t":13,"type":"n","in":64,"think_time":12}`, "turn 0, join 1", 5}, // 13 - (2 + 6)
		{"completed", "10000", `{"t":11,"type":"n","in":64,"think_time":10}`, "turn 0", 10},
		{"async_launched", "10000", `{"t":13,"type":"n","in":64,"think_time":12}`, "turn 0", 12},
		{"completed", "null", `{"t":13,"type":"n","in":64,"think_time":12}`, "turn 0", 12},
	} {
		rows := importtest.Text(t, &weka.Importer{}, "a.json", one(fmt.Sprintf(spawn, c.status, c.ms)+","+c.next)).Rows
		last := rows[2]
		if after(last) != c.after || last.Delay != at(c.delay) {
			t.Errorf("%s %s %s: after %q, delay %v; want %q, %v s", c.status, c.ms, c.next, after(last), last.Delay.Value, c.after, c.delay)
		}
		if after(rows[1]) != "spawn 0" || rows[1].Delay != at(1) {
			t.Errorf("sub-agent after %q, delay %v; want 1 s since its parent's end", after(rows[1]), rows[1].Delay)
		}
	}
}

func TestSessionIDsAreUnique(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"x", "y"} {
		os.Mkdir(filepath.Join(dir, d), 0o755)
	}
	session := one(`{"t":0,"type":"n","in":64}`)
	a, b := importtest.Write(t, dir, "x/a.json", session), importtest.Write(t, dir, "x/b.json", session)
	c, d := importtest.Write(t, dir, "y/a.json", session), importtest.Write(t, dir, "y/c.json", strings.Replace(session, `"id":"s",`, "", 1))
	r := importtest.Load(t, &weka.Importer{}, a, b, c, d)
	var ids []string
	for _, row := range r.Rows {
		ids = append(ids, row.Session.Value)
	}
	if got := strings.Join(ids, " "); got != "s s@b.json s@a.json c#1" {
		t.Errorf("session ids %q", got)
	}
	if twice := importtest.Load(t, &weka.Importer{}, a, a, a, a); len(twice.Rejected) != 1 || twice.Rejected[0].Reason != "id" {
		t.Errorf("one file four times: rejected %v", twice.Rejected)
	}
}

func TestLocalIDsStayApart(t *testing.T) {
	r := importtest.Text(t, &weka.Importer{}, "a.jsonl", strings.ReplaceAll(one(`{"t":0,"type":"n","in":64,"hash_ids":[1]}`)+"\n"+
		one(`{"t":0,"type":"n","in":64,"hash_ids":[1]}`)+"\n"+one(`{"t":0,"type":"n","in":64,"hash_ids":[18446744073709551615]}`), `"id":"s",`, ""))
	if a, b := r.Rows[0].Blocks[0], r.Rows[1].Blocks[0]; a != 1<<40|1 || b != 2<<40|1 {
		t.Errorf("ids %#x and %#x", a, b)
	}
	if c := r.Rows[2].Blocks[0]; c == 1<<64-1 {
		t.Errorf("a 64-bit id of a local scope was left as it was")
	}
}

func TestMergedPairsAreCounted(t *testing.T) {
	in := filepath.Join(testdata, "sample.jsonl")
	merged, kept := importtest.Load(t, &weka.Importer{}, in), importtest.Load(t, &weka.Importer{KeepPairs: true}, in)
	if len(kept.Rows) != len(merged.Rows)+1 || kept.Meta.Counts.Merged != nil {
		t.Errorf("%d rows merged, %d kept", len(merged.Rows), len(kept.Rows))
	}
	if len(merged.Rejected) != 1 || !merged.Rejected[0].Merged || !strings.Contains(merged.Rejected[0].Raw, `"t":2.0`) {
		t.Errorf("rejected %v", merged.Rejected)
	}
}
