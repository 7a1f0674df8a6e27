package results

import (
	"fmt"
	"path/filepath"
	"testing"
)

// TestGatherParts: what is gathered of a run as it goes on, some parts at a time, is what
// was recorded, once.
func TestGatherParts(t *testing.T) {
	dir := t.TempDir()
	out, err := NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	next, id := 0, int64(0)
	gatherAll := func() {
		path := filepath.Join(dir, fmt.Sprintf("bundle-%d", next))
		to, err := GatherParts(dir, next, path)
		if err != nil {
			t.Fatal(err)
		}
		if to > next {
			files = append(files, path)
		}
		next = to
	}
	gatherAll() // nothing is there
	for _, parts := range []int{1, 3, 0, 2} {
		for range parts {
			for range 5 {
				out.Add(&Result{ID: id, URL: "http://x", Protocol: "chat", Outcome: OutcomeOK})
				id++
			}
			if err := out.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		gatherAll()
	}
	if len(files) != 3 || next != 6 {
		t.Errorf("%d files of %d parts", len(files), next)
	}
	want := int64(0)
	for r, err := range (&Opened{files: files}).Results() {
		if err != nil {
			t.Fatal(err)
		}
		if r.ID != want {
			t.Fatalf("result %d, want %d", r.ID, want)
		}
		want++
	}
	if want != id {
		t.Errorf("%d of %d results", want, id)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if to, err := GatherParts(dir, next, filepath.Join(dir, "late")); err != nil || to != next {
		t.Errorf("of a run that is over: %d, %v", to, err)
	}
}
