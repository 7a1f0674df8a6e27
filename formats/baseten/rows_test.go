package baseten_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"reprise/formats/baseten"
	"reprise/trace"
)

// base returns a row with the required columns and what is given on top.
func base(at int64, more cells) cells {
	row := cells{"timestamp_start_unix_ms": at, "prompt": fmt.Sprint("p", at), "input_tokens": int64(100), "output_tokens": int64(10)}
	for k, v := range more {
		row[k] = v
	}
	return row
}

// field changes the type of one column of the plain table.
func field(name string, t arrow.DataType) []arrow.Field {
	return retyped(map[string]arrow.DataType{name: t})
}

var required = []string{"timestamp_start_unix_ms", "prompt", "input_tokens", "output_tokens"}

// TestArrivalTypes holds the arrival of each physical type to the nanosecond,
// there and back.
func TestArrivalTypes(t *testing.T) {
	p := arrow.PrimitiveTypes
	for _, c := range []struct {
		name string
		typ  arrow.DataType
		ms   any
		want int64 // Unix ns
	}{
		{"int64", p.Int64, int64(1_760_000_000_123), 1_760_000_000_123_000_000},
		{"int64, 1970", p.Int64, int64(0), 0},
		{"int64, largest", p.Int64, int64(9_223_372_036_854), 9_223_372_036_854_000_000},
		{"int32", p.Int32, int64(2_000_000_001), 2_000_000_001_000_000},
		{"double", p.Float64, 1_760_000_000_123.5, 1_760_000_000_123_500_000},
		{"double, finer than ns", p.Float64, 1.23456789012345, 1_234_568},
		{"timestamp[s]", &arrow.TimestampType{Unit: arrow.Second}, int64(1_760_000_000_000), 1_760_000_000_000_000_000},
		{"timestamp[ms]", &arrow.TimestampType{Unit: arrow.Millisecond}, int64(1_760_000_000_123), 1_760_000_000_123_000_000},
		{"timestamp[us]", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Berlin"}, 1_760_000_000_123.5, 1_760_000_000_123_500_000},
		{"timestamp[ns]", &arrow.TimestampType{Unit: arrow.Nanosecond}, int64(1_760_000_000_123), 1_760_000_000_123_000_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := record(t, field("timestamp_start_unix_ms", c.typ), []cells{base(0, cells{"timestamp_start_unix_ms": c.ms})})
			in := mustImport(t, &baseten.Importer{}, "x.arrow", asArrow(t, rec))
			if got := in.meta.EpochNS; got != trace.Some(c.want) {
				t.Errorf("Unix time of the row is %v, want %d", got, c.want)
			}
			again := mustImport(t, &baseten.Importer{}, "x.parquet", exported(t, in))
			if again.meta.EpochNS != in.meta.EpochNS {
				t.Errorf("after export %v, want %v", again.meta.EpochNS, in.meta.EpochNS)
			}
		})
	}
}

// TestNanoseconds keeps arrivals that milliseconds in a double cannot hold.
func TestNanoseconds(t *testing.T) {
	at := arrow.Timestamp(1_760_000_000_123_456_789)
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(only(field("timestamp_start_unix_ms", &arrow.TimestampType{Unit: arrow.Nanosecond}), required...), nil))
	b.Field(0).(*array.TimestampBuilder).Append(at)
	fill(t, b.Field(1), "p")
	fill(t, b.Field(2), int64(1))
	fill(t, b.Field(3), int64(1))
	in := mustImport(t, &baseten.Importer{}, "x.arrow", asArrow(t, b.NewRecordBatch()))
	again := mustImport(t, &baseten.Importer{}, "x.parquet", exported(t, in))
	if got := again.meta.EpochNS; got != trace.Some(int64(at)) {
		t.Errorf("after export %v, want %d", got, at)
	}
}

// TestBadRows holds the error of each way for a row to be refused; a good row
// stands at the end of each table.
func TestBadRows(t *testing.T) {
	p := arrow.PrimitiveTypes
	var got strings.Builder
	for _, c := range []struct {
		fields []arrow.Field
		row    cells
	}{
		{plainTypes(), cells{"timestamp_start_unix_ms": nil}},
		{plainTypes(), cells{"timestamp_start_unix_ms": int64(-1)}},
		{plainTypes(), cells{"timestamp_start_unix_ms": int64(math.MaxInt64)}},
		{field("timestamp_start_unix_ms", p.Uint64), cells{"timestamp_start_unix_ms": int64(-1)}},
		{field("timestamp_start_unix_ms", p.Float64), cells{"timestamp_start_unix_ms": math.Inf(1)}},
		{field("timestamp_start_unix_ms", p.Float64), cells{"timestamp_start_unix_ms": nil}},
		{field("timestamp_start_unix_ms", &arrow.TimestampType{Unit: arrow.Second}), cells{"timestamp_start_unix_ms": int64(math.MaxInt64)}},
		{plainTypes(), cells{"prompt": nil}},
		{field("prompt", arrow.BinaryTypes.Binary), cells{"prompt": "a\xff"}},
		{plainTypes(), cells{"input_tokens": nil}},
		{plainTypes(), cells{"input_tokens": int64(-5)}},
		{field("input_tokens", p.Float64), cells{"input_tokens": nil}},
		{field("input_tokens", p.Float64), cells{"input_tokens": 1.5}},
		{field("input_tokens", p.Uint64), cells{"input_tokens": int64(-1)}},
		{plainTypes(), cells{"output_tokens": nil}},
		{plainTypes(), cells{"output_tokens": int64(-1)}},
		{plainTypes(), cells{"total_hashes": []any{int64(1), nil, int64(3)}, "block_size": int64(64)}},
		{field("total_hashes", arrow.LargeListOf(p.Uint64)), cells{"total_hashes": []any{nil}, "block_size": int64(64)}},
		{plainTypes(), cells{"total_hashes": []any{int64(1)}, "block_size": int64(0)}},
		{plainTypes(), cells{"total_hashes": []any{int64(1)}, "block_size": int64(1) << 31}},
		{plainTypes(), cells{"request_canceled": int64(2)}},
		{field("duration_e2e_ms", p.Float64), cells{"duration_e2e_ms": math.Inf(-1)}},
		{field("cached_tokens_reference", p.Float64), cells{"cached_tokens_reference": 0.5}},
		{field("output_text", arrow.BinaryTypes.LargeBinary), cells{"output_text": "\xfe"}},
	} {
		in := mustImport(t, &baseten.Importer{}, "bad.arrow", asArrow(t, record(t, c.fields, []cells{base(5, c.row), base(7, nil)})))
		if len(in.rejected) != 1 || len(in.rows) != 1 {
			t.Errorf("%v: %d rejected, %d rows", c.row, len(in.rejected), len(in.rows))
			continue
		}
		e := in.rejected[0]
		fmt.Fprintf(&got, "%v\n", e)
		if e.Fix != "" {
			fmt.Fprintf(&got, "  hint: %s\n", e.Fix)
		}
		fmt.Fprintf(&got, "  counted as: %s\n  raw: %s\n", e.Reason, e.Raw)
		if in.meta.Counts.Read != 2 || in.meta.Counts.Rejected[e.Reason] != 1 || in.rows[0].SourceRow != trace.Some(int64(2)) {
			t.Errorf("%v: counts %+v, source row %v", c.row, in.meta.Counts, in.rows[0].SourceRow)
		}
	}
	golden(t, "bad.golden", got.String())
}

// TestZeroOutput keeps cancelled and empty rows apart, whatever the type of the
// flag.
func TestZeroOutput(t *testing.T) {
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int8, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Float64} {
		in := mustImport(t, &baseten.Importer{}, "x.parquet", asParquet(t, record(t, field("request_canceled", typ), []cells{
			base(1, cells{"request_canceled": int64(0)}),
			base(2, cells{"request_canceled": int64(1), "output_tokens": int64(0), "duration_e2e_ms": int64(250)}),
			base(3, cells{"request_canceled": int64(1), "output_tokens": int64(7)}),
			base(4, cells{"output_tokens": int64(0)}),
			base(5, nil),
		})))
		want := []string{trace.StatusOK, trace.StatusCancelled, trace.StatusCancelled, trace.StatusEmpty, trace.StatusOK}
		for i, r := range in.rows {
			if r.Status != trace.Some(want[i]) {
				t.Errorf("%s: row %d is %v, want %s", typ, i, r.Status, want[i])
			}
		}
		if len(in.rows) != 5 {
			t.Fatalf("%s: %d rows", typ, len(in.rows))
		}
		if got := in.rows[1].Cancel; got != trace.Some(250*time.Millisecond) {
			t.Errorf("%s: cancelled after %v", typ, got)
		}
		if in.rows[2].Cancel.Known || in.rows[3].Cancel.Known {
			t.Errorf("%s: a cancel time from nowhere", typ)
		}
		for note, n := range map[string]int64{"cancelled requests, kept with status cancelled": 2, "cancelled requests without duration_e2e_ms: when is unknown": 1, "requests with output_tokens 0 that were not cancelled, kept with status empty": 1} {
			if in.meta.Counts.Notes[note] != n {
				t.Errorf("%s: notes %v", typ, in.meta.Counts.Notes)
			}
		}
	}
}

// TestHashesWithoutBlockSize keeps them as attributes, or takes the size that
// was given; either way they are written back.
func TestHashesWithoutBlockSize(t *testing.T) {
	rows := []cells{base(1, cells{"total_hashes": []any{int64(-7), int64(8)}}), base(2, cells{"total_hashes": []any{}}), base(3, cells{"block_size": int64(-1)})}
	data := asParquet(t, record(t, plainTypes(), rows))
	in := mustImport(t, &baseten.Importer{}, "x.parquet", data)
	if r := in.rows[0]; r.Blocks != nil || r.Attributes["total_hashes"] != "[-7,8]" {
		t.Errorf("blocks %v, attributes %v", r.Blocks, r.Attributes)
	}
	if r := in.rows[1]; r.Blocks == nil || len(r.Blocks) != 0 {
		t.Errorf("an empty list became %v", r.Blocks)
	}
	given := mustImport(t, &baseten.Importer{BlockTokens: 64}, "x.parquet", data)
	if r := given.rows[0]; len(r.Blocks) != 2 || r.BlockTokens != trace.Some(int32(64)) || r.BlockTail != trace.Some(trace.TailPartial) {
		t.Errorf("blocks %v of %v, %v", r.Blocks, r.BlockTokens, r.BlockTail)
	}
	for _, im := range []imported{in, given} {
		if got, want := content(t, exported(t, im)), content(t, data); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("content %v, want %v", got, want)
		}
	}
}

// TestNegativeMeasurements reads -1 as unknown and writes it back.
func TestNegativeMeasurements(t *testing.T) {
	data := asParquet(t, record(t, plainTypes(), []cells{base(1, cells{"duration_e2e_ms": int64(-1), "duration_ttft_ms": int64(-1), "cached_tokens_reference": int64(-1)})}))
	in := mustImport(t, &baseten.Importer{}, "x.parquet", data)
	if r := in.rows[0]; r.RecordedE2E.Known || r.RecordedTTFT.Known || r.CachedTokens.Known {
		t.Errorf("taken as known: %v %v %v", r.RecordedE2E, r.RecordedTTFT, r.CachedTokens)
	}
	if got, want := content(t, exported(t, in)), content(t, data); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("content %v, want %v", got, want)
	}
}

// TestFixedSizeLists has lists of one length and null ones.
func TestFixedSizeLists(t *testing.T) {
	for _, elem := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Int32} {
		rows := []cells{base(1, cells{"total_hashes": []any{int64(1), int64(2)}, "block_size": int64(64)}), base(2, nil), base(3, cells{"total_hashes": []any{int64(3), int64(4)}, "block_size": int64(64)})}
		rec := record(t, field("total_hashes", arrow.FixedSizeListOf(2, elem)), rows)
		in := mustImport(t, &baseten.Importer{}, "x.arrow", asArrow(t, rec))
		if len(in.rows) != 3 || fmt.Sprint(in.rows[0].Blocks, in.rows[2].Blocks) != "[1 2] [3 4]" || in.rows[1].Blocks != nil {
			t.Errorf("%s: %s", elem, lines(t, in.rows))
		}
	}
}

// TestNullColumns has columns of type null, as pandas writes those without a
// value, and a table with the required columns only.
func TestNullColumns(t *testing.T) {
	types := map[string]arrow.DataType{}
	for _, f := range plainTypes()[4:] {
		types[f.Name] = arrow.Null
	}
	all := mustImport(t, &baseten.Importer{}, "x.arrow", asArrow(t, record(t, retyped(types), []cells{base(1, nil), base(2, nil)})))
	few := mustImport(t, &baseten.Importer{}, "x.arrow", asArrow(t, record(t, only(plainTypes(), required...), []cells{base(1, nil), base(2, nil)})))
	same(t, few, all)
	if len(all.rows) != 2 || all.rows[1].Session.Known || all.rows[1].Turn.Known || all.rows[1].Blocks != nil {
		t.Errorf("rows: %s", lines(t, all.rows))
	}
	exported(t, few)
}
