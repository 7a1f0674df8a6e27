package results

import (
	"fmt"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
	"reprise/trace/column"
)

// SchemaVersion is the version of the results schema that this package writes.
const SchemaVersion = 1

// A fileRow is results schema 1 as Parquet sees it.
type fileRow struct {
	ID   int64 `parquet:"id,delta"`
	Pass int32 `parquet:"pass,delta"`

	Phase    string `parquet:"phase,optional,dict"`
	Worker   string `parquet:"worker,optional,dict"`
	URL      string `parquet:"url,dict"`
	Protocol string `parquet:"protocol,dict"`
	Model    string `parquet:"model,optional,dict"`

	SessionID string `parquet:"session_id,optional,dict,zstd"`
	Turn      int32  `parquet:"turn,optional,delta"`
	Agent     string `parquet:"agent,optional,dict,zstd"`

	DueNS         int64  `parquet:"due_ns,optional,delta"`
	EligibleNS    int64  `parquet:"eligible_ns,optional,delta"`
	HoldCause     string `parquet:"hold_cause,optional,dict"`
	GapCutNS      int64  `parquet:"gap_cut_ns,optional,delta"`
	DispatchedNS  int64  `parquet:"dispatched_ns,optional,delta"`
	ConnectedNS   int64  `parquet:"connected_ns,optional,delta"`
	SentNS        int64  `parquet:"sent_ns,optional,delta"`
	SentEndNS     int64  `parquet:"sent_end_ns,optional,delta"`
	FirstByteNS   int64  `parquet:"first_byte_ns,optional,delta"`
	FirstTokenNS  int64  `parquet:"first_token_ns,optional,delta"`
	FirstOutputNS int64  `parquet:"first_output_ns,optional,delta"`
	LastTokenNS   int64  `parquet:"last_token_ns,optional,delta"`
	EndNS         int64  `parquet:"end_ns,optional,delta"`

	ConnReused bool  `parquet:"conn_reused,optional"`
	BytesOut   int64 `parquet:"bytes_out,optional,delta"`
	BytesIn    int64 `parquet:"bytes_in,optional,delta"`

	Outcome      string `parquet:"outcome,dict"`
	HTTPStatus   int32  `parquet:"http_status,optional,delta"`
	Cause        string `parquet:"cause,optional,dict,zstd"`
	FinishReason string `parquet:"finish_reason,optional,dict"`
	Note         string `parquet:"note,optional,dict,zstd"`

	PlannedInputTokens  int64  `parquet:"planned_input_tokens,optional,delta"`
	CountedInputTokens  int64  `parquet:"counted_input_tokens,optional,delta"`
	CachedTokens        int64  `parquet:"cached_tokens,optional,delta"`
	PlannedOutputTokens int64  `parquet:"planned_output_tokens,optional,delta"`
	OutputTokens        int64  `parquet:"output_tokens,optional,delta"`
	ReasoningTokens     int64  `parquet:"reasoning_tokens,optional,delta"`
	OutputSource        string `parquet:"output_source,optional,dict"`

	Ledger           []fileEntry `parquet:"ledger,list,optional"`
	LedgerDifference int64       `parquet:"ledger_difference,optional,delta"`

	RecordedTTFTNS int64 `parquet:"recorded_ttft_ns,optional,delta"`
	RecordedE2ENS  int64 `parquet:"recorded_e2e_ns,optional,delta"`
}

type fileEntry struct {
	AtUS       int64  `parquet:"at_us,delta,zstd"`
	Tokens     int32  `parquet:"tokens,optional,delta,zstd"`
	Kind       string `parquet:"kind,dict,zstd"`
	Choice     int32  `parquet:"choice,delta,zstd"`
	Source     string `parquet:"source,dict,zstd"`
	Event      int32  `parquet:"event,delta,zstd"`
	SharedRead bool   `parquet:"shared_read,zstd"`
}

// Schema is results schema 1 in Parquet terms.
var Schema = parquet.NewSchema("result", parquet.SchemaOf(fileRow{}))

// A batch is a run of results, column by column, in schema order.
type batch struct {
	id                                                          column.Flat[int64]
	pass                                                        column.Flat[int32]
	phase, worker, url, protocol, model                         column.Flat[string]
	session                                                     column.Flat[string]
	turn                                                        column.Flat[int32]
	agent                                                       column.Flat[string]
	due, eligible                                               column.Flat[int64]
	hold                                                        column.Flat[string]
	gapCut                                                      column.Flat[int64]
	dispatched, connected, sent, sentEnd                        column.Flat[int64]
	firstByte, firstToken, firstOutput, lastToken, end          column.Flat[int64]
	reused                                                      column.Flat[bool]
	bytesOut, bytesIn                                           column.Flat[int64]
	outcome                                                     column.Flat[string]
	status                                                      column.Flat[int32]
	cause, finish, note                                         column.Flat[string]
	plannedIn, countedIn, cached, plannedOut, output, reasoning column.Flat[int64]
	outputSource                                                column.Flat[string]
	at                                                          column.Flat[int64]
	tokens                                                      column.Flat[int32]
	kind, source                                                column.Words
	choice                                                      column.Flat[int32]
	event                                                       column.Flat[int32]
	shared                                                      column.Flat[bool]
	ledger                                                      *column.List
	difference                                                  column.Flat[int64]
	recordedTTFT, recordedE2E                                   column.Flat[int64]

	cols []column.Column
}

func newBatch() *batch {
	b := &batch{}
	for _, name := range kindNames {
		b.kind.Place(name)
	}
	for _, name := range sourceNames {
		b.source.Place(name)
	}
	b.ledger = column.NewList(&b.at, &b.tokens, &b.kind, &b.choice, &b.source, &b.event, &b.shared)
	b.cols = []column.Column{
		&b.id, &b.pass, &b.phase, &b.worker, &b.url, &b.protocol, &b.model, &b.session, &b.turn, &b.agent,
		&b.due, &b.eligible, &b.hold, &b.gapCut, &b.dispatched, &b.connected, &b.sent, &b.sentEnd,
		&b.firstByte, &b.firstToken, &b.firstOutput, &b.lastToken, &b.end,
		&b.reused, &b.bytesOut, &b.bytesIn, &b.outcome, &b.status, &b.cause, &b.finish, &b.note,
		&b.plannedIn, &b.countedIn, &b.cached, &b.plannedOut, &b.output, &b.reasoning, &b.outputSource,
		b.ledger, &b.difference, &b.recordedTTFT, &b.recordedE2E,
	}
	return b
}

// check refuses names that this program does not know: a later one has written
// the file.
func (b *batch) check() error {
	if t := b.kind.Table; len(t) > len(kindNames) {
		return fmt.Errorf("column ledger.kind: no kind is called %q", t[len(kindNames)])
	}
	if t := b.source.Table; len(t) > len(sourceNames) {
		return fmt.Errorf("column ledger.source: no source is called %q", t[len(sourceNames)])
	}
	for i, s := range b.outputSource.Values {
		if _, ok := named(sourceNames[:], s); !ok && !b.outputSource.Null[i] {
			return fmt.Errorf("column output_source: no source is called %q", s)
		}
	}
	return nil
}

func named(names []string, name string) (int, bool) {
	i := slices.Index(names, name)
	return max(i, 0), i >= 0
}

func (b *batch) len() int { return b.id.Len() }

func (b *batch) reset() {
	for _, c := range b.cols {
		c.Reset()
	}
}

func (b *batch) append(r *Result) {
	b.id.Append(r.ID)
	b.pass.Append(r.Pass)
	put(&b.phase, r.Phase)
	put(&b.worker, r.Worker)
	b.url.Append(r.URL)
	b.protocol.Append(r.Protocol)
	put(&b.model, r.Model)
	put(&b.session, r.Session)
	put(&b.turn, r.Turn)
	put(&b.agent, r.Agent)
	putTime(&b.due, r.Due)
	putTime(&b.eligible, r.Eligible)
	put(&b.hold, r.HoldCause)
	putTime(&b.gapCut, r.GapCut)
	putTime(&b.dispatched, r.Dispatched)
	putTime(&b.connected, r.Connected)
	putTime(&b.sent, r.Sent)
	putTime(&b.sentEnd, r.SentEnd)
	putTime(&b.firstByte, r.FirstByte)
	putTime(&b.firstToken, r.FirstToken)
	putTime(&b.firstOutput, r.FirstOutput)
	putTime(&b.lastToken, r.LastToken)
	putTime(&b.end, r.End)
	put(&b.reused, r.ConnReused)
	put(&b.bytesOut, r.BytesOut)
	put(&b.bytesIn, r.BytesIn)
	b.outcome.Append(r.Outcome)
	put(&b.status, r.HTTPStatus)
	put(&b.cause, r.Cause)
	put(&b.finish, r.FinishReason)
	put(&b.note, r.Note)
	put(&b.plannedIn, r.PlannedInputTokens)
	put(&b.countedIn, r.CountedInputTokens)
	put(&b.cached, r.CachedTokens)
	put(&b.plannedOut, r.PlannedOutputTokens)
	put(&b.output, r.OutputTokens)
	put(&b.reasoning, r.ReasoningTokens)
	b.outputSource.AppendIf(r.OutputSource.Value.String(), r.OutputSource.Known)
	b.appendLedger(r.Ledger)
	put(&b.difference, r.LedgerDifference)
	putTime(&b.recordedTTFT, r.RecordedTTFT)
	putTime(&b.recordedE2E, r.RecordedE2E)
}

func (b *batch) appendLedger(entries []Entry) {
	n := len(entries)
	at, tokens, kind, choice := b.at.Extend(n)[:n], b.tokens.Extend(n)[:n], b.kind.Extend(n)[:n], b.choice.Extend(n)[:n]
	source, event, shared := b.source.Extend(n)[:n], b.event.Extend(n)[:n], b.shared.Extend(n)[:n]
	null := b.tokens.Null[len(b.tokens.Null)-n:][:n]
	// The entries of a row are in the cache, so that each column is filled on its own;
	// i is below n for all of them, and no bounds are checked.
	for i := range entries {
		at[i] = entries[i].At
	}
	for i := range entries {
		e := &entries[i]
		tokens[i], null[i] = e.Tokens.Value, !e.Tokens.Known
	}
	for i := range entries {
		e := &entries[i]
		choice[i], event[i] = e.Choice, e.Event
	}
	for i := range entries {
		e := &entries[i]
		kind[i], source[i], shared[i] = uint32(e.Kind), uint32(e.Source), e.SharedRead // the tables are in their order
	}
	b.ledger.EndRow(entries != nil)
}

func (b *batch) row(i int) Result {
	source := get(&b.outputSource, i)
	from, _ := named(sourceNames[:], source.Value) // check has seen it
	return Result{
		ID: b.id.Values[i], Pass: b.pass.Values[i],
		Phase: get(&b.phase, i), Worker: get(&b.worker, i), URL: b.url.Values[i], Protocol: b.protocol.Values[i], Model: get(&b.model, i),
		Session: get(&b.session, i), Turn: get(&b.turn, i), Agent: get(&b.agent, i),
		Due: getTime(&b.due, i), Eligible: getTime(&b.eligible, i), HoldCause: get(&b.hold, i), GapCut: getTime(&b.gapCut, i),
		Dispatched: getTime(&b.dispatched, i), Connected: getTime(&b.connected, i), Sent: getTime(&b.sent, i), SentEnd: getTime(&b.sentEnd, i),
		FirstByte: getTime(&b.firstByte, i), FirstToken: getTime(&b.firstToken, i), FirstOutput: getTime(&b.firstOutput, i),
		LastToken: getTime(&b.lastToken, i), End: getTime(&b.end, i),
		ConnReused: get(&b.reused, i), BytesOut: get(&b.bytesOut, i), BytesIn: get(&b.bytesIn, i),
		Outcome: b.outcome.Values[i], HTTPStatus: get(&b.status, i), Cause: get(&b.cause, i), FinishReason: get(&b.finish, i), Note: get(&b.note, i),
		PlannedInputTokens: get(&b.plannedIn, i), CountedInputTokens: get(&b.countedIn, i), CachedTokens: get(&b.cached, i),
		PlannedOutputTokens: get(&b.plannedOut, i), OutputTokens: get(&b.output, i), ReasoningTokens: get(&b.reasoning, i),
		OutputSource: trace.Optional[Source]{Value: Source(from), Known: source.Known},
		Ledger:       b.entries(i), LedgerDifference: get(&b.difference, i),
		RecordedTTFT: getTime(&b.recordedTTFT, i), RecordedE2E: getTime(&b.recordedE2E, i),
	}
}

func (b *batch) entries(i int) []Entry {
	from, to, known := b.ledger.Range(i)
	if !known {
		return nil
	}
	out := make([]Entry, 0, to-from)
	for e := from; e < to; e++ {
		out = append(out, Entry{
			At: b.at.Values[e], Tokens: get(&b.tokens, e), Kind: Kind(b.kind.Places[e]), Choice: b.choice.Values[e],
			Source: Source(b.source.Places[e]), Event: b.event.Values[e], SharedRead: b.shared.Values[e],
		})
	}
	return out
}

func put[T column.Scalar](c *column.Flat[T], o trace.Optional[T]) { c.AppendIf(o.Value, o.Known) }

func putTime(c *column.Flat[int64], o trace.Optional[time.Duration]) {
	c.AppendIf(int64(o.Value), o.Known)
}

func get[T column.Scalar](c *column.Flat[T], i int) trace.Optional[T] {
	if v, ok := c.Get(i); ok {
		return trace.Some(v)
	}
	return trace.Optional[T]{}
}

func getTime(c *column.Flat[int64], i int) trace.Optional[time.Duration] {
	if v, ok := c.Get(i); ok {
		return trace.Some(time.Duration(v))
	}
	return trace.Optional[time.Duration]{}
}
