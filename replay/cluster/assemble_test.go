package cluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/results"
)

// A past is what a worker leaves behind.
type past struct {
	name   string
	slots  slotSet
	mine   int64
	legs   [][]results.Result
	killed bool
	halted bool // it stopped sending when the coordinator was gone
	clock  []Estimate
	run    string
}

func result(id int64, due, took time.Duration) results.Result {
	r := results.Result{
		ID: id, URL: "http://x", Protocol: "chat", Session: trace.Some(fmt.Sprint("s", id%3)), Outcome: results.OutcomeOK,
		Due: trace.Some(due), Eligible: trace.Some(due), Dispatched: trace.Some(due), Sent: trace.Some(due + time.Microsecond), End: trace.Some(due + took),
	}
	return r
}

// leave writes the directory of a worker.
func (p *past) leave(t *testing.T, dir string, planned int64) string {
	t.Helper()
	dir = filepath.Join(dir, workersDir, p.name)
	for n, rows := range p.legs {
		leg := filepath.Join(dir, strconv.Itoa(n))
		if err := os.MkdirAll(leg, 0o755); err != nil {
			t.Fatal(err)
		}
		run := results.Run{Label: "a shard", Models: map[string]string{"": "m"}, Warnings: []string{"3 of 4 requests of the shard", "a doubt"}}
		if !p.killed {
			run.Ended = &results.Ended{Interrupted: p.halted, Client: results.Client{ConnsOpened: 2}}
		}
		out, err := results.NewRecorder(leg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			out.Add(&rows[i])
		}
		end := out.Close
		if p.killed {
			end = out.Flush
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := results.WriteRun(leg, &run); err != nil {
			t.Fatal(err)
		}
	}
	k := kept{Worker: p.name, Start: 1000, State: stateDone, Legs: len(p.legs), Plan: plan{Run: p.run, Of: 2, Slots: p.slots, Mine: p.mine, Base: results.Run{Label: "open loop", Planned: results.Planned{Requests: planned}}}}
	if k.Clock.Estimates = p.clock; len(p.clock) > 0 {
		k.First = p.clock[0]
	}
	if p.killed {
		k.State = stateRunning
	}
	if err := results.WriteJSON(filepath.Join(dir, keptFile), k); err != nil {
		t.Fatal(err)
	}
	return dir
}

// halves shares n requests between two workers, by slot.
func halves(n int64) (pasts [2]past) {
	for i := range pasts {
		pasts[i] = past{name: fmt.Sprint("w", i+1), slots: newSlotSet(), legs: [][]results.Result{nil}, run: "run-x"}
	}
	for slot := range uint16(replay.Slots) {
		pasts[slot%2].slots.add(slot)
	}
	for id := range n {
		p := &pasts[replay.Slot(id, "", false)%2]
		p.legs[0] = append(p.legs[0], result(id, time.Duration(id)*time.Millisecond, 5*time.Millisecond))
		p.mine++
	}
	return pasts
}

// recoverAll assembles what the workers left, and returns the run and its rows.
func recoverAll(t *testing.T, planned int64, pasts ...past) (*results.Run, []results.Result, error) {
	t.Helper()
	dir := t.TempDir()
	for i := range pasts {
		pasts[i].leave(t, dir, planned)
	}
	run, err := Recover(t.Context(), Kept(dir), dir)
	if err != nil {
		return run, nil, err
	}
	opened, err := results.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	var rows []results.Result
	for r, err := range opened.Results() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return run, rows, nil
}

func TestAssembleIsWhole(t *testing.T) {
	const n = 500
	pasts := halves(n)
	run, rows, err := recoverAll(t, n, pasts[:]...)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if r.ID != int64(i) || r.Due.Value != time.Duration(i)*time.Millisecond || !r.Worker.Known {
			t.Fatalf("row %d is %+v", i, r)
		}
	}
	e := run.Ended
	if len(rows) != n || e.Sent != n || e.Unsent != 0 || e.Lost != 0 || e.Client.ConnsOpened != 4 {
		t.Errorf("%d rows, ended %+v", len(rows), e)
	}
	// Sessions have a request each 3 ms that takes 5: all but the first of each overlap.
	if e.Overlaps != n-3 {
		t.Errorf("%d overlaps, want %d", e.Overlaps, n-3)
	}
	if run.Label != "open loop" || len(run.Workers) != 2 || run.Workers[0].Recorded+run.Workers[1].Recorded != n {
		t.Errorf("label %q, workers %+v", run.Label, run.Workers)
	}
	if text := strings.Join(run.Warnings, "; "); strings.Contains(text, "shard") || !strings.Contains(text, "a doubt") {
		t.Errorf("warnings: %s", text)
	}
}

// TestAssembleTakenOver: of a worker that was killed, the rest was sent by the other,
// and what is between is lost.
func TestAssembleTakenOver(t *testing.T) {
	const n = 400
	pasts := halves(n)
	lost, other := &pasts[0], &pasts[1]
	var kept, taken []results.Result
	gap := int64(0)
	for _, r := range lost.legs[0] {
		switch {
		case r.Due.Value < 100*time.Millisecond:
			kept = append(kept, r)
		case r.Due.Value < 150*time.Millisecond:
			gap++
		default:
			taken = append(taken, r)
		}
	}
	lost.legs[0], lost.killed = kept, true
	other.legs = append(other.legs, taken)
	run, rows, err := recoverAll(t, n, pasts[:]...)
	if err != nil {
		t.Fatal(err)
	}
	if e := run.Ended; e.Lost != gap || int64(len(rows)) != n-gap || e.Unsent != 0 {
		t.Errorf("lost %d, want %d; %d rows, unsent %d", e.Lost, gap, len(rows), e.Unsent)
	}
	if w := run.Workers[0]; w.State != results.WorkerRestored || w.Lost != gap || w.Recorded != int64(len(kept)) {
		t.Errorf("the worker that was killed: %+v", w)
	}
	if w := run.Workers[1]; w.State != results.WorkerEnded || w.TookOver != 1 || w.Lost != 0 {
		t.Errorf("the other: %+v", w)
	}
}

func TestAssembleWithoutAWorker(t *testing.T) {
	const n = 100
	pasts := halves(n)
	run, rows, err := recoverAll(t, n, pasts[1])
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(rows)) != pasts[1].mine || run.Ended.Lost != pasts[0].mine || run.Workers[1].State != results.WorkerLost {
		t.Errorf("%d rows, lost %d, workers %+v", len(rows), run.Ended.Lost, run.Workers)
	}
}

// TestAssembleTheFuller: what a worker had handed over to the coordinator is less than what
// it has itself, whichever is named first; and an assembly can be made again, with more.
func TestAssembleTheFuller(t *testing.T) {
	const n = 60
	pasts := halves(n)
	there, own := t.TempDir(), t.TempDir()
	handed := pasts[0]
	handed.legs = [][]results.Result{pasts[0].legs[0][:5]}
	few, all, other := handed.leave(t, there, n), pasts[0].leave(t, own, n), pasts[1].leave(t, there, n)
	out := t.TempDir()
	for _, test := range []struct {
		dirs []string
		rows int64
	}{{[]string{few, other}, 5 + pasts[1].mine}, {[]string{few, other, all}, n}, {[]string{all, other, few}, n}} {
		if _, err := Recover(t.Context(), test.dirs, out); err != nil {
			t.Fatal(err)
		}
		opened, err := results.OpenRun(out)
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		for _, err := range opened.Results() {
			if err != nil {
				t.Fatal(err)
			}
			rows++
		}
		if rows != test.rows {
			t.Errorf("%d results of %v, want %d", rows, test.dirs, test.rows)
		}
	}
}

func TestAssembleRefusesTwice(t *testing.T) {
	pasts := halves(20)
	pasts[1].legs = append(pasts[1].legs, pasts[0].legs[0][:1])
	if _, _, err := recoverAll(t, 20, pasts[:]...); err == nil || !strings.Contains(err.Error(), "two workers") {
		t.Errorf("a request that was sent twice: %v", err)
	}
	pasts = halves(20)
	pasts[1].run = "run-y"
	if _, _, err := recoverAll(t, 20, pasts[:]...); err == nil || trace.Fix(err) == "" {
		t.Errorf("two runs: %v", err)
	}
	if _, err := Recover(t.Context(), nil, t.TempDir()); err == nil {
		t.Error("no worker is no error")
	}
}

// TestAssembleMoves: instants of a clock that drifted are moved, due times are not;
// within the bounds nothing is.
func TestAssembleMoves(t *testing.T) {
	pasts := halves(100)
	ms := int64(time.Millisecond)
	for i := range pasts {
		pasts[i].clock = []Estimate{{At: 1000, Offset: 5 * ms, Bound: ms / 2}, {At: 1000 + 100*ms, Offset: (5 + 10*int64(i)) * ms, Bound: ms / 2}}
	}
	run, rows, err := recoverAll(t, 100, pasts[:]...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		due, late := time.Duration(r.ID)*time.Millisecond, time.Duration(0)
		if r.Worker.Value == "w2" {
			late = due / 10
		}
		if got := r.Dispatched.Value - due; r.Due.Value != due || r.Eligible.Value != due || got < late-time.Microsecond || got > late+time.Microsecond {
			t.Fatalf("%s: request %d due %v, eligible %v, dispatched %v after it, want %v", r.Worker.Value, r.ID, r.Due.Value, r.Eligible.Value, got, late)
		}
	}
	if a, b := run.Workers[0].Clock, run.Workers[1].Clock; a.ShiftNS != 0 || b.ShiftNS < 9*ms || *b.DriftPPM < 99_000 {
		t.Errorf("clocks %+v and %+v", a, b)
	}
}

// TestWritePiece: pieces may come twice, and late; a file with other bytes is refused.
func TestWritePiece(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w1", "0", "run.json")
	const sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"
	for _, p := range []struct {
		at   int64
		data string
		sum  string
		next int64
	}{{0, "hel", "", 3}, {0, "hel", "", 3}, {4, "o", sum, 3}, {3, "lo", sum, 5}, {0, "", "", 0}} {
		if next, err := writePiece(path, p.at, []byte(p.data), p.sum); err != nil || next != p.next {
			t.Errorf("piece %q at %d: next %d, %v", p.data, p.at, next, err)
		}
	}
	if _, err := writePiece(path, 0, []byte("jello"), sum); err == nil {
		t.Error("other bytes are taken")
	}
	for _, name := range []string{"../x", "0/../../x", "worker.json/x", "0/requests.parquet.sh", "/etc/passwd", "0/parts/1.parquet"} {
		if fileForm.MatchString(name) {
			t.Errorf("%s would be written", name)
		}
	}
}

// What a worker keeps is enough for a recovery, and has no flags: extra bodies may be
// secrets.
func TestKeptWithoutFlags(t *testing.T) {
	w := Worker{Name: "w1", Dir: t.TempDir(), start: 1, state: stateDone, plan: plan{Run: "run-a", Args: []string{`--extra-body={"key":"hunter2"}`}}}
	if err := w.keep(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(w.Dir, keptFile))
	if err != nil || bytes.Contains(text, []byte("hunter2")) || !bytes.Contains(text, []byte("run-a")) {
		t.Errorf("%v: %s", err, text)
	}
	if len(w.plan.Args) != 1 {
		t.Error("the worker has lost its flags")
	}
}

// TestLostOf: where nobody knows how many requests there would have been, those are lost
// that a worker had sent by its last beat and of which there is no result.
func TestLostOf(t *testing.T) {
	a, p := assembly{}, part{planned: 100, own: 70, told: 900, sent: 850}
	if n := a.lostOf(&p); n != 30 {
		t.Errorf("of a shard: %d", n)
	}
	a.run.Planned.UntilNS = new(int64)
	if n := a.lostOf(&p); n != 50 {
		t.Errorf("of as many as there was time for: %d", n)
	}
}

// TestRecoverSaysWhatIsKnown: a worker that stopped in order has sent what it has recorded,
// and no more; of one that was killed nobody knows; of what is not at hand neither.
func TestRecoverSaysWhatIsKnown(t *testing.T) {
	const n = 200
	pasts := halves(n)
	rows := pasts[0].legs[0]
	pasts[0].halted, pasts[0].legs[0] = true, rows[:40]
	run, _, err := recoverAll(t, n, pasts[:]...)
	if err != nil {
		t.Fatal(err)
	}
	unsent := int64(len(rows) - 40)
	if e, w := run.Ended, run.Workers; !e.Unconcluded || e.Lost != 0 || e.Unsent != unsent || w[0].State != results.WorkerStopped || w[1].State != results.WorkerEnded {
		t.Errorf("one stopped in order: %+v, workers %+v", e, w)
	}
	pasts[0].halted, pasts[0].killed = false, true
	if run, _, err = recoverAll(t, n, pasts[:]...); err != nil {
		t.Fatal(err)
	}
	if e, w := run.Ended, run.Workers; !e.Unconcluded || e.Lost != unsent || e.Unsent != 0 || w[0].State != results.WorkerRestored || !strings.Contains(w[0].LostWhy, "killed") {
		t.Errorf("one killed: %+v, workers %+v", e, w)
	}
	if run, _, err = recoverAll(t, n, pasts[1]); err != nil {
		t.Fatal(err)
	}
	if w := run.Workers; len(w) != 2 || w[1].Name != results.MissingWorkers || !strings.Contains(strings.Join(run.Warnings, "; "), "the results of 1 of 2 workers") {
		t.Errorf("one missing: workers %+v, warnings %q", w, run.Warnings)
	}
}

func TestWorkersInOrder(t *testing.T) {
	var a assembly
	for _, name := range []string{"w10", "host-2b", "w2", "w1", "w02", "host-2a", "w", "host-10"} {
		a.parts = append(a.parts, part{name: name})
	}
	a.sort()
	var got []string
	for i := range a.parts {
		got = append(got, a.parts[i].name)
	}
	if text := strings.Join(got, " "); text != "host-2a host-2b host-10 w w1 w2 w02 w10" {
		t.Errorf("%s", text)
	}
}
