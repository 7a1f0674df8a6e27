package weka_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/source"
	"reprise/formats/weka"
	"reprise/trace"
)

var update = flag.Bool("update", false, "rewrite golden files")

const testdata = "../../testdata/weka"

// result is what an import gave.
type result struct {
	rows     []trace.Request
	meta     trace.Meta
	rejected []*trace.RowError
	data     []byte
}

// load imports paths and checks every invariant of the trace.
func load(t testing.TB, imp *weka.Importer, paths ...string) result {
	t.Helper()
	r, err := try(imp, paths...)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := trace.NewReader(bytes.NewReader(r.data), int64(len(r.data)), "t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Check(context.Background(), reader, func(e *trace.RowError) { t.Error(e) }); err != nil {
		t.Fatal(err)
	}
	total := r.meta.Counts.Kept
	for _, n := range r.meta.Counts.Rejected {
		total += n
	}
	for _, n := range r.meta.Counts.Merged {
		total += n
	}
	if total != r.meta.Counts.Read {
		t.Errorf("kept, rejected and merged make %d rows, read were %d", total, r.meta.Counts.Read)
	}
	return r
}

func try(imp *weka.Importer, paths ...string) (r result, err error) {
	src, _, err := source.Find(paths, nil)
	if err != nil {
		return r, err
	}
	defer func() {
		for _, s := range src {
			s.Close()
		}
	}()
	var buf bytes.Buffer
	r.meta, err = formats.Import(context.Background(), imp, src, &buf, 0, trace.Step{Command: "trace import"}, func(e *trace.RowError) error {
		r.rejected = append(r.rejected, e)
		return nil
	})
	if err != nil {
		return r, err
	}
	r.data = buf.Bytes()
	reader, err := trace.NewReader(bytes.NewReader(r.data), int64(len(r.data)), "t")
	if err != nil {
		return r, err
	}
	r.meta = reader.Meta()
	for row, err := range reader.Rows() {
		if err != nil {
			return r, err
		}
		r.rows = append(r.rows, row)
	}
	return r, nil
}

// text imports a text as file name.
func text(t testing.TB, imp *weka.Importer, name, content string) result {
	t.Helper()
	return load(t, imp, write(t, t.TempDir(), name, content))
}

func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// one wraps request entries into a session.
func one(entries string) string {
	return `{"id":"s","block_size":64,"hash_id_scope":"local","requests":[` + entries + `]}`
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join(testdata, name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", name, got)
	}
}

// summary lists rows and the account of an import.
func (r result) summary(t *testing.T) []byte {
	var out []byte
	for i := range r.rows {
		var err error
		if out, err = trace.AppendJSON(out, &r.rows[i]); err != nil {
			t.Fatal(err)
		}
		out = append(out, '\n')
	}
	out = fmt.Appendf(out, "clock %s, dialect %s, tick %d ns\nread %d, kept %d, rejected %v, merged %v\n", r.meta.Clock, r.meta.Dialect, r.meta.TickNS.Value,
		r.meta.Counts.Read, r.meta.Counts.Kept, r.meta.Counts.Rejected, r.meta.Counts.Merged)
	for _, g := range r.meta.Guesses {
		out = fmt.Appendf(out, "guess: %s: %s (%s) %s\n", g.What, g.Value, g.Evidence, g.Flag)
	}
	for _, e := range r.rejected {
		e.File = filepath.Base(e.File)
		out = fmt.Appendf(out, "%v; reason %s, merged %v, fix: %s\n", e, e.Reason, e.Merged, e.Fix)
	}
	return out
}

func TestGolden(t *testing.T) {
	golden(t, "sample.golden", load(t, &weka.Importer{}, filepath.Join(testdata, "sample.jsonl")).summary(t))
	golden(t, "bad.golden", load(t, &weka.Importer{}, filepath.Join(testdata, "bad.jsonl")).summary(t))
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
	r := text(t, &weka.Importer{}, "a.json", one(`{"t":0,"type":"n","in":100,"out":5,"hash_ids":[1,2]}`)).rows[0]
	if r.InputTokens != trace.Some(int64(100)) || r.BlockTail != trace.Some(trace.TailPartial) || r.BlockTokens != trace.Some(int32(64)) {
		t.Errorf("input %v, tail %v, block %v; want 100, partial, 64", r.InputTokens, r.BlockTail, r.BlockTokens)
	}
}

func TestUnknownKeysAreKeptAndNamedOnce(t *testing.T) {
	entry := `{"t":%d,"type":"n","model":"m","in":64,"out":5,"hash_ids":[1],"input_types":[],"output_types":["text"],"stop":"","made_up":[1, {"x": null}]}`
	r := text(t, &weka.Importer{}, "a.json", one(fmt.Sprintf(entry+","+entry, 0, 1)))
	if got := r.rows[1].Attributes["made_up"]; got != `[1,{"x":null}]` {
		t.Errorf("made_up kept as %q", got)
	}
	if n := r.meta.Counts.Notes["unknown request field made_up kept in attributes"]; n != 2 || len(r.meta.Counts.Notes) != 1 {
		t.Errorf("notes %v", r.meta.Counts.Notes)
	}
}

// One file counts from the marker, the other from the session's start; a guess
// for both together would be wrong for one.
func TestNestedTimeIsDecidedPerFile(t *testing.T) {
	session := `{"id":"%s","block_size":64,"requests":[{"t":0,"type":"n","in":64},{"t":100,"type":"subagent","agent_id":"a","requests":[{"t":%d,"type":"n","in":64}]}]}`
	dir := t.TempDir()
	a := write(t, dir, "a.json", fmt.Sprintf(session, "A", 5))
	b := write(t, dir, "b.json", fmt.Sprintf(session, "B", 105))
	r := load(t, &weka.Importer{}, a, b)
	for _, i := range []int{1, 3} {
		if r.rows[i].Arrival != at(105) {
			t.Errorf("session %s: sub-agent at %v, want 105 s", r.rows[i].Session.Value, r.rows[i].Arrival.Value)
		}
	}
	var decided []string
	for _, g := range r.meta.Guesses {
		if g.Flag == "--nested-time" {
			decided = append(decided, g.Value+" "+strings.SplitN(g.Evidence, ":", 2)[0])
		}
	}
	if got := strings.Join(decided, "; "); got != "relative a.json; absolute b.json" {
		t.Errorf("decided %q", got)
	}

	forced := load(t, &weka.Importer{NestedTime: weka.Relative}, b)
	if forced.rows[1].Arrival != at(205) {
		t.Errorf("forced relative: %v, want 205 s", forced.rows[1].Arrival.Value)
	}
	impossible := load(t, &weka.Importer{NestedTime: weka.Absolute}, a)
	if len(impossible.rejected) != 1 || impossible.rejected[0].Field != "requests[1].requests[0].t" {
		t.Errorf("a time before the marker: rejected %v", impossible.rejected)
	}
}

func TestThinkTimeIsNotStartToStart(t *testing.T) {
	r := text(t, &weka.Importer{}, "a.json", one(`{"t":0,"type":"n","in":64,"api_time":10},{"t":12,"type":"n","in":64,"think_time":2}`)).rows
	if r[1].Delay != at(2) || r[1].Arrival != at(12) || after(r[1]) != "turn 0" || r[0].RecordedE2E != at(10) {
		t.Errorf("delay %v, arrival %v, after %q", r[1].Delay, r[1].Arrival, after(r[1]))
	}
}

func TestIdleHoursAreCutOnlyIfAsked(t *testing.T) {
	entries := one(`{"t":0,"type":"n","in":64,"api_time":10},{"t":36000,"type":"n","in":64,"think_time":35990},{"t":36005,"type":"n","in":64}`)
	if r := text(t, &weka.Importer{}, "a.json", entries).rows; r[1].Arrival != at(36000) {
		t.Errorf("without a cap: %v", r[1].Arrival.Value)
	}
	r := text(t, &weka.Importer{GapCap: time.Minute}, "a.json", entries)
	if r.rows[1].Arrival != at(70) || r.rows[1].Delay != at(60) || r.rows[2].Arrival != at(75) {
		t.Errorf("with a cap of 60 s: %v after %v, then %v", r.rows[1].Arrival.Value, r.rows[1].Delay.Value, r.rows[2].Arrival.Value)
	}
	if n := r.meta.Counts.Notes; n["idle gaps cut"] != 1 || n["idle seconds cut in all"] != 35930 {
		t.Errorf("notes %v", n)
	}
}

func TestSameInstantOwnerIsStableAndCounted(t *testing.T) {
	r := text(t, &weka.Importer{}, "a.json", one(`{"t":0,"type":"n","in":64,"hash_ids":[1]},{"t":0,"type":"n","in":64,"hash_ids":[1]},{"t":0,"type":"subagent","agent_id":"a","requests":[{"t":0,"type":"n","in":64}]},{"t":0,"type":"n","in":64,"hash_ids":[1]}`))
	for _, row := range r.rows {
		if row.Agent.Known && after(row) != "spawn 1" {
			t.Errorf("sub-agent after %q, want the last request before its marker", after(row))
		}
	}
	if n := r.meta.Counts.Notes["sub-agents whose parent is one of several requests at the same time; the last of these is taken"]; n != 1 {
		t.Errorf("notes %v", r.meta.Counts.Notes)
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
		rows := text(t, &weka.Importer{}, "a.json", one(fmt.Sprintf(spawn, c.status, c.ms)+","+c.next)).rows
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
	a, b := write(t, dir, "x/a.json", session), write(t, dir, "x/b.json", session)
	c, d := write(t, dir, "y/a.json", session), write(t, dir, "y/c.json", strings.Replace(session, `"id":"s",`, "", 1))
	r := load(t, &weka.Importer{}, a, b, c, d)
	var ids []string
	for _, row := range r.rows {
		ids = append(ids, row.Session.Value)
	}
	if got := strings.Join(ids, " "); got != "s s@b.json s@a.json c#1" {
		t.Errorf("session ids %q", got)
	}
	if twice := load(t, &weka.Importer{}, a, a, a, a); len(twice.rejected) != 1 || twice.rejected[0].Reason != "id" {
		t.Errorf("one file four times: rejected %v", twice.rejected)
	}
}

func TestLocalIDsStayApart(t *testing.T) {
	r := text(t, &weka.Importer{}, "a.jsonl", strings.ReplaceAll(one(`{"t":0,"type":"n","in":64,"hash_ids":[1]}`)+"\n"+
		one(`{"t":0,"type":"n","in":64,"hash_ids":[1]}`)+"\n"+one(`{"t":0,"type":"n","in":64,"hash_ids":[18446744073709551615]}`), `"id":"s",`, ""))
	if a, b := r.rows[0].Blocks[0], r.rows[1].Blocks[0]; a != 1<<40|1 || b != 2<<40|1 {
		t.Errorf("ids %#x and %#x", a, b)
	}
	if c := r.rows[2].Blocks[0]; c == 1<<64-1 {
		t.Errorf("a 64-bit id of a local scope was left as it was")
	}
}

func TestMergedPairsAreCounted(t *testing.T) {
	in := filepath.Join(testdata, "sample.jsonl")
	merged, kept := load(t, &weka.Importer{}, in), load(t, &weka.Importer{KeepPairs: true}, in)
	if len(kept.rows) != len(merged.rows)+1 || kept.meta.Counts.Merged != nil {
		t.Errorf("%d rows merged, %d kept", len(merged.rows), len(kept.rows))
	}
	if len(merged.rejected) != 1 || !merged.rejected[0].Merged || !strings.Contains(merged.rejected[0].Raw, `"t":2.0`) {
		t.Errorf("rejected %v", merged.rejected)
	}
}
