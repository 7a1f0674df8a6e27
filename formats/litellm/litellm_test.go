package litellm_test

import (
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/litellm"
)

func imp() formats.Importer { return &litellm.Importer{} }

func TestGolden(t *testing.T) {
	importtest.Golden(t, imp(), "litellm", "sample.json")
	importtest.Golden(t, imp(), "litellm", "page.json")
}

func FuzzImport(f *testing.F) {
	importtest.Fuzz(f, imp, "litellm", "sample.json", "page.json", "sample.csv")
}

const good = `{"request_id":"r","call_type":"acompletion","prompt_tokens":5,"completion_tokens":2,"startTime":"2024-05-01T10:00:00Z"}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.jsonl", good, func(n int) string {
		return strings.Replace(good, "{", `{"note": "`+strings.Repeat("x", n)+`", `, 1)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, litellm.Detect, map[string]bool{
		good:             true,
		"[" + good + "]": true,
		`{"data":[{"request_id":"x","startTime":"y"}]}`: true,
		"request_id,startTime,prompt_tokens\n":          true,
		"request_id,arrival_timestamp,prompt_size\n":    false,
		`{"request_id":"x","timestamp":1}`:              false,
	})
}

// Nothing that names a person or a key is in the trace, unless that is asked for.
func TestPrivacy(t *testing.T) {
	path := importtest.Testdata + "/litellm/sample.json"
	r := importtest.Load(t, imp(), path)
	for _, row := range r.Rows {
		for k, v := range row.Attributes {
			for _, secret := range []string{"ann", "88dc", "192.0.2.1"} {
				if strings.Contains(k+v, secret) {
					t.Errorf("%s: %s", k, v)
				}
			}
		}
		if id := row.ClientID; id.Known && !strings.HasPrefix(id.Value, "client-") {
			t.Errorf("client %v", id)
		}
	}
	if r.Meta.Counts.Notes["private field metadata left out; --keep-private keeps it"] != 1 {
		t.Errorf("notes %v", r.Meta.Counts.Notes)
	}
	all := importtest.Load(t, &litellm.Importer{KeepPrivate: true}, path)
	if row := all.Rows[1]; row.ClientID.Value != "88dc28d0f030" || row.Attributes["requester_ip_address"] != `"192.0.2.1"` {
		t.Errorf("%+v", row)
	}
}

// The table and the API say the same.
func TestCSV(t *testing.T) {
	r := importtest.Load(t, imp(), importtest.Testdata+"/litellm/sample.csv")
	row := r.Rows[0]
	if len(r.Rows) != 2 || len(r.Rejected) != 1 || row.CachedTokens.Value != 16 || row.Messages.Value != `[{"role":"user","content":"hi, there"}]` || row.RecordedE2E.Value != 1500e6 || row.Session.Value != "s" ||
		row.ClientID != r.Rows[1].ClientID || r.Meta.Zone == "" {
		t.Errorf("%+v\nrejected %v", r.Rows, r.Rejected)
	}
}
