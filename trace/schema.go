package trace

import (
	"time"

	"github.com/parquet-go/parquet-go"

	"reprise/trace/column"
)

// SchemaVersion is the version of the canonical schema that this package
// writes, in the metadata key reprise.schema.
const SchemaVersion = 1

// A fileRow is schema 1 as Parquet sees it: names, types, nulls and encodings.
// Rows never pass through it; columns do.
//
// Delta encodings for ids and times, zstd for text only: on delta-encoded
// integers a codec gains nothing.
type fileRow struct {
	ID       int64  `parquet:"id,delta"`
	OriginID int64  `parquet:"origin_id,optional,delta"`
	Copy     int32  `parquet:"copy,optional,delta"`
	SourceID string `parquet:"source_id,optional,zstd"`

	Operation string `parquet:"operation,dict"`
	ArrivalNS int64  `parquet:"arrival_ns,optional,delta"`

	SessionID string       `parquet:"session_id,optional,dict,zstd"`
	Turn      int32        `parquet:"turn,optional,delta"`
	After     []dependency `parquet:"after,list,optional"`
	DelayNS   int64        `parquet:"delay_ns,optional,delta"`
	Agent     string       `parquet:"agent,optional,dict,zstd"`
	ClientID  string       `parquet:"client_id,optional,dict,zstd"`
	Model     string       `parquet:"model,optional,dict"`

	Streaming bool  `parquet:"streaming,optional"`
	Choices   int32 `parquet:"choices,optional,delta"`

	InputTokens      int64 `parquet:"input_tokens,optional,delta"`
	NewInputTokens   int64 `parquet:"new_input_tokens,optional,delta"`
	OutputTokens     int64 `parquet:"output_tokens,optional,delta"`
	ReasoningTokens  int64 `parquet:"reasoning_tokens,optional,delta"`
	MaxOutputTokens  int64 `parquet:"max_output_tokens,optional,delta"`
	CachedTokens     int64 `parquet:"cached_tokens,optional,delta"`
	CacheWriteTokens int64 `parquet:"cache_write_tokens,optional,delta"`

	BlockIDs    []uint64 `parquet:"block_ids,list,optional" parquet-element:",delta"`
	BlockTokens int32    `parquet:"block_tokens,optional,dict"`
	BlockTail   string   `parquet:"block_tail,optional,dict"`

	Prompt        string  `parquet:"prompt,optional,zstd"`
	Messages      string  `parquet:"messages,optional,zstd"`
	MessagesMode  string  `parquet:"messages_mode,optional,dict"`
	Tools         string  `parquet:"tools,optional,dict,zstd"`
	Body          string  `parquet:"body,optional,zstd"`
	Extra         string  `parquet:"extra,optional,dict,zstd"`
	Media         []media `parquet:"media,list,optional"`
	OutputText    string  `parquet:"output_text,optional,zstd"`
	OutputMessage string  `parquet:"output_message,optional,zstd"`

	RecordedTTFTNS int64  `parquet:"recorded_ttft_ns,optional,delta"`
	RecordedE2ENS  int64  `parquet:"recorded_e2e_ns,optional,delta"`
	CancelNS       int64  `parquet:"cancel_ns,optional,delta"`
	Status         string `parquet:"status,optional,dict"`
	FinishReason   string `parquet:"finish_reason,optional,dict"`

	SourceFile string `parquet:"source_file,optional,dict"`
	SourceRow  int64  `parquet:"source_row,optional,delta"`

	Attributes map[string]string `parquet:"attributes,optional" parquet-key:",dict" parquet-value:",dict,zstd"`
}

type dependency struct {
	ID   int64  `parquet:"id,delta"`
	Kind string `parquet:"kind,dict"`
}

type media struct {
	Kind   string `parquet:"kind,dict"`
	Count  int32  `parquet:"count,optional,delta"`
	Tokens int64  `parquet:"tokens,optional,delta"`
}

// noBounds are columns of long texts, whose minimum and maximum help nobody.
var noBounds = []string{"prompt", "messages", "tools", "body", "extra", "output_text", "output_message", "attributes"}

// Schema is canonical schema 1 in Parquet terms.
var Schema = parquet.NewSchema("request", parquet.SchemaOf(fileRow{}))

// A Batch is a run of rows, column by column. The zero value is not usable;
// see [NewBatch].
type Batch struct {
	ID, OriginID column.Flat[int64]
	Copy         column.Flat[int32]
	SourceID     column.Flat[string]

	Operation column.Flat[string]
	ArrivalNS column.Flat[int64]

	SessionID column.Flat[string]
	Turn      column.Flat[int32]
	After     *column.List // id int64, kind string
	DelayNS   column.Flat[int64]
	Agent     column.Flat[string]
	ClientID  column.Flat[string]
	Model     column.Flat[string]

	Streaming column.Flat[bool]
	Choices   column.Flat[int32]

	InputTokens, NewInputTokens, OutputTokens, ReasoningTokens column.Flat[int64]
	MaxOutputTokens, CachedTokens, CacheWriteTokens            column.Flat[int64]

	BlockIDs    *column.List // uint64
	BlockTokens column.Flat[int32]
	BlockTail   column.Flat[string]

	Prompt, Messages, MessagesMode, Tools, Body, Extra column.Flat[string]
	Media                                              *column.List // kind string, count int32, tokens int64
	OutputText, OutputMessage                          column.Flat[string]

	RecordedTTFTNS, RecordedE2ENS, CancelNS column.Flat[int64]
	Status, FinishReason                    column.Flat[string]

	SourceFile column.Flat[string]
	SourceRow  column.Flat[int64]

	Attributes *column.List // key string, value string

	cols []column.Column
}

// NewBatch returns an empty batch.
func NewBatch() *Batch {
	b := &Batch{
		After:      column.NewList(new(column.Flat[int64]), new(column.Flat[string])),
		BlockIDs:   column.NewList(new(column.Flat[uint64])),
		Media:      column.NewList(new(column.Flat[string]), new(column.Flat[int32]), new(column.Flat[int64])),
		Attributes: column.NewList(new(column.Flat[string]), new(column.Flat[string])),
	}
	b.cols = []column.Column{
		&b.ID, &b.OriginID, &b.Copy, &b.SourceID,
		&b.Operation, &b.ArrivalNS,
		&b.SessionID, &b.Turn, b.After, &b.DelayNS, &b.Agent, &b.ClientID, &b.Model,
		&b.Streaming, &b.Choices,
		&b.InputTokens, &b.NewInputTokens, &b.OutputTokens, &b.ReasoningTokens,
		&b.MaxOutputTokens, &b.CachedTokens, &b.CacheWriteTokens,
		b.BlockIDs, &b.BlockTokens, &b.BlockTail,
		&b.Prompt, &b.Messages, &b.MessagesMode, &b.Tools, &b.Body, &b.Extra, b.Media, &b.OutputText, &b.OutputMessage,
		&b.RecordedTTFTNS, &b.RecordedE2ENS, &b.CancelNS, &b.Status, &b.FinishReason,
		&b.SourceFile, &b.SourceRow, b.Attributes,
	}
	return b
}

// Len returns the number of rows.
func (b *Batch) Len() int { return b.ID.Len() }

// Reset forgets the rows and keeps the memory.
func (b *Batch) Reset() {
	for _, c := range b.cols {
		c.Reset()
	}
}

// AppendRow appends one row of another batch.
func (b *Batch) AppendRow(src *Batch, row int) {
	for i, c := range b.cols {
		c.AppendRow(src.cols[i], row)
	}
}

// AppendRows appends rows of another batch.
func (b *Batch) AppendRows(src *Batch, from, to int) {
	for i, c := range b.cols {
		c.AppendRows(src.cols[i], from, to)
	}
}

// Pad makes all columns as long as ID, with unknown values, for who appends to a
// few columns only.
func (b *Batch) Pad() {
	for _, c := range b.cols {
		if n := b.Len() - c.Len(); n > 0 {
			c.AppendNulls(n)
		}
	}
}

// HeapBytes returns about how many bytes the blocks and the text of a row take.
func (b *Batch) HeapBytes(i int) int64 {
	n := int64(b.BlockIDs.RowBytes(i))
	for _, c := range [...]*column.Flat[string]{&b.Prompt, &b.Messages, &b.Tools, &b.Body, &b.OutputText, &b.OutputMessage} {
		n += int64(len(c.Values[i]))
	}
	return n
}

// Append adds a request as a row.
func (b *Batch) Append(r *Request) {
	b.ID.Append(r.ID)
	put(&b.OriginID, r.OriginID)
	put(&b.Copy, r.Copy)
	put(&b.SourceID, r.SourceID)
	b.Operation.Append(r.Operation)
	putTime(&b.ArrivalNS, r.Arrival)
	put(&b.SessionID, r.Session)
	put(&b.Turn, r.Turn)
	b.appendAfter(r.After)
	putTime(&b.DelayNS, r.Delay)
	put(&b.Agent, r.Agent)
	put(&b.ClientID, r.ClientID)
	put(&b.Model, r.Model)
	put(&b.Streaming, r.Streaming)
	put(&b.Choices, r.Choices)
	put(&b.InputTokens, r.InputTokens)
	put(&b.NewInputTokens, r.NewInputTokens)
	put(&b.OutputTokens, r.OutputTokens)
	put(&b.ReasoningTokens, r.ReasoningTokens)
	put(&b.MaxOutputTokens, r.MaxOutputTokens)
	put(&b.CachedTokens, r.CachedTokens)
	put(&b.CacheWriteTokens, r.CacheWriteTokens)
	ids := b.BlockIDs.Fields[0].(*column.Flat[uint64])
	for _, id := range r.Blocks {
		ids.Append(id)
	}
	b.BlockIDs.EndRow(r.Blocks != nil)
	put(&b.BlockTokens, r.BlockTokens)
	put(&b.BlockTail, r.BlockTail)
	put(&b.Prompt, r.Prompt)
	put(&b.Messages, r.Messages)
	put(&b.MessagesMode, r.MessagesMode)
	put(&b.Tools, r.Tools)
	put(&b.Body, r.Body)
	put(&b.Extra, r.Extra)
	b.appendMedia(r.Media)
	put(&b.OutputText, r.OutputText)
	put(&b.OutputMessage, r.OutputMessage)
	putTime(&b.RecordedTTFTNS, r.RecordedTTFT)
	putTime(&b.RecordedE2ENS, r.RecordedE2E)
	putTime(&b.CancelNS, r.Cancel)
	put(&b.Status, r.Status)
	put(&b.FinishReason, r.FinishReason)
	put(&b.SourceFile, r.SourceFile)
	put(&b.SourceRow, r.SourceRow)
	b.appendAttributes(r.Attributes)
}

// Row returns a row as a request, which shares no memory that the batch reuses.
func (b *Batch) Row(i int) Request {
	return Request{
		ID: b.ID.Values[i], OriginID: get(&b.OriginID, i), Copy: get(&b.Copy, i), SourceID: get(&b.SourceID, i),
		Operation: b.Operation.Values[i], Arrival: getTime(&b.ArrivalNS, i),
		Session: get(&b.SessionID, i), Turn: get(&b.Turn, i), After: b.AfterOf(i), Delay: getTime(&b.DelayNS, i),
		Agent: get(&b.Agent, i), ClientID: get(&b.ClientID, i), Model: get(&b.Model, i),
		Streaming: get(&b.Streaming, i), Choices: get(&b.Choices, i),
		InputTokens: get(&b.InputTokens, i), NewInputTokens: get(&b.NewInputTokens, i),
		OutputTokens: get(&b.OutputTokens, i), ReasoningTokens: get(&b.ReasoningTokens, i),
		MaxOutputTokens: get(&b.MaxOutputTokens, i), CachedTokens: get(&b.CachedTokens, i), CacheWriteTokens: get(&b.CacheWriteTokens, i),
		Blocks: b.blocks(i), BlockTokens: get(&b.BlockTokens, i), BlockTail: get(&b.BlockTail, i),
		Prompt: get(&b.Prompt, i), Messages: get(&b.Messages, i), MessagesMode: get(&b.MessagesMode, i),
		Tools: get(&b.Tools, i), Body: get(&b.Body, i), Extra: get(&b.Extra, i), Media: b.media(i),
		OutputText: get(&b.OutputText, i), OutputMessage: get(&b.OutputMessage, i),
		RecordedTTFT: getTime(&b.RecordedTTFTNS, i), RecordedE2E: getTime(&b.RecordedE2ENS, i), Cancel: getTime(&b.CancelNS, i),
		Status: get(&b.Status, i), FinishReason: get(&b.FinishReason, i),
		SourceFile: get(&b.SourceFile, i), SourceRow: get(&b.SourceRow, i), Attributes: b.attributes(i),
	}
}

// Blocks returns the block ids of a row without copying them; known is false if
// they were not recorded.
func (b *Batch) Blocks(i int) (ids []uint64, known bool) {
	from, to, known := b.BlockIDs.Range(i)
	return b.BlockIDs.Fields[0].(*column.Flat[uint64]).Values[from:to:to], known
}

func put[T column.Scalar](c *column.Flat[T], o Optional[T]) { c.AppendIf(o.Value, o.Known) }

func putTime(c *column.Flat[int64], o Optional[time.Duration]) {
	c.AppendIf(int64(o.Value), o.Known)
}

func get[T column.Scalar](c *column.Flat[T], i int) Optional[T] {
	if v, ok := c.Get(i); ok {
		return Some(v)
	}
	return Optional[T]{}
}

func getTime(c *column.Flat[int64], i int) Optional[time.Duration] {
	if v, ok := c.Get(i); ok {
		return Some(time.Duration(v))
	}
	return Optional[time.Duration]{}
}
