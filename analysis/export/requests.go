package export

import (
	"bufio"
	"encoding/csv"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

// Names of the files of one row per request.
const (
	RequestsCSV     = "request_metrics.csv"
	RequestsParquet = "request_metrics.parquet"
)

// A Row is one request, flat: what it was, and every metric of it, by the functions
// of trace/results. Times end in _ns: instants count from the start of the run, the
// others are lengths. What is not known is null, an empty field in CSV.
type Row struct {
	ID           int64   `parquet:"id"`
	Pass         int32   `parquet:"pass"`
	Phase        *string `parquet:"phase,optional,dict"`
	Worker       *string `parquet:"worker,optional,dict"`
	URL          string  `parquet:"url,dict"`
	Protocol     string  `parquet:"protocol,dict"`
	Model        *string `parquet:"model,optional,dict"`
	Session      *string `parquet:"session_id,optional,dict"`
	Turn         *int32  `parquet:"turn,optional"`
	Agent        *string `parquet:"agent,optional,dict"`
	Outcome      string  `parquet:"outcome,dict"`
	Successful   bool    `parquet:"successful"`
	HTTPStatus   *int32  `parquet:"http_status,optional"`
	Cause        *string `parquet:"cause,optional,dict"`
	FinishReason *string `parquet:"finish_reason,optional,dict"`

	Due        *int64 `parquet:"due_ns,optional"`
	Dispatched *int64 `parquet:"dispatched_ns,optional"`
	Sent       *int64 `parquet:"sent_ns,optional"`
	End        *int64 `parquet:"end_ns,optional"`

	Lateness     *int64 `parquet:"lateness_ns,optional"`
	Hold         *int64 `parquet:"hold_ns,optional"`
	Connect      *int64 `parquet:"connect_ns,optional"`
	TTFT         *int64 `parquet:"ttft_ns,optional"`
	TTFO         *int64 `parquet:"ttfo_ns,optional"`
	TTST         *int64 `parquet:"ttst_ns,optional"`
	ITLMean      *int64 `parquet:"itl_mean_ns,optional"`
	ITLMax       *int64 `parquet:"itl_max_ns,optional"`
	LongestStall *int64 `parquet:"longest_stall_ns,optional"`
	TPOT         *int64 `parquet:"tpot_ns,optional"`
	TPOTOverOSL1 *int64 `parquet:"tpot_osl1_ns,optional"`
	TimeTo90     *int64 `parquet:"time_to_90_ns,optional"`
	E2E          *int64 `parquet:"e2e_ns,optional"`
	ResponseTime *int64 `parquet:"response_time_ns,optional"`

	Chunks          *int32  `parquet:"chunks,optional"`
	SharedReads     *int32  `parquet:"shared_reads,optional"`
	PlannedInput    *int64  `parquet:"planned_input_tokens,optional"`
	Input           *int64  `parquet:"input_tokens,optional"`
	Cached          *int64  `parquet:"cached_tokens,optional"`
	PlannedOutput   *int64  `parquet:"planned_output_tokens,optional"`
	Output          *int64  `parquet:"output_tokens,optional"`
	Reasoning       *int64  `parquet:"reasoning_tokens,optional"`
	OutputSource    *string `parquet:"output_source,optional,dict"`
	ConnReused      *bool   `parquet:"conn_reused,optional"`
	BytesOut        *int64  `parquet:"bytes_out,optional"`
	BytesIn         *int64  `parquet:"bytes_in,optional"`
	LedgerDiff      *int64  `parquet:"ledger_difference,optional"`
	RecordedTTFT    *int64  `parquet:"recorded_ttft_ns,optional"`
	RecordedE2E     *int64  `parquet:"recorded_e2e_ns,optional"`
	RecordedTTFTDif *int64  `parquet:"ttft_minus_recorded_ns,optional"`
	RecordedE2EDif  *int64  `parquet:"e2e_minus_recorded_ns,optional"`
}

// RowOf computes the row of a result.
func RowOf(r *results.Result) Row {
	row := Row{
		ID: r.ID, Pass: r.Pass, Phase: known(r.Phase), Worker: known(r.Worker), URL: r.URL, Protocol: r.Protocol, Model: known(r.Model),
		Session: known(r.Session), Turn: known(r.Turn), Agent: known(r.Agent), Outcome: r.Outcome, Successful: analysis.Successful(r),
		HTTPStatus: known(r.HTTPStatus), Cause: known(r.Cause), FinishReason: known(r.FinishReason),
		Due: instant(r.Due), Dispatched: instant(r.Dispatched), Sent: instant(r.Sent), End: instant(r.End),
		Lateness: length(results.Lateness(r)), TTFT: length(results.TTFT(r)), TTFO: length(results.TTFO(r)), TTST: length(results.TTST(r)),
		LongestStall: length(results.LongestStall(r)), TPOT: length(results.TPOT(r)), TPOTOverOSL1: length(results.TPOTOverOSL1(r)),
		TimeTo90: length(results.TimeTo90(r)), E2E: length(results.E2E(r)), ResponseTime: length(results.ResponseTime(r)),
		PlannedInput: known(r.PlannedInputTokens), Input: known(r.CountedInputTokens), Cached: known(r.CachedTokens),
		PlannedOutput: known(r.PlannedOutputTokens), Output: known(r.OutputTokens), Reasoning: known(r.ReasoningTokens),
		ConnReused: known(r.ConnReused), BytesOut: known(r.BytesOut), BytesIn: known(r.BytesIn), LedgerDiff: known(r.LedgerDifference),
		RecordedTTFT: instant(r.RecordedTTFT), RecordedE2E: instant(r.RecordedE2E),
	}
	if r.OutputSource.Known {
		row.OutputSource = new(r.OutputSource.Value.String())
	}
	row.client(r)
	row.tokens(r)
	row.RecordedTTFTDif, row.RecordedE2EDif = minus(row.TTFT, row.RecordedTTFT), minus(row.E2E, row.RecordedE2E)
	return row
}

// client fills what the client did before it sent.
func (row *Row) client(r *results.Result) {
	if r.Due.Known && r.Eligible.Known && r.Eligible.Value > r.Due.Value {
		row.Hold = new(int64(r.Eligible.Value - r.Due.Value))
	}
	if r.Connected.Known && r.Dispatched.Known && r.ConnReused.Known && !r.ConnReused.Value {
		row.Connect = new(int64(r.Connected.Value - r.Dispatched.Value))
	}
}

// tokens fills what the ledger says of gaps and chunks.
func (row *Row) tokens(r *results.Result) {
	var sum, n, most int64
	for v, tokens := range results.ITL(r) {
		sum += int64(v) * int64(tokens)
		n += int64(tokens)
		most = max(most, int64(v))
	}
	if n > 0 {
		row.ITLMean, row.ITLMax = new(sum/n), new(most)
	}
	if shared, chunks := results.SharedReads(r.Ledger); len(r.Ledger) > 0 {
		row.Chunks, row.SharedReads = new(int32(chunks)), new(int32(shared))
	}
}

func known[T any](o trace.Optional[T]) *T {
	if !o.Known {
		return nil
	}
	return &o.Value
}

func instant(o trace.Optional[time.Duration]) *int64 { return length(o.Value, o.Known) }

func length(d time.Duration, ok bool) *int64 {
	if !ok {
		return nil
	}
	return new(int64(d))
}

func minus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a - *b)
}

// A RowWriter writes rows as they come. Add keeps the first error for Close.
type RowWriter interface {
	Add(r *results.Result)
	Close() error
}

// NewRequestsCSV writes one header and one row per request.
func NewRequestsCSV(w io.Writer) RowWriter {
	c := &csvRows{buffer: bufio.NewWriter(w)}
	c.out = csv.NewWriter(c.buffer)
	for f := range reflect.TypeFor[Row]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		c.fields = append(c.fields, name)
	}
	c.out.Write(c.fields)
	return c
}

type csvRows struct {
	buffer *bufio.Writer
	out    *csv.Writer
	fields []string
}

func (c *csvRows) Add(r *results.Result) {
	row := reflect.ValueOf(RowOf(r))
	for i := range c.fields {
		c.fields[i] = csvField(row.Field(i))
	}
	c.out.Write(c.fields)
}

func csvField(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return strconv.FormatInt(v.Int(), 10)
}

func (c *csvRows) Close() error {
	c.out.Flush()
	if err := c.out.Error(); err != nil {
		return err
	}
	return c.buffer.Flush()
}

// rowGroup is how many rows a row group holds.
const rowGroup = 64 << 10

// NewRequestsParquet writes the rows as Parquet, zstd.
func NewRequestsParquet(w io.Writer) RowWriter {
	return &parquetRows{out: parquet.NewGenericWriter[Row](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup), parquet.CreatedBy("reprise", "", ""))}
}

type parquetRows struct {
	out *parquet.GenericWriter[Row]
	row [1]Row
	err error
}

func (p *parquetRows) Add(r *results.Result) {
	if p.err != nil {
		return
	}
	p.row[0] = RowOf(r)
	_, p.err = p.out.Write(p.row[:])
}

func (p *parquetRows) Close() error {
	if err := p.out.Close(); p.err == nil {
		p.err = err
	}
	return p.err
}
