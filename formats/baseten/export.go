package baseten

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"reprise/trace"
)

// Bounds of a row group: text stays far below the 2 GiB that 32-bit offsets
// reach.
const (
	groupBytes = 64 << 20
	groupRows  = 1 << 17
)

// An Exporter writes a Baseten table as Parquet: the documented columns with
// the documented types, then the unknown ones that the import kept, with types
// found from their values.
type Exporter struct{}

// Export implements formats.Exporter. The types of columns follow from all
// rows, so rows are spooled first; memory stays bounded. Rows that lack a
// required column are left out and counted in lost; if none is left, that is an
// error.
func (Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) (lost []string, err error) {
	if meta.Clock == trace.ClockSession {
		return nil, trace.WithFix(errors.New("each session of this trace has its own clock, but a Baseten table has one for all rows"), "export to the format that the trace came from")
	}
	e := &export{ours: meta.Format == "baseten", epoch: time.Duration(meta.EpochNS.Or(meta.OriginNS.Or(0))), lost: map[string]int64{}}
	e.columns = documentedColumns()
	sorter := &trace.Sorter{}
	defer sorter.Close()
	if err := e.spool(ctx, rows, sorter); err != nil {
		return nil, err
	}
	if !meta.EpochNS.Known {
		lost = append(lost, "the date is unknown: times count from 1970-01-01")
	}
	for _, what := range slices.Sorted(maps.Keys(e.lost)) {
		lost = append(lost, fmt.Sprintf("%s of %d rows", what, e.lost[what]))
	}
	if e.rows == 0 {
		return lost, trace.WithFix(errors.New("no row has an arrival, a literal prompt and both token counts, which a Baseten table needs"), "export to a format without text, such as mooncake")
	}
	return lost, e.write(ctx, sorter, w)
}

type export struct {
	ours    bool // attributes are columns of this format
	epoch   time.Duration
	columns []*outColumn
	rows    int64
	lost    map[string]int64
}

// An outColumn is one column of the table that is written.
type outColumn struct {
	name  string
	def   arrow.DataType // if no row has a value
	shape shape
	typ   arrow.DataType // settled after all rows
	value func(e *export, r *trace.Request) any
}

func (e *export) spool(ctx context.Context, rows iter.Seq2[trace.Request, error], to *trace.Sorter) error {
	batch := trace.NewBatch()
	for r, err := range rows {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if lacks := e.lacks(&r); lacks != "" {
			e.lost["the rows without "+lacks+", which are left out:"]++
			continue
		}
		if err := e.learn(&r); err != nil {
			return err
		}
		batch.Reset()
		batch.Append(&r)
		if err := to.Add(batch, 0, trace.Key{Major: e.rows}); err != nil {
			return err
		}
		e.rows++
	}
	for _, c := range e.columns {
		if c.settle(); c.name != colHashes && c.shape.mixed() {
			e.lost["types: the column "+c.name+" holds several, written as text, in all"] = e.rows
		}
	}
	return nil
}

// lacks names what a row would need to be one of this format.
func (e *export) lacks(r *trace.Request) string {
	switch {
	case !r.Prompt.Known:
		return "literal prompt"
	case !r.Arrival.Known:
		return "arrival"
	case !r.InputTokens.Known:
		return "input_tokens"
	case !r.OutputTokens.Known:
		return "output_tokens"
	}
	return ""
}

// learn takes a row's values into the types of the columns.
func (e *export) learn(r *trace.Request) error {
	if e.ours {
		for _, k := range slices.Sorted(maps.Keys(r.Attributes)) {
			if k != attrSigned && !slices.ContainsFunc(e.columns, func(c *outColumn) bool { return c.name == k }) {
				e.columns = append(e.columns, &outColumn{name: k, def: arrow.BinaryTypes.String, value: none})
			}
		}
	} else {
		e.losses(r)
	}
	for _, c := range e.columns {
		v := e.cell(c, r)
		if s, ok := v.(string); ok && len(s) > math.MaxInt32-1 {
			return trace.WithFix(fmt.Errorf("row id %d: %s: %d bytes are more than one cell holds", r.ID, c.name, len(s)), "cut the row out")
		}
		c.shape = merge(c.shape, shapeOf(v))
	}
	return nil
}

// cell returns the value of a row: what encoding/json decodes to with numbers
// as json.Number, a unixNS or a hashList.
func (e *export) cell(c *outColumn, r *trace.Request) any {
	if e.ours && !isSession(c.name, r) {
		if text, ok := r.Attributes[c.name]; ok {
			return decode(text)
		}
	}
	return c.value(e, r)
}

// isSession tells a session column of a row that scaling made: its session has
// a new name.
func isSession(name string, r *trace.Request) bool {
	return (name == colProvided || name == colPoor) && r.Copy.Known
}

// none is the value of a column that only attributes fill.
func none(*export, *trace.Request) any { return nil }

func decode(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	return v
}

// documentedColumns are those of the format, in its order.
func documentedColumns() []*outColumn {
	i64, utf8 := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	column := func(name string, t arrow.DataType, value func(e *export, r *trace.Request) any) *outColumn {
		return &outColumn{name: name, def: t, value: value}
	}
	return []*outColumn{
		column(colTime, i64, func(e *export, r *trace.Request) any { return unixNS(r.Arrival.Value + e.epoch) }),
		column(colPrompt, utf8, func(_ *export, r *trace.Request) any { return r.Prompt.Value }),
		column(colInput, i64, func(_ *export, r *trace.Request) any { return number(r.InputTokens) }),
		column(colOutput, i64, func(_ *export, r *trace.Request) any { return number(r.OutputTokens) }),
		column(colHashes, arrow.ListOf(i64), func(_ *export, r *trace.Request) any { return idList(r) }),
		column(colBlock, i64, func(_ *export, r *trace.Request) any {
			return number(trace.Optional[int64]{Value: int64(r.BlockTokens.Value), Known: r.BlockTokens.Known})
		}),
		column(colProvided, utf8, func(e *export, r *trace.Request) any { return e.session(r) }),
		column(colPoor, i64, none),
		column(colE2E, i64, func(_ *export, r *trace.Request) any { return duration(r.RecordedE2E) }),
		column(colTTFT, i64, func(_ *export, r *trace.Request) any { return duration(r.RecordedTTFT) }),
		column(colCanceled, i64, func(e *export, r *trace.Request) any { return e.canceled(r) }),
		column(colCached, i64, func(_ *export, r *trace.Request) any { return number(r.CachedTokens) }),
		column(colModel, utf8, func(_ *export, r *trace.Request) any { return string1(r.Model) }),
		column(colOrg, utf8, func(_ *export, r *trace.Request) any { return string1(r.ClientID) }),
		column(colFeatures, utf8, none),
		column(colRatio, arrow.PrimitiveTypes.Float64, none),
		column(colOutputText, utf8, func(_ *export, r *trace.Request) any { return string1(r.OutputText) }),
		column(colHashesLen, i64, none),
		column(colVersion, utf8, none),
	}
}

// ms writes milliseconds, as an integer where it is one.
func ms(d time.Duration) any {
	if d%time.Millisecond == 0 {
		return json.Number(strconv.FormatInt(int64(d/time.Millisecond), 10))
	}
	return json.Number(strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64))
}

func duration(d trace.Optional[time.Duration]) any {
	if !d.Known {
		return nil
	}
	return ms(d.Value)
}

func number(v trace.Optional[int64]) any {
	if !v.Known {
		return nil
	}
	return json.Number(strconv.FormatInt(v.Value, 10))
}

func string1(v trace.Optional[string]) any {
	if !v.Known {
		return nil
	}
	return v.Value
}

// A unixNS is an arrival in Unix nanoseconds.
type unixNS int64

// A hashList is a list of 64-bit patterns; signed says that they were signed.
type hashList struct {
	ids    []uint64
	signed bool
}

func idList(r *trace.Request) any {
	if r.Blocks == nil {
		return nil
	}
	return hashList{r.Blocks, r.Attributes[attrSigned] == "true"}
}

// session is for rows whose session is not in an attribute: those of other
// formats, and those that scaling renamed.
func (e *export) session(r *trace.Request) any {
	_, provided := r.Attributes[colProvided]
	_, poor := r.Attributes[colPoor]
	if !r.Session.Known || e.ours && !r.Copy.Known && (provided || poor || r.SourceRow.Known) {
		return nil
	}
	return r.Session.Value
}

// canceled is for rows of other formats.
func (e *export) canceled(r *trace.Request) any {
	if e.ours || !r.Status.Known {
		return nil
	}
	if r.Status.Value == trace.StatusCancelled {
		return json.Number("1")
	}
	return json.Number("0")
}

// losses counts what a row of another format has and this one cannot hold.
func (e *export) losses(r *trace.Request) {
	edges := slices.ContainsFunc(r.After, func(d trace.Dependency) bool { return d.Kind != trace.AfterTurn })
	for what, has := range map[string]bool{
		"agent": r.Agent.Known, "streaming": r.Streaming.Known, "choices": r.Choices.Known, "attributes": len(r.Attributes) > 0,
		"status error": r.Status.Value == trace.StatusError, "finish_reason": r.FinishReason.Known, "output_message": r.OutputMessage.Known,
		"cache_write_tokens": r.CacheWriteTokens.Known, "reasoning_tokens": r.ReasoningTokens.Known, "max_output_tokens": r.MaxOutputTokens.Known,
		"media": len(r.Media) > 0, "spawn and join edges": edges, "extra body fields": r.Extra.Known, "source_id": r.SourceID.Known,
		"recorded think time, but for what arrivals show": r.Delay.Known,
	} {
		if has {
			e.lost[what]++
		}
	}
}

func (e *export) write(ctx context.Context, rows *trace.Sorter, w io.Writer) (err error) {
	defer guard(&err)
	fields := make([]arrow.Field, len(e.columns))
	for i, c := range e.columns {
		fields[i] = arrow.Field{Name: c.name, Type: c.typ, Nullable: !slices.Contains(required, c.name)}
	}
	sc := arrow.NewSchema(fields, nil)
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy("reprise"), parquet.WithDictionaryDefault(true),
		parquet.WithDictionaryFor(colPrompt, false), parquet.WithStatsFor(colPrompt, false), parquet.WithStatsFor(colOutputText, false))
	// The library closes what it can close.
	out, err := pqarrow.NewFileWriter(sc, struct{ io.Writer }{w}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	g := &group{out: out, builder: array.NewRecordBuilder(memory.DefaultAllocator, sc)}
	defer g.builder.Release()
	err = rows.Sorted(func(b *trace.Batch) error {
		for i := range b.Len() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r := b.Row(i)
			if err := g.add(e, &r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := g.flush(); err != nil {
		return err
	}
	return out.Close()
}

// A group gathers rows into record batches, and these into row groups.
type group struct {
	out                 *pqarrow.FileWriter
	builder             *array.RecordBuilder
	rows, bytes         int // in the builder
	openRows, openBytes int // in the open row group
}

func (g *group) add(e *export, r *trace.Request) error {
	size := len(r.Prompt.Value) + len(r.OutputText.Value) + 8*len(r.Blocks)
	if g.rows > 0 && (g.rows >= 1024 || g.bytes+size > batchBytes) {
		if err := g.flush(); err != nil {
			return err
		}
	}
	for i, c := range e.columns {
		put(g.builder.Field(i), e.cell(c, r))
	}
	g.rows++
	g.bytes += size
	return nil
}

func (g *group) flush() error {
	if g.rows == 0 {
		return nil
	}
	if g.openRows > 0 && (g.openRows+g.rows > groupRows || g.openBytes+g.bytes > groupBytes) {
		if err := g.out.NewBufferedRowGroupChecked(); err != nil {
			return err
		}
		g.openRows, g.openBytes = 0, 0
	}
	rec := g.builder.NewRecordBatch()
	defer rec.Release()
	if err := g.out.WriteBuffered(rec); err != nil {
		return err
	}
	g.openRows += g.rows
	g.openBytes += g.bytes
	g.rows, g.bytes = 0, 0
	return nil
}

// jsonText writes a value as JSON.
func jsonText(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
