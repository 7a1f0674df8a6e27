package sharegpt_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"reprise/formats/importtest"
	"reprise/formats/sharegpt"
	"reprise/trace"
)

// Counts from the manifest of the published files. A request is an answer that
// follows a question, or a question at the end; so requests are the answers,
// but for those that begin a conversation or follow another answer, and for
// conversations without a user.
func TestPublishedFiles(t *testing.T) {
	dir := importtest.Shared(t, "sharegpt")
	for _, c := range []struct {
		file                                          string
		conversations, messages, pairs, empty, noUser int64
	}{
		{"glaive_toolcall_en_demo.json", 289, 1854, 521, 0, 0},
		{"messages_mllm_demo.json", 6, 24, 12, 0, 0},
		{"sharegpt_v3_extra_fields.json", 6, 26, 12, 0, 0},
		{"sharegpt_v3_subset.json", 360, 2817, 1347, 3, 5},
		{"sharegpt_v3_subset.jsonl", 120, 762, 361, 0, 2},
	} {
		path := filepath.Join(dir, c.file)
		r := importtest.Load(t, &sharegpt.Importer{}, path)
		source := conversations(t, path)
		want := expected(source)
		n := r.Meta.Counts
		if int64(len(r.Rows)) != want.requests || n.Rejected["no user message"] != c.noUser || int64(len(r.Rejected)) != c.noUser {
			t.Errorf("%s: %d requests, rejected %v; want %+v", c.file, len(r.Rows), n.Rejected, want)
		}
		if n.Notes["conversations"] != c.conversations || n.Notes["messages"] != c.messages || n.Notes["answers right after a user message"] != c.pairs || n.Notes["empty texts"] != c.empty {
			t.Errorf("%s: notes %v, want %+v", c.file, n.Notes, c)
		}
		names := map[string]bool{}
		for _, row := range r.Rows {
			names[row.Session.Value] = true
			if row.MessagesMode != trace.Some(trace.MessagesDelta) || row.Arrival.Known {
				t.Errorf("%s: row %+v", c.file, row)
			}
		}
		if int64(len(names)) != c.conversations-c.noUser {
			t.Errorf("%s: %d sessions of %d conversations", c.file, len(names), c.conversations)
		}
		out, lost := r.Exported(t, sharegpt.Exporter{})
		got := conversations(t, importtest.Write(t, t.TempDir(), c.file, out))
		if lost != nil || !reflect.DeepEqual(got, want.accepted) {
			t.Errorf("%s: written back differs, lost %v", c.file, lost)
		}
	}
}

func conversations(t *testing.T, path string) (list []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if text[0] != '[' {
		text = "[" + strings.ReplaceAll(strings.TrimSpace(text), "\n", ",") + "]"
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

type expectation struct {
	requests int64
	accepted []map[string]any
}

// expected counts by the rule, by other means than the importer.
func expected(list []map[string]any) (e expectation) {
	for _, c := range list {
		messages, ok := c["conversations"].([]any)
		if !ok {
			messages = c["messages"].([]any)
		}
		var roles strings.Builder // u: asks, a: answers
		for _, m := range messages {
			role, ok := m.(map[string]any)["from"]
			if !ok {
				role = m.(map[string]any)["role"]
			}
			switch role {
			case "human", "user":
				roles.WriteByte('u')
			case "observation":
				roles.WriteByte('t')
			case "gpt", "assistant", "function_call":
				roles.WriteByte('a')
			}
		}
		s := roles.String()
		first := strings.IndexByte(s, 'u')
		if first < 0 {
			continue
		}
		e.accepted = append(e.accepted, c)
		for i, role := range s[first:] {
			rest := s[first+i+1:]
			if role != 'a' && (rest == "" || rest[0] == 'a') {
				e.requests++
			}
		}
	}
	return e
}
