package export

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

// Names of AIPerf's files.
const (
	AIPerfJSON    = "profile_export_aiperf.json"
	AIPerfCSV     = "profile_export_aiperf.csv"
	AIPerfRecords = "profile_export.jsonl"
)

// aiperfSchema is the version of profile_export_aiperf.json that is written
// (aiperf 0.13, common/models/export_models.py).
const aiperfSchema = "1.4"

// maxErrors is how many different errors the summary holds apart.
const maxErrors = 1000

// An AIPerf writes a run as AIPerf 0.13 writes its own: names, units and formulas
// are those of its metrics (aiperf/metrics/types), statistics those of its exporter
// (quantiles between two samples as NumPy has them, std over n). A record goes to
// the lines as it comes; the summary's memory grows by about 100 bytes a request.
//
// Counts are the server's, where AIPerf has a tokenizer's unless told otherwise.
// What a request lacks is absent, as there.
type AIPerf struct {
	start    int64 // wall clock of offset 0, Unix ns; 0 = not known
	buffer   *bufio.Writer
	lines    *json.Encoder
	err      error
	values   map[string][]float64 // of successful requests, in display units
	counts   aiperfCounts
	errors   map[recordError]int64
	sessions map[string]int64
	sent     extent
	ends     extent
}

type aiperfCounts struct {
	sessions, good, bad int64
}

// An extent is a first and a last instant.
type extent struct {
	first, last time.Duration
	known       bool
}

func (e *extent) add(at time.Duration) {
	if !e.known {
		e.first, e.last, e.known = at, at, true
	}
	e.first, e.last = min(e.first, at), max(e.last, at)
}

// NewAIPerf begins an export whose records are written to lines.
func NewAIPerf(run *results.Run, lines io.Writer) *AIPerf {
	a := &AIPerf{buffer: bufio.NewWriterSize(lines, 1<<16), values: map[string][]float64{}, errors: map[recordError]int64{}, sessions: map[string]int64{}}
	a.lines = json.NewEncoder(a.buffer)
	a.lines.SetEscapeHTML(false)
	if at, err := time.Parse(time.RFC3339Nano, run.Started); err == nil {
		a.start = at.UnixNano()
	}
	return a
}

// A record is a line of profile_export.jsonl: MetricRecordInfo.
type record struct {
	Metadata metadata          `json:"metadata"`
	Metrics  map[string]metric `json:"metrics"`
	Error    *recordError      `json:"error"`
}

// A metric is one value of a record, or a list of them.
type metric struct {
	Value any    `json:"value"`
	Unit  string `json:"unit"`
}

type metadata struct {
	SessionNum     int64   `json:"session_num"`
	RequestID      string  `json:"x_request_id"`
	CorrelationID  *string `json:"x_correlation_id"`
	ConversationID *string `json:"conversation_id"`
	Turn           *int32  `json:"turn_index"`
	Issued         *int64  `json:"credit_issued_ns"`
	Start          int64   `json:"request_start_ns"`
	Ack            *int64  `json:"request_ack_ns"`
	End            int64   `json:"request_end_ns"`
	Worker         string  `json:"worker_id"`
	Processor      string  `json:"record_processor_id"`
	Phase          string  `json:"benchmark_phase"`
	Cancelled      bool    `json:"was_cancelled"`
	CancelledAt    *int64  `json:"cancellation_time_ns"`
}

// A recordError is AIPerf's ErrorDetails.
type recordError struct {
	Code    int32  `json:"code,omitempty"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// cancelled is what AIPerf says of requests that were given up on purpose.
const (
	cancelledCode = 499
	cancelledType = "RequestCancellationError"
)

// Add takes a result. One that was never sent has no place in AIPerf's files.
func (a *AIPerf) Add(r *results.Result) {
	if a.err != nil || !r.Sent.Known || !r.End.Known {
		return
	}
	line := record{Metadata: a.metadata(r), Metrics: map[string]metric{}}
	warm := r.Phase.Known && r.Phase.Value == results.PhaseWarmUp
	if !analysis.Successful(r) {
		line.Error = errorOf(r)
		if r.PlannedInputTokens.Known {
			line.Metrics["error_isl"] = metric{r.PlannedInputTokens.Value, unitTokens}
		}
		if !warm {
			a.failed(*line.Error)
		}
	} else {
		for _, m := range perRecord {
			if v, ok := m.of(r); ok {
				line.Metrics[m.tag] = metric{v, m.unit}
				if !warm {
					a.values[m.tag] = append(a.values[m.tag], v)
				}
			}
		}
		if gaps := chunkGaps(r); len(gaps) > 0 {
			line.Metrics[tagChunkGap] = metric{gaps, unitMS}
		}
		if !warm {
			a.counts.good++
			a.sent.add(r.Sent.Value)
			a.ends.add(lastAnswer(r))
		}
	}
	a.err = a.lines.Encode(line)
}

func (a *AIPerf) failed(e recordError) {
	a.counts.bad++
	if _, seen := a.errors[e]; !seen && len(a.errors) >= maxErrors {
		e = recordError{Type: "other", Message: "errors of further kinds"}
	}
	a.errors[e]++
}

// lastAnswer is when the last content of a successful response came.
func lastAnswer(r *results.Result) time.Duration {
	if at, ok := results.LastToken(r); ok {
		return r.Sent.Value + at
	}
	return r.End.Value
}

func (a *AIPerf) metadata(r *results.Result) metadata {
	m := metadata{
		RequestID: requestID(r), Start: a.wall(r.Sent.Value), End: a.wall(r.End.Value),
		Worker: r.Worker.Or("reprise"), Processor: "reprise", Phase: "profiling",
	}
	if r.Phase.Known && r.Phase.Value == results.PhaseWarmUp {
		m.Phase = "warmup"
	}
	if r.Session.Known {
		m.CorrelationID, m.ConversationID = &r.Session.Value, &r.Session.Value
	}
	if r.Turn.Known {
		m.Turn = &r.Turn.Value
	}
	m.SessionNum = a.session(r)
	m.Issued, m.Ack = a.optional(r.Dispatched), a.optional(r.FirstByte)
	if r.Outcome == results.OutcomeCancelled || r.Outcome == results.OutcomeCut {
		m.Cancelled, m.CancelledAt = true, a.optional(r.End)
	}
	return m
}

// session numbers sessions in the order in which their first requests ended; a
// request without one is its own.
func (a *AIPerf) session(r *results.Result) int64 {
	n := a.counts.sessions
	if !r.Session.Known {
		a.counts.sessions++
		return n
	}
	if known, seen := a.sessions[r.Session.Value]; seen {
		return known
	}
	a.sessions[r.Session.Value] = n
	a.counts.sessions++
	return n
}

func (a *AIPerf) wall(at time.Duration) int64 { return a.start + int64(at) }

func (a *AIPerf) optional(at trace.Optional[time.Duration]) *int64 {
	if !at.Known {
		return nil
	}
	return new(a.wall(at.Value))
}

// requestID is what the request named itself to the server.
func requestID(r *results.Result) string {
	id := "reprise-" + strconv.FormatInt(r.ID, 10)
	if r.Pass > 0 {
		id += "-" + strconv.Itoa(int(r.Pass))
	}
	return id
}

func errorOf(r *results.Result) *recordError {
	e := &recordError{Code: r.HTTPStatus.Or(0), Type: r.Outcome, Message: r.Cause.Or("no cause recorded")}
	switch {
	case r.Outcome == results.OutcomeCancelled || r.Outcome == results.OutcomeCut:
		e.Code, e.Type = cancelledCode, cancelledType
	case e.Code < 400:
		e.Code = 0 // the status was no error
	}
	return e
}

// Close ends the records, and returns the first error of writing them.
func (a *AIPerf) Close() error {
	if a.err != nil {
		return a.err
	}
	return a.buffer.Flush()
}
