package azure_test

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/azure"
	"reprise/formats/importtest"
	"reprise/formats/rows"
	"reprise/trace"
)

func imp() formats.Importer { return &azure.Importer{} }

func TestGolden(t *testing.T) { importtest.Golden(t, imp(), "azure", "sample.csv") }

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "azure", "sample.csv") }

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00+00:00,1,2\n", func(n int) string {
		return "TIMESTAMP,ContextTokens,GeneratedTokens,Note\n2024-05-10 00:00:00+00:00,1,2," + strings.Repeat("x", n)
	})
	_, err := importtest.Try(imp(), importtest.Write(t, t.TempDir(), "x.csv", "TIMESTAMP,Tokens\n1,2\n"))
	if err == nil || !strings.Contains(err.Error(), `no column "ContextTokens"; the first line has: TIMESTAMP, Tokens`) || trace.Fix(err) == "" {
		t.Errorf("a table without the columns: %v", err)
	}
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, azure.Detect, map[string]bool{
		"TIMESTAMP,ContextTokens,GeneratedTokens\r\n":                   true,
		"\xef\xbb\xbfTIMESTAMP;GeneratedTokens;ContextTokens\n":         true,
		"TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n":           true,
		"TIMESTAMP,ContextTokens\n":                                     false,
		`{"TIMESTAMP":1,"ContextTokens":1,"GeneratedTokens":2}`:         false,
		"Timestamp,Model,Request tokens,Response tokens,Total tokens\n": false,
	})
}

// The published files: counts of the manifest, and written back byte for byte.
func TestPublishedFiles(t *testing.T) {
	for _, c := range []struct {
		file                string
		rows                int
		in, out, tick       int64
		first, last, images string
	}{
		{"AzureLLMInferenceTrace_code.csv", 8819, 18059974, 245896, 100, "2023-11-16T18:17:03.97996Z", "2023-11-16T19:14:19.928016Z", "0"},
		{"AzureLLMInferenceTrace_code_1week_head_tail.csv", 10, 24016, 180, 1000, "2024-05-10T00:00:00.00993Z", "2024-05-16T23:59:59.929501Z", "0"},
		{"AzureLMMInferenceTrace_multimodal_head_tail.csv", 10, 12859, 1395, 1000000, "2024-10-15T12:00:00.269Z", "2024-10-22T11:59:59.964Z", "some"},
	} {
		path := importtest.Shared(t, "azure", c.file)
		r := importtest.Load(t, imp(), path)
		in, out := r.Sums()
		if len(r.Rows) != c.rows || in != c.in || out != c.out || len(r.Rejected) > 0 || r.Meta.Counts.Read != int64(c.rows) {
			t.Errorf("%s: %d rows, %d in, %d out, rejected %v", c.file, len(r.Rows), in, out, r.Rejected)
		}
		at := func(row trace.Request) string {
			return time.Unix(0, r.Meta.EpochNS.Value+int64(row.Arrival.Value)).UTC().Format(time.RFC3339Nano)
		}
		if first, last := at(r.Rows[0]), at(r.Rows[len(r.Rows)-1]); first != c.first || last != c.last {
			t.Errorf("%s: from %s to %s, want %s to %s", c.file, first, last, c.first, c.last)
		}
		if tick := r.Meta.TickNS.Value; tick%c.tick != 0 && c.rows > 100 || tick == 0 {
			t.Errorf("%s: tick %d ns", c.file, tick)
		}
		var images int
		for _, row := range r.Rows {
			images += len(row.Media)
		}
		if (images > 0) != (c.images == "some") {
			t.Errorf("%s: %d rows with images", c.file, images)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, lost := r.Exported(t, azure.Exporter{})
		if got != string(want) || lost != nil {
			t.Errorf("%s: written back differs, lost %v", c.file, lost)
		}
	}
}

// Reuse is not recorded, which is not the same as none.
func TestNoPrefixes(t *testing.T) {
	r := importtest.Text(t, imp(), "x.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00,9,2\n")
	if r.Rows[0].Blocks != nil || r.Rows[0].Session.Known {
		t.Errorf("%+v", r.Rows[0])
	}
	if g := r.Meta.Guesses[0]; g.What != "zone" || g.Value != "UTC" || g.Flag != "--zone" {
		t.Errorf("guesses %+v", r.Meta.Guesses)
	}
	zone, err := rows.ParseZone("-07:30")
	if err != nil {
		t.Fatal(err)
	}
	there := importtest.Text(t, &azure.Importer{Zone: zone}, "x.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00,9,2\n2024-05-10 00:00:00Z,9,2\n")
	if got := there.Rows[1].Arrival.Value; got != 7*time.Hour+30*time.Minute || there.Meta.Guesses[0].Value != "-07:30" {
		t.Errorf("a row in a zone given is %v after one in UTC, guesses %v", got, there.Meta.Guesses)
	}
}

func TestExportOfOthers(t *testing.T) {
	r := importtest.Result{Data: traceOf(t, []trace.Request{
		{ID: 0, Operation: "chat", Arrival: trace.Some(time.Duration(0)), InputTokens: trace.Some(int64(5)), OutputTokens: trace.Some(int64(2)), Model: trace.Some("m"), Session: trace.Some("s"), Blocks: []uint64{1}, BlockTokens: trace.Some(int32(16))},
		{ID: 1, Operation: "chat", Arrival: trace.Some(1500 * time.Microsecond), InputTokens: trace.Some(int64(6)), OutputTokens: trace.Some(int64(0))},
		{ID: 2, Operation: "chat", Arrival: trace.Some(2 * time.Second), NewInputTokens: trace.Some(int64(6)), OutputTokens: trace.Some(int64(1))},
	})}
	got, lost := r.Exported(t, azure.Exporter{})
	const want = "TIMESTAMP,ContextTokens,GeneratedTokens\n1970-01-01 00:00:00+00:00,5,2\n1970-01-01 00:00:00.001500+00:00,6,0\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if s := strings.Join(lost, "; "); s != "model of 1 rows; prefix blocks of 1 rows; sessions and turns of 1 rows; whole row (no arrival, or no count of tokens) of 1 rows" {
		t.Errorf("lost %q", s)
	}
}

func traceOf(t *testing.T, list []trace.Request) []byte {
	var out bytes.Buffer
	w := trace.NewWriter(&out)
	b := trace.NewBatch()
	for i := range list {
		b.Append(&list[i])
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(trace.Meta{Clock: trace.ClockTrace, Format: "other"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What is imported, written and imported again is the same.
func TestRoundTrip(t *testing.T) {
	first := importtest.Load(t, imp(), importtest.Testdata+"/azure/sample.csv")
	text, lost := first.Exported(t, azure.Exporter{})
	again := importtest.Text(t, imp(), "again.csv", text)
	if len(again.Rows) != len(first.Rows) || len(again.Rejected) > 0 {
		t.Fatalf("%d rows of %d, rejected %v, lost %v\n%s", len(again.Rows), len(first.Rows), again.Rejected, lost, text)
	}
	for i, want := range first.Rows {
		got := again.Rows[i]
		if got.Arrival != want.Arrival || got.InputTokens != want.InputTokens || got.OutputTokens != want.OutputTokens || !reflect.DeepEqual(got.Attributes, want.Attributes) || lost != nil {
			t.Errorf("row %d: %+v, want %+v", i, got, want)
		}
	}
}

// Whatever is accepted comes back equal.
func FuzzRoundTrip(f *testing.F) {
	data, err := os.ReadFile(importtest.Testdata + "/azure/sample.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15T12:00:00.269Z,0,770,491\n1969-10-15T12:00:00.2699Z,2,770,491\n")
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:03.97996001,4808,10")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		first, err := importtest.Try(imp(), importtest.Write(t, dir, "x.csv", text))
		if err != nil {
			return
		}
		out, lost := first.Exported(t, azure.Exporter{})
		again, err := importtest.Try(imp(), importtest.Write(t, dir, "y.csv", out))
		if err != nil || len(again.Rows) != len(first.Rows) || len(again.Rejected) > 0 || lost != nil {
			t.Fatalf("%q became %q: %v, %d of %d rows, rejected %v, lost %v", text, out, err, len(again.Rows), len(first.Rows), again.Rejected, lost)
		}
		for i, want := range first.Rows {
			got := again.Rows[i]
			got.SourceFile, got.SourceRow, got.ID = want.SourceFile, want.SourceRow, want.ID
			if !reflect.DeepEqual(got, want) || again.Meta.EpochNS != first.Meta.EpochNS {
				t.Fatalf("%q became %q:\n got %+v\nwant %+v", text, out, got, want)
			}
		}
	})
}

func BenchmarkImport(b *testing.B) {
	var text strings.Builder
	text.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for i := range 50_000 {
		text.WriteString(time.Unix(1700000000, int64(i)*1e7).UTC().Format("2006-01-02 15:04:05.0000000"))
		text.WriteString(",4808,10\n")
	}
	path := importtest.Write(b, b.TempDir(), "x.csv", text.String())
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := importtest.Try(imp(), path); err != nil {
			b.Fatal(err)
		}
	}
}
