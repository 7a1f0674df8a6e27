package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	parquetgo "github.com/parquet-go/parquet-go"

	"reprise/formats"
	"reprise/formats/mooncake"
	"reprise/formats/source"
	"reprise/replay/protocol"
	"reprise/trace"
	"reprise/trace/results"
	"reprise/trace/tokens"
)

// writeMooncake writes rows of about 290 bytes, with 24 block ids each, in order of
// time: so many of them, or of bytes.
func writeMooncake(path string, rows int, bytes int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	line := make([]byte, 0, 1024)
	for i := 0; i < rows || bytes > 0; i++ {
		line = strconv.AppendInt(append(line[:0], `{"timestamp": `...), int64(i)*7, 10)
		line = strconv.AppendInt(append(line, `, "input_length": `...), int64(12288-r.IntN(512)), 10)
		line = strconv.AppendInt(append(line, `, "output_length": `...), int64(1+r.IntN(800)), 10)
		line = append(line, `, "hash_ids": [`...)
		next := r.IntN(40)
		for b := range 24 {
			if b > 0 {
				line = append(line, ", "...)
			}
			id := next*1000 + b
			if b > 8 {
				id = 10_000_000 + i*16 + b
			}
			line = strconv.AppendInt(line, int64(id), 10)
		}
		line = append(line, "]}\n"...)
		if _, err := w.Write(line); err != nil {
			return err
		}
		bytes -= int64(len(line))
	}
	return w.Flush()
}

const mooncakeRows = 600_000

func importMeasures() []measure {
	setup := func(dir string) error { return writeMooncake(filepath.Join(dir, "trace.jsonl"), mooncakeRows, 0) }
	return []measure{
		{name: "Mooncake lines, parsed", unit: "row", setup: setup,
			ours: arm{"reprise", func(w *work) error { return importArm(w, false) }},
			refs: []reference{{arm{"encoding/json", jsonLines}, 1.0 / 15, cpuPerUnit, "CPU against encoding/json into a struct"}},
		},
		{name: "Mooncake lines into canonical Parquet", unit: "row", setup: setup,
			ours:   arm{"reprise", func(w *work) error { return importArm(w, true) }},
			refs:   []reference{{arm{"parse alone", func(w *work) error { return importArm(w, false) }}, 2.5, cpuPerUnit, "CPU against parsing alone"}},
			bounds: []bound{{"resident memory at its peak", "MB", 64, rss}},
		},
		importOf("import of 1 GB", 1e9),
		importOf("import of 10 GB", 10e9),
	}
}

// importOf holds the memory of an import of so many bytes, which lie on the disk for
// as long, against that of a tenth of them.
func importOf(name string, bytes int64) measure {
	return measure{name: name, unit: "row", pairs: 1, large: bytes > 1e9,
		setup: func(dir string) error {
			if err := writeMooncake(filepath.Join(dir, "trace.jsonl"), 0, bytes); err != nil {
				return err
			}
			tenth := filepath.Join(dir, "tenth")
			if err := os.Mkdir(tenth, 0o755); err != nil {
				return err
			}
			return writeMooncake(filepath.Join(tenth, "trace.jsonl"), 0, bytes/10)
		},
		ours: arm{"reprise", func(w *work) error { return importArm(w, true) }},
		refs: []reference{{arm{"a tenth", func(w *work) error {
			w.dir = filepath.Join(w.dir, "tenth")
			return importArm(w, true)
		}}, 1.2, rss, "resident memory at its peak, against that of a tenth of it"}},
		bounds: []bound{{"resident memory at its peak", "MB", 64, rss}},
	}
}

// importArm imports the trace: parsed alone, or put in order and written too.
func importArm(w *work, write bool) error {
	src, _, err := source.Find([]string{filepath.Join(w.dir, "trace.jsonl")}, nil)
	if err != nil {
		return err
	}
	bad := func(e *trace.RowError) error { return e }
	w.begin()
	if !write {
		rows := 0
		_, err := (&mooncake.Importer{}).Import(context.Background(), src, func(b *trace.Batch) error { rows += b.Len(); return nil }, bad)
		w.end(float64(rows))
		return err
	}
	defer formats.Frugal()()
	f, err := trace.Create(filepath.Join(w.dir, "out.parquet")) // as the command does
	if err != nil {
		return err
	}
	defer f.Abort()
	meta, err := formats.Import(context.Background(), &mooncake.Importer{}, src, f, 0, trace.Step{}, bad)
	w.end(float64(meta.Counts.Kept))
	return err
}

func jsonLines(w *work) error {
	f, err := os.Open(filepath.Join(w.dir, "trace.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	w.begin()
	rows, ids := 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			Timestamp float64  `json:"timestamp"`
			Input     int64    `json:"input_length"`
			Output    int64    `json:"output_length"`
			IDs       []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		rows++
		ids += len(r.IDs)
	}
	w.end(float64(rows))
	if ids != 24*rows {
		return fmt.Errorf("%d ids in %d rows", ids, rows)
	}
	return lines.Err()
}

const resultRows, ledgerRows = 200_000, 30_000

func fileMeasures() []measure {
	return []measure{
		{name: "rows of results, written", unit: "row",
			ours:   arm{"reprise", writeResults},
			refs:   []reference{{arm{"arrow-go", writeArrow}, 1 / 2.5, cpuPerUnit, "CPU against arrow-go with 30 columns"}},
			bounds: []bound{{"bytes a row", "B", 70, func(s Sample) float64 { return s.Extra["bytes"] }}},
		},
		{name: "ledgers, written", unit: "chunk",
			ours:   arm{"reprise", writeLedgers},
			refs:   []reference{{arm{"plain and zstd", writePlain}, 0.25, cpuPerUnit, "CPU against the same columns plain, with zstd"}},
			bounds: []bound{{"bytes a chunk, of the ledger's columns", "B", 1.8, func(s Sample) float64 { return s.Extra["ledger"] }}},
		},
		{name: "trace rows with block ids, read", unit: "row", setup: writeTraceFile,
			ours: arm{"reprise", readBatches},
			refs: []reference{{arm{"GenericReader", readGeneric}, 1.0 / 15, cpuPerUnit, "CPU against parquet-go's GenericReader"}},
		},
		{name: "a body of 120 KB of known blocks", unit: "body",
			ours: arm{"reprise", bodyOurs},
			refs: []reference{
				{arm{"its write to a socket", bodyWrite}, 0.25, cpuPerUnit, "CPU against its write to a socket"},
				{arm{"json.Marshal", bodyMarshal}, 0.05, cpuPerUnit, "CPU against json.Marshal"},
			},
			bounds: []bound{{"allocations a body", "", 0.01, func(s Sample) float64 { return s.Extra["allocs"] }}},
		},
	}
}

// aResult is a row as a run makes it; chunks entries in its ledger, 20 ms apart with a
// deviation of 0.5 ms, and a tail of 0.2 ms on average.
func aResult(i int, chunks int, r *rand.Rand) results.Result {
	at := func(d int) trace.Optional[time.Duration] {
		return trace.Some(time.Duration(i)*2*time.Millisecond + time.Duration(d+r.IntN(50_000)))
	}
	row := results.Result{
		ID: int64(i), URL: "http://host:8000/v1/chat/completions", Protocol: "chat", Model: trace.Some("m"), Due: trace.Some(time.Duration(i) * 2 * time.Millisecond), Eligible: trace.Some(time.Duration(i) * 2 * time.Millisecond),
		Dispatched: at(2000), Connected: at(3000), Sent: at(5000), SentEnd: at(9000), FirstByte: at(40e6), FirstToken: at(41e6), FirstOutput: at(41e6), LastToken: at(900e6), End: at(901e6),
		ConnReused: trace.Some(true), BytesOut: trace.Some(int64(900 + r.IntN(3000))), BytesIn: trace.Some(int64(40_000 + r.IntN(9000))), Outcome: results.OutcomeOK, HTTPStatus: trace.Some(int32(200)), FinishReason: trace.Some("length"),
		PlannedInputTokens: trace.Some(int64(1000 + r.IntN(500))), CountedInputTokens: trace.Some(int64(1000)), PlannedOutputTokens: trace.Some(int64(200)), OutputTokens: trace.Some(int64(200)), OutputSource: trace.Some(results.SourceUsage), LedgerDifference: trace.Some(int64(0)),
		Ledger: []results.Entry{},
	}
	us := int64(40_000)
	for k := range chunks {
		us += int64(20_000 + 500*r.NormFloat64() + 200*r.ExpFloat64())
		row.Ledger = append(row.Ledger, results.Entry{At: us, Tokens: trace.Some(int32(1)), Kind: results.KindContent, Source: results.SourceUsage, Event: int32(k + 1)})
	}
	return row
}

func writeResults(w *work) error {
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]results.Result, 10_000)
	for i := range rows {
		rows[i] = aResult(i, 0, r)
	}
	return recorded(w, rows, resultRows, func(*results.Result) int { return 1 })
}

func writeLedgers(w *work) error {
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]results.Result, 500)
	for i := range rows {
		rows[i] = aResult(i, 200, r)
	}
	return recorded(w, rows, ledgerRows, func(row *results.Result) int { return len(row.Ledger) })
}

// recorded writes n results as a run does, and counts their units.
func recorded(w *work, rows []results.Result, n int, units func(*results.Result) int) error {
	dir := filepath.Join(w.dir, fmt.Sprint("results-", os.Getpid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	rec, err := results.NewRecorder(dir)
	if err != nil {
		return err
	}
	w.begin()
	done := 0
	for i := range n {
		row := &rows[i%len(rows)]
		rec.Add(row)
		done += units(row)
		if rec.Pending() == 1024 { // a second of 200,000 chunks
			if err := rec.Flush(); err != nil {
				return err
			}
		}
	}
	if err := rec.Close(); err != nil {
		return err
	}
	w.end(float64(done))
	f, err := os.Open(filepath.Join(dir, results.RequestsFile))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquetgo.OpenFile(f, info.Size())
	if err != nil {
		return err
	}
	ledger := int64(0)
	for _, g := range file.Metadata().RowGroups {
		for _, c := range g.Columns {
			if c.MetaData.PathInSchema[0] == "ledger" {
				ledger += c.MetaData.TotalCompressedSize
			}
		}
	}
	w.extra("bytes", float64(info.Size())/float64(done))
	w.extra("ledger", float64(ledger)/float64(done))
	return nil
}

// writeArrow writes as many rows of 30 columns with arrow-go: 24 integers, half of
// which may be null, and 6 texts.
func writeArrow(w *work) error {
	var fields []arrow.Field
	for i := range 24 {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("n", i), Type: arrow.PrimitiveTypes.Int64, Nullable: i%2 == 0})
	}
	for i := range 6 {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("s", i), Type: arrow.BinaryTypes.String, Nullable: true})
	}
	schema := arrow.NewSchema(fields, nil)
	w.begin()
	out, err := pqarrow.NewFileWriter(schema, io.Discard, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd)), pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range resultRows {
		for k := range 24 {
			b.Field(k).(*array.Int64Builder).Append(int64(i)*2e6 + int64(k)*1000)
		}
		for k := range 6 {
			b.Field(24 + k).(*array.StringBuilder).Append([]string{"chat", "ok", "m", "length", "usage", "http://host:8000/v1/chat/completions"}[k])
		}
		if i%4096 == 4095 {
			record := b.NewRecordBatch()
			err := out.Write(record)
			record.Release()
			if err != nil {
				return err
			}
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	w.end(resultRows)
	return nil
}

// writePlain writes the same columns of the same chunks, plain with zstd.
func writePlain(w *work) error {
	type entry struct {
		At     int64  `parquet:"at_us,zstd"`
		Tokens *int32 `parquet:"tokens,zstd"`
		Kind   string `parquet:"kind,zstd"`
		Choice int32  `parquet:"choice,zstd"`
		Source string `parquet:"source,zstd"`
		Event  int32  `parquet:"event,zstd"`
		Shared bool   `parquet:"shared_read,zstd"`
	}
	type list struct {
		Ledger []entry `parquet:"ledger,list"`
	}
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]list, 500)
	for i := range rows {
		for _, e := range aResult(i, 200, r).Ledger {
			rows[i].Ledger = append(rows[i].Ledger, entry{e.At, &e.Tokens.Value, e.Kind.String(), e.Choice, e.Source.String(), e.Event, e.SharedRead})
		}
	}
	w.begin()
	out := parquetgo.NewGenericWriter[list](io.Discard)
	for range ledgerRows / len(rows) {
		if _, err := out.Write(rows); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	w.end(200 * ledgerRows)
	return nil
}

const traceRows = 200_000

func writeTraceFile(dir string) error {
	f, err := os.Create(filepath.Join(dir, "trace.parquet"))
	if err != nil {
		return err
	}
	defer f.Close()
	w := trace.NewWriter(f)
	b := trace.NewBatch()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range traceRows {
		row := trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(i) * time.Millisecond), InputTokens: trace.Some(int64(1 + r.IntN(9000))), OutputTokens: trace.Some(int64(r.IntN(900))), BlockTokens: trace.Some(int32(512)), BlockTail: trace.Some(trace.TailPartial)}
		for k := range 15 {
			row.Blocks = append(row.Blocks, uint64(i*20+k))
		}
		b.Append(&row)
		if b.Len() == trace.BatchRows {
			if err := w.Write(b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close(trace.Meta{Clock: trace.ClockTrace})
}

// readBatches reads five of the columns into batches.
func readBatches(w *work) error {
	r, err := trace.Open(filepath.Join(w.dir, "trace.parquet"))
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.Only("id", "arrival_ns", "input_tokens", "output_tokens", "block_ids"); err != nil {
		return err
	}
	w.begin()
	b := trace.NewBatch()
	rows := 0
	for {
		b.Reset()
		err := r.Read(b, trace.BatchRows)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		rows += b.Len()
	}
	w.end(float64(rows))
	if rows != traceRows {
		return fmt.Errorf("%d rows", rows)
	}
	return nil
}

// readGeneric reads the same columns into structs.
func readGeneric(w *work) error {
	type row struct {
		ID      int64    `parquet:"id"`
		Arrival *int64   `parquet:"arrival_ns"`
		Input   *int64   `parquet:"input_tokens"`
		Output  *int64   `parquet:"output_tokens"`
		Blocks  []uint64 `parquet:"block_ids,list"`
	}
	f, err := os.Open(filepath.Join(w.dir, "trace.parquet"))
	if err != nil {
		return err
	}
	defer f.Close()
	w.begin()
	r := parquetgo.NewGenericReader[row](f)
	defer r.Close()
	buf := make([]row, 1024)
	rows := 0
	for {
		n, err := r.Read(buf)
		rows += n
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	w.end(float64(rows))
	if rows != traceRows {
		return fmt.Errorf("%d rows", rows)
	}
	return nil
}

// aPlan is a prompt of about 120 KB in 60 blocks.
func aPlan() tokens.Plan {
	p := tokens.Plan{Tokens: 60 * 340, BlockTokens: 340}
	for i := range 60 {
		p.Blocks = append(p.Blocks, uint64(1000+i))
	}
	return p
}

// known is a prompt whose blocks have been sent before, as those of a
// conversation mostly have.
type known struct {
	cache *tokens.Cache
	plan  tokens.Plan
}

// AppendText implements protocol.Text.
func (k *known) AppendText(dst []byte) []byte { return k.cache.AppendPrompt(dst, k.plan) }

// bodyOurs makes the body of a request as a replay does.
func bodyOurs(w *work) error {
	prompt := &known{tokens.NewCache(tokens.Text{Seed: 1}, 64<<20), aPlan()}
	request := protocol.Request{}
	var body []byte
	var failed error
	once := func() int {
		request.Begin()
		request.Model, request.Stream, request.Made = "m", true, prompt
		var err error
		body, err = (protocol.Chat{}).AppendBody(body[:0], &request)
		if err != nil || len(body) < 100_000 {
			failed = fmt.Errorf("body of %d bytes: %v", len(body), err)
		}
		return 1
	}
	once()
	before := mallocs()
	w.repeat(once)
	w.extra("allocs", float64(mallocs()-before)/w.Units)
	return failed
}

func bodyMarshal(w *work) error {
	text := tokens.Text{Seed: 1}
	plan := aPlan()
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var failed error
	w.repeat(func() int {
		prompt := text.AppendPrompt(nil, plan)
		_, err := json.Marshal(map[string]any{"model": "m", "stream": true, "messages": []message{{"user", string(prompt)}}})
		if err != nil {
			failed = err
		}
		return 1
	})
	return failed
}
