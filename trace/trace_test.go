package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

// randomRequest fills every column, or leaves it unknown, at random.
func randomRequest(r *rand.Rand, id int64) trace.Request {
	str := func() trace.Optional[string] {
		switch r.IntN(4) {
		case 0:
			return trace.Optional[string]{}
		case 1:
			return trace.Some("")
		}
		return trace.Some(fmt.Sprintf("text-%d-é", r.IntN(50)))
	}
	num := func() trace.Optional[int64] {
		if r.IntN(3) == 0 {
			return trace.Optional[int64]{}
		}
		return trace.Some(r.Int64())
	}
	small := func() trace.Optional[int32] {
		if r.IntN(3) == 0 {
			return trace.Optional[int32]{}
		}
		return trace.Some(r.Int32())
	}
	dur := func() trace.Optional[time.Duration] {
		v := num()
		return trace.Optional[time.Duration]{Value: time.Duration(v.Value), Known: v.Known}
	}
	req := trace.Request{
		ID: id, OriginID: num(), Copy: small(), SourceID: str(), Operation: "chat", Arrival: dur(),
		Session: str(), Turn: small(), Delay: dur(), Agent: str(), ClientID: str(), Model: str(), Choices: small(),
		InputTokens: num(), NewInputTokens: num(), OutputTokens: num(), ReasoningTokens: num(),
		MaxOutputTokens: num(), CachedTokens: num(), CacheWriteTokens: num(),
		BlockTokens: small(), BlockTail: str(),
		Prompt: str(), Messages: str(), MessagesMode: str(), Tools: str(), Body: str(), Extra: str(), OutputText: str(), OutputMessage: str(),
		RecordedTTFT: dur(), RecordedE2E: dur(), Cancel: dur(), Status: str(), FinishReason: str(), SourceFile: str(), SourceRow: num(),
	}
	if r.IntN(2) == 0 {
		req.Streaming = trace.Some(r.IntN(2) == 0)
	}
	if r.IntN(3) > 0 {
		req.Blocks = []uint64{}
		for range r.IntN(40) {
			req.Blocks = append(req.Blocks, r.Uint64())
		}
	}
	if r.IntN(3) > 0 {
		req.After = []trace.Dependency{}
		for range r.IntN(3) {
			req.After = append(req.After, trace.Dependency{ID: r.Int64(), Kind: trace.AfterTurn})
		}
	}
	if r.IntN(3) > 0 {
		req.Media = []trace.Media{}
		for range r.IntN(3) {
			req.Media = append(req.Media, trace.Media{Kind: "image", Count: small(), Tokens: num()})
		}
	}
	if r.IntN(3) > 0 {
		req.Attributes = map[string]string{}
		for range r.IntN(3) {
			req.Attributes[fmt.Sprint("k", r.IntN(9))] = fmt.Sprint(r.IntN(9))
		}
	}
	return req
}

func write(t testing.TB, rows []trace.Request, meta trace.Meta, batch int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := trace.NewWriter(&buf)
	b := trace.NewBatch()
	for part := range slices.Chunk(rows, batch) {
		b.Reset()
		for i := range part {
			b.Append(&part[i])
		}
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(meta); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func open(t testing.TB, data []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "t.parquet")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readAll(t testing.TB, data []byte) []trace.Request {
	t.Helper()
	r := open(t, data)
	defer r.Close()
	var rows []trace.Request
	for req, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, req)
	}
	return rows
}

func TestWrittenRowsReadBackEqual(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []trace.Request
	for i := range 3_000 {
		rows = append(rows, randomRequest(rng, int64(i)))
	}
	seed := uint64(7)
	meta := trace.Meta{
		Clock: trace.ClockNone, Format: "made", EpochNS: trace.Some(int64(5)), TickNS: trace.Some(int64(1e6)),
		Counts:  trace.Counts{Read: 3_001, Rejected: map[string]int64{"short": 1}},
		Guesses: []trace.Guess{{What: "unit", Value: "ms", Evidence: "fits"}},
		History: []trace.Step{{Command: "trace import", Version: "1", Seed: &seed, Inputs: []trace.Input{{Name: "a", SHA256: "00", Bytes: 3}}}},
	}
	data := write(t, rows, meta, 700)
	got := readAll(t, data)
	if len(got) != len(rows) {
		t.Fatalf("read %d rows, wrote %d", len(got), len(rows))
	}
	for i := range rows {
		if !reflect.DeepEqual(got[i], rows[i]) {
			t.Fatalf("row %d:\n got %+v\nwant %+v", i, got[i], rows[i])
		}
	}
	meta.Counts.Kept = 3_000
	if gotMeta := open(t, data).Meta(); !reflect.DeepEqual(gotMeta, meta) {
		t.Errorf("meta:\n got %+v\nwant %+v", gotMeta, meta)
	}
	if again := write(t, rows, meta, 700); !bytes.Equal(again, data) {
		t.Error("the same rows gave other bytes")
	}
}

// Null, empty and filled lists must be apart in another reader too.
func TestListsInAnotherReader(t *testing.T) {
	rows := []trace.Request{
		{ID: 1, Operation: "chat"},
		{ID: 2, Operation: "chat", Blocks: []uint64{}},
		{ID: 3, Operation: "chat", Blocks: []uint64{1, math.MaxUint64}, BlockTokens: trace.Some(int32(16))},
	}
	data := write(t, rows, trace.Meta{Clock: trace.ClockNone}, 10)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	pages := f.RowGroups()[0].ColumnChunks()
	leaf, _ := f.Schema().Lookup("block_ids", "list", "element")
	page, err := pages[leaf.ColumnIndex].Pages().ReadPage()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]parquet.Value, 10)
	n, err := page.Values().ReadValues(values)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	var levels []int
	for _, v := range values[:n] {
		levels = append(levels, v.DefinitionLevel())
	}
	if want := []int{0, 1, 2, 2}; !slices.Equal(levels, want) {
		t.Errorf("definition levels %v, want %v", levels, want)
	}
	if got := values[3].Uint64(); got != math.MaxUint64 {
		t.Errorf("id %d lost bits", got)
	}
}

func TestLargeTraceHasSeveralRowGroups(t *testing.T) {
	rows := make([]trace.Request, 70)
	for i := range rows {
		rows[i] = trace.Request{ID: int64(i), Operation: "chat", Prompt: trace.Some(strings.Repeat(fmt.Sprint(i, " "), 1<<19))}
	}
	data := write(t, rows, trace.Meta{Clock: trace.ClockNone}, 7)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.RowGroups()); n < 2 {
		t.Errorf("%d row groups for 80 MB of text", n)
	}
	for i, got := range readAll(t, data) {
		if got.Prompt != rows[i].Prompt {
			t.Fatalf("row %d: prompt differs", i)
		}
	}
}

func TestNotATrace(t *testing.T) {
	type other struct{ A int64 }
	var foreign bytes.Buffer
	w := parquet.NewGenericWriter[other](&foreign)
	w.Write([]other{{1}})
	w.Close()
	for name, data := range map[string][]byte{"text": []byte("hello, this is no Parquet"), "empty": {}, "foreign": foreign.Bytes()} {
		_, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "x")
		if err == nil {
			t.Errorf("%s: read as a trace", name)
		} else if !strings.Contains(trace.Fix(err), "reprise trace import x") {
			t.Errorf("%s: no way out in %v", name, err)
		}
	}
}

func TestSorterSpills(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 120_000
	var keys []trace.Key
	s := &trace.Sorter{Memory: 2 << 20, Dir: t.TempDir()}
	defer s.Close()
	b := trace.NewBatch()
	for i := range n {
		keys = append(keys, trace.Key{Major: int64(rng.IntN(50)), Minor: int64(rng.IntN(20))})
		b.Append(&trace.Request{ID: int64(i), Operation: "chat", Blocks: []uint64{uint64(i)}})
	}
	for i, k := range keys {
		if err := s.Add(b, i, k); err != nil {
			t.Fatal(err)
		}
	}
	want := make([]int, n)
	for i := range want {
		want[i] = i
	}
	slices.SortStableFunc(want, func(a, b int) int { return keys[a].Compare(keys[b]) })
	i := 0
	err := s.Sorted(func(b *trace.Batch) error {
		for row := range b.Len() {
			req := b.Row(row)
			if req.ID != int64(want[i]) || req.Blocks[0] != uint64(want[i]) {
				return fmt.Errorf("position %d: id %d, want %d", i, req.ID, want[i])
			}
			i++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if i != n {
		t.Errorf("%d of %d rows came back", i, n)
	}
}

func TestCheckFinds(t *testing.T) {
	ok := func(id int64, at time.Duration) trace.Request {
		return trace.Request{ID: id, Operation: "chat", Arrival: trace.Some(at)}
	}
	with := func(r trace.Request, change func(*trace.Request)) trace.Request { change(&r); return r }
	for _, c := range []struct {
		name  string
		clock string
		rows  []trace.Request
		want  string // field; "" = nothing
	}{
		{"good", trace.ClockTrace, []trace.Request{ok(0, 0), ok(1, 5)}, ""},
		{"id twice", trace.ClockTrace, []trace.Request{ok(0, 0), ok(0, 5)}, "id"},
		{"unsorted", trace.ClockTrace, []trace.Request{ok(0, 0), ok(1, 5), ok(2, 3)}, "arrival_ns"},
		{"not from 0", trace.ClockTrace, []trace.Request{ok(0, 4), ok(1, 5)}, "arrival_ns"},
		{"no arrivals", trace.ClockTrace, []trace.Request{{ID: 1, Operation: "chat"}}, "arrival_ns"},
		{"clockless arrival", trace.ClockNone, []trace.Request{ok(0, 0)}, "arrival_ns"},
		{"session start", trace.ClockSession, []trace.Request{with(ok(0, 3), func(r *trace.Request) { r.Session = trace.Some("s") })}, "arrival_ns"},
		{"session split", trace.ClockSession, []trace.Request{
			with(ok(0, 0), func(r *trace.Request) { r.Session = trace.Some("s") }),
			with(ok(1, 0), func(r *trace.Request) { r.Session = trace.Some("u") }),
			with(ok(2, 1), func(r *trace.Request) { r.Session = trace.Some("s") })}, "session_id"},
		{"after missing", trace.ClockTrace, []trace.Request{with(ok(0, 0), func(r *trace.Request) { r.After = []trace.Dependency{{ID: 9, Kind: "turn"}} })}, "after"},
		{"after self", trace.ClockTrace, []trace.Request{with(ok(0, 0), func(r *trace.Request) { r.After = []trace.Dependency{{ID: 0, Kind: "turn"}} })}, "after"},
		{"after kind", trace.ClockTrace, []trace.Request{ok(1, 0), with(ok(0, 0), func(r *trace.Request) { r.After = []trace.Dependency{{ID: 1, Kind: "x"}} })}, "after"},
		{"negative", trace.ClockTrace, []trace.Request{with(ok(0, 0), func(r *trace.Request) { r.InputTokens = trace.Some(int64(-1)) })}, "input_tokens"},
		{"blocks", trace.ClockTrace, []trace.Request{with(ok(0, 0), func(r *trace.Request) {
			r.InputTokens, r.Blocks, r.BlockTokens, r.BlockTail = trace.Some(int64(33)), []uint64{1, 2}, trace.Some(int32(16)), trace.Some("partial")
		})}, "block_ids"},
		{"block size", trace.ClockTrace, []trace.Request{with(ok(0, 0), func(r *trace.Request) { r.Blocks = []uint64{1} })}, "block_tokens"},
		{"json", trace.ClockTrace, []trace.Request{with(ok(0, 0), func(r *trace.Request) { r.Messages = trace.Some("[{]") })}, "messages"},
		{"word", trace.ClockTrace, []trace.Request{with(ok(0, 0), func(r *trace.Request) { r.Status = trace.Some("fine") })}, "status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var fields []string
			r := open(t, write(t, c.rows, trace.Meta{Clock: c.clock}, 2))
			rows, err := trace.Check(context.Background(), r, func(e *trace.RowError) { fields = append(fields, e.Field) })
			if err != nil || rows != int64(len(c.rows)) {
				t.Fatalf("rows %d, error %v", rows, err)
			}
			if got := strings.Join(fields, ","); got != c.want {
				t.Errorf("violations in %q, want %q", got, c.want)
			}
		})
	}
}

func ExampleWriter() {
	var file bytes.Buffer
	w := trace.NewWriter(&file)
	b := trace.NewBatch()
	b.Append(&trace.Request{ID: 0, Operation: trace.OpChat, Arrival: trace.Some(time.Duration(0)), InputTokens: trace.Some(int64(512))})
	b.Append(&trace.Request{ID: 1, Operation: trace.OpChat, Arrival: trace.Some(250 * time.Millisecond)})
	if err := w.Write(b); err != nil {
		panic(err)
	}
	if err := w.Close(trace.Meta{Clock: trace.ClockTrace}); err != nil {
		panic(err)
	}

	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), "example.parquet")
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for req, err := range r.Rows() {
		if err != nil {
			panic(err)
		}
		tokens, known := req.InputTokens.Get()
		fmt.Println(req.ID, req.Arrival.Value, tokens, known)
	}
	// Output:
	// 0 0s 512 true
	// 1 250ms 0 false
}

func BenchmarkWrite(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	batch := trace.NewBatch()
	for i := range trace.BatchRows {
		req := trace.Request{ID: int64(i), Operation: "completion", Arrival: trace.Some(time.Duration(i) * time.Millisecond), InputTokens: trace.Some(rng.Int64N(10000)), OutputTokens: trace.Some(rng.Int64N(1000))}
		for range 24 {
			req.Blocks = append(req.Blocks, rng.Uint64N(1<<20))
		}
		batch.Append(&req)
	}
	w := trace.NewWriter(io.Discard)
	for b.Loop() {
		if err := w.Write(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*trace.BatchRows)/b.Elapsed().Seconds(), "rows/s")
}

// Damage is an error wherever it sits, never a panic.
func TestDamagedBytesAreErrors(t *testing.T) {
	data := write(t, []trace.Request{
		{ID: 1, Operation: "chat", Prompt: trace.Some("one")},
		{ID: 2, Operation: "chat", Blocks: []uint64{1, 2}, BlockTokens: trace.Some(int32(16))},
	}, trace.Meta{Clock: trace.ClockNone}, 10)
	tried, refused := 0, 0
	for i := 0; i < len(data); i += 5 {
		bad := bytes.Clone(data)
		bad[i] ^= []byte{0x01, 0x40, 0xff}[i%3]
		r, err := trace.NewReader(bytes.NewReader(bad), int64(len(bad)), "bad")
		if err == nil {
			_, err = trace.Check(t.Context(), r, func(*trace.RowError) {})
		}
		if tried++; err != nil {
			refused++
		}
	}
	if refused < tried/4 {
		t.Errorf("only %d of %d damaged files were refused", refused, tried)
	}
}
