package prefix

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestLinker links by the deepest of at least two leading blocks.
func TestLinker(t *testing.T) {
	var l Linker
	for i, c := range []struct {
		ids           []uint64
		input         int64
		session, turn int32
	}{
		{[]uint64{1, 2, 3}, 30, 0, 0},
		{[]uint64{1, 9}, 20, 1, 0},         // one block is not enough
		{[]uint64{1, 2, 3, 4}, 40, 0, 1},   //
		{[]uint64{1, 9, 10}, 30, 1, 1},     // deepest known block is 9
		{[]uint64{1, 2, 3, 5}, 40, 0, 2},   // a branch
		{[]uint64{1, 2, 3, 4}, 40, 0, 3},   // the same prompt again
		{[]uint64{7, 8}, 20, 2, 0},         //
		{[]uint64{7, 8, 11}, 25, 2, 1},     //
		{[]uint64{7, 8, 11, 12}, 35, 2, 2}, // 11 was short before: two blocks are left
		{nil, 5, 3, 0},
	} {
		if s, n := l.Link("m", c.ids, 10, c.input); s != c.session || n != c.turn {
			t.Errorf("row %d: session %d turn %d, want %d and %d", i, s, n, c.session, c.turn)
		}
	}
	if l.Sessions() != 4 {
		t.Errorf("%d sessions", l.Sessions())
	}
	if s, _ := l.Link("other", []uint64{1, 2, 3}, 10, 30); s != 4 {
		t.Error("blocks of another model are the same")
	}
}

// TestLinkerOnAPublicTrace finds the sessions that were measured on it.
func TestLinkerOnAPublicTrace(t *testing.T) {
	shared := os.Getenv("REPRISE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(shared, "data", "mooncake", "conversation_trace.jsonl"))
	if err != nil {
		t.Skipf("no shared data: %v", err)
	}
	defer f.Close()
	var l Linker
	in := bufio.NewScanner(f)
	for in.Scan() {
		var row struct {
			Input int64    `json:"input_length"`
			IDs   []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		l.Link("", row.IDs, 512, row.Input)
	}
	if l.Sessions() != 7373 {
		t.Errorf("%d sessions, want 7373", l.Sessions())
	}
}
