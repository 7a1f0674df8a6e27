package baseten_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"

	"reprise/formats"
	"reprise/formats/baseten"
	"reprise/formats/source"
	"reprise/trace"
)

// TestRefusals holds the error and the hint of each file that is refused.
func TestRefusals(t *testing.T) {
	rec := record(t, plainTypes(), plain())
	good, ipcFile := asParquet(t, rec), asArrow(t, rec)
	table := func(fields ...arrow.Field) []byte {
		return asParquet(t, record(t, fields, []cells{base(1, nil)}))
	}
	text := arrow.BinaryTypes.String
	gz := func(data []byte) []byte {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		w.Write(data)
		w.Close()
		return buf.Bytes()
	}
	var got strings.Builder
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"empty.parquet", nil},
		{"lfs.parquet", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")},
		{"text.jsonl", []byte(`{"timestamp": 1}` + "\n")},
		{"cut.parquet", good[:len(good)/2]},
		{"magic.parquet", []byte("PAR1")},
		{"cut.parquet.gz", gz(good)[:200]},
		{"cut.arrow", ipcFile[:len(ipcFile)/2]},
		{"magic.arrow", []byte("ARROW1\x00\x00")},
		{"cut.arrows", asStream(t, rec)[:100]},
		{"no-prompt.parquet", table(only(plainTypes(), "timestamp_start_unix_ms", "input_tokens", "output_tokens", "tier")...)},
		{"mooncake.parquet", table(arrow.Field{Name: "timestamp", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "input_length", Type: arrow.PrimitiveTypes.Int64})},
		{"other.arrow", asArrow(t, record(t, []arrow.Field{{Name: "requests", Type: text, Nullable: true}}, []cells{{}}))},
		{"tokens-as-text.parquet", table(field("input_tokens", text)...)},
		{"hashes-as-double.parquet", table(field("total_hashes", arrow.ListOf(arrow.PrimitiveTypes.Float64))...)},
		{"prompt-as-list.arrow", asArrow(t, record(t, field("prompt", arrow.ListOf(text)), []cells{}))},
		{"twice.arrow", asArrow(t, record(t, append(plainTypes(), plainTypes()[1]), []cells{base(1, nil)}))},
		{"no-rows.parquet", asParquet(t, record(t, plainTypes(), nil))},
	} {
		_, err := tryImport(t, &baseten.Importer{}, save(t, c.name, c.data))
		if err == nil {
			t.Errorf("%s is read", c.name)
			continue
		}
		message := err.Error()
		if i := strings.Index(message, c.name); i >= 0 {
			message = message[i:] // without the directory
		}
		got.WriteString(message + "\n  hint: " + trace.Fix(err) + "\n")
	}
	golden(t, "refused.golden", got.String())
}

// TestDamagedPage has a footer that is whole and a page that is not: the rows
// before it are read, and the error says where reading ended.
func TestDamagedPage(t *testing.T) {
	rec := record(t, only(plainTypes(), required...), []cells{base(1, nil), base(2, nil), base(3, nil), base(4, nil)})
	data := asParquet(t, rec, parquet.WithDictionaryDefault(false))
	at := bytes.LastIndex(data[:len(data)-500], []byte("p4"))
	if at < 0 {
		at = bytes.LastIndex(data, []byte("\x02\x00\x00\x00p4"))
	}
	clear(data[at-60 : at+6])
	_, err := tryImport(t, &baseten.Importer{}, save(t, "x.parquet", data))
	if err == nil || !strings.Contains(err.Error(), "x.parquet: row 3: ") || trace.Fix(err) == "" {
		t.Errorf("error %v, hint %q", err, trace.Fix(err))
	}
}

// TestDetect tells the tables of this format from others.
func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"x.parquet": {asParquet(t, record(t, plainTypes(), plain())), true},
		"x.arrow":   {asArrow(t, record(t, plainTypes(), plain())), true},
		"lacks one": {asParquet(t, record(t, only(plainTypes(), required[0], required[2], required[3]), plain())), true}, // so that the import says which
		"other":     {asParquet(t, record(t, only(plainTypes(), required[1:]...), plain())), false},
		"text":      {[]byte(`{"timestamp_start_unix_ms": 1, "prompt": "p"}` + "\n"), false},
	} {
		h, err := save(t, name, c.data).Head()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := baseten.Detect(h); ok != c.want {
			t.Errorf("%s: detected %v", name, ok)
		}
	}
	f, _, err := formats.Detect(save(t, "x.parquet", asParquet(t, record(t, plainTypes(), plain()))))
	if err != nil || f.Name != "baseten" {
		t.Errorf("of all formats: %q, %v", f.Name, err)
	}
}

// TestMemory reads one row group with 2.2 GiB of prompts, which a dictionary
// stores once: neither the size of a row group nor what repeats in it may show
// in memory.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("copies 2.2 GiB")
	}
	const rows = 2250
	long := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	table := make([]cells, rows)
	for i := range table {
		table[i] = base(int64(i), cells{"prompt": long})
	}
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	fields := only(field("prompt", dict), required...)
	data := asParquet(t, record(t, fields, table), parquet.WithMaxRowGroupLength(rows))
	src := save(t, "x.parquet", data)
	var peak uint64
	var n int
	_, err := (&baseten.Importer{}).Import(t.Context(), []*source.Source{src}, func(b *trace.Batch) error {
		n += b.Len()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		return nil
	}, func(e *trace.RowError) error { return e })
	if err != nil || n != rows {
		t.Fatalf("%d rows, %v", n, err)
	}
	if peak > 300<<20 {
		t.Errorf("%d MiB in use at the peak", peak>>20)
	}
}

// TestStop hands on the error of the caller, and ends when the context does.
func TestStop(t *testing.T) {
	data := asParquet(t, record(t, plainTypes(), append(plain(), base(1, cells{"prompt": nil}))))
	stop := errors.New("stop")
	none := func(*trace.Batch) error { return nil }
	_, err := (&baseten.Importer{}).Import(t.Context(), []*source.Source{save(t, "x.parquet", data)}, none, func(e *trace.RowError) error { return stop })
	if err != stop {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = (&baseten.Importer{}).Import(ctx, []*source.Source{save(t, "x.parquet", data)}, none, func(e *trace.RowError) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := tryImport(t, &baseten.Importer{BlockTokens: -1}); err == nil || err.Error() != "block size -1: must be above 0" {
		t.Errorf("error %v", err)
	}
}

// TestExportOfOthers writes rows that came from another format: what the table
// cannot hold is said.
func TestExportOfOthers(t *testing.T) {
	full := trace.Request{
		Operation: trace.OpChat, Arrival: trace.Some[time.Duration](5e6), Session: trace.Some("s1"), Prompt: trace.Some("hello"), InputTokens: trace.Some[int64](4), OutputTokens: trace.Some[int64](0),
		Blocks: []uint64{1 << 63}, BlockTokens: trace.Some[int32](16), BlockTail: trace.Some(trace.TailPartial), Status: trace.Some(trace.StatusCancelled), Model: trace.Some("m"), ClientID: trace.Some("c"),
		RecordedE2E: trace.Some[time.Duration](1_500_000), Streaming: trace.Some(true), Attributes: map[string]string{"user": `"u"`},
	}
	lacking := full
	lacking.ID, lacking.Prompt = 1, trace.Optional[string]{}
	rows := func(yield func(trace.Request, error) bool) { _ = yield(full, nil) && yield(lacking, nil) }
	var buf bytes.Buffer
	lost, err := baseten.Exporter{}.Export(t.Context(), trace.Meta{Clock: trace.ClockTrace, Format: "otel"}, rows, &buf)
	if err != nil {
		t.Fatal(err)
	}
	want := "the date is unknown: times count from 1970-01-01; attributes of 1 rows; streaming of 1 rows; the rows without literal prompt, which are left out: of 1 rows"
	if got := strings.Join(lost, "; "); got != want {
		t.Errorf("lost %s\nwant %s", got, want)
	}
	got := lineOf(content(t, buf.Bytes()))
	if want := `[{"block_size":16,"duration_e2e_ms":1.5,"input_tokens":4,"model_name":"m","org_id":"c","output_tokens":0,"prompt":"hello","provided_session_id":"s1","request_canceled":1,"timestamp_start_unix_ms":5,"total_hashes":[9223372036854775808]}]`; got != want {
		t.Errorf("wrote %s\nwant  %s", got, want)
	}

	only := func(yield func(trace.Request, error) bool) { yield(lacking, nil) }
	if _, err := (baseten.Exporter{}).Export(t.Context(), trace.Meta{Clock: trace.ClockTrace}, only, &buf); err == nil || trace.Fix(err) == "" {
		t.Errorf("a trace without prompts is written: %v", err)
	}
	if _, err := (baseten.Exporter{}).Export(t.Context(), trace.Meta{Clock: trace.ClockSession}, rows, &buf); err == nil || trace.Fix(err) == "" {
		t.Errorf("a trace with session clocks is written: %v", err)
	}
}

// TestExportOfCopies writes the new sessions of rows that scaling made.
func TestExportOfCopies(t *testing.T) {
	in := mustImport(t, &baseten.Importer{}, "x.parquet", asParquet(t, record(t, plainTypes(), plain())))
	rows := func(yield func(trace.Request, error) bool) {
		for _, r := range in.rows {
			if r.Session.Known {
				r.Copy, r.OriginID, r.Session = trace.Some[int32](1), trace.Some(r.ID), trace.Some(r.Session.Value+"~1")
			}
			if !yield(r, nil) {
				return
			}
		}
	}
	var buf bytes.Buffer
	if _, err := (baseten.Exporter{}).Export(t.Context(), in.meta, rows, &buf); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range content(t, buf.Bytes()) {
		got = append(got, lineOf(r["provided_session_id"])+lineOf(r["poor_man_session_id"]))
	}
	if want := `"7~1"null "8~1"null "8~1"null nullnull "7~1"null "7~1"null`; strings.Join(got, " ") != want {
		t.Errorf("sessions %s, want %s", strings.Join(got, " "), want)
	}
}

// FuzzImport reads damaged tables: no panic, and a refused row has a place. No
// seed has views: arrow-go v18.8 asks for all memory where a record batch has a
// damaged count of their buffers.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"sample.parquet", "sample.arrow"} {
		data, err := os.ReadFile(filepath.Join(testdata, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	rec := record(f, plainTypes(), plain())
	f.Add(asStream(f, rec))
	f.Add(asArrow(f, record(f, retyped(map[string]arrow.DataType{"prompt": arrow.BinaryTypes.LargeString, "total_hashes": arrow.LargeListOf(arrow.PrimitiveTypes.Uint64)}), plain())))
	f.Add(asArrow(f, record(f, field("model_name", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}), plain())))
	f.Fuzz(func(t *testing.T, data []byte) {
		src := save(t, "x", data)
		var n int64
		meta, err := (&baseten.Importer{}).Import(t.Context(), []*source.Source{src}, func(b *trace.Batch) error {
			n += int64(b.Len())
			return nil
		}, func(e *trace.RowError) error {
			if e.Line < 1 || e.Err == nil || e.File == "" || e.Reason == "" {
				t.Errorf("row error %+v", e)
			}
			n++
			return nil
		})
		if err == nil && meta.Counts.Read != n {
			t.Errorf("read %d rows, handed on %d", meta.Counts.Read, n)
		}
	})
}
