package mock

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"reprise/replay/mock/wire"
)

// How a request ended, in Record.Outcome.
const (
	OutcomeOpen       = "open"        // not yet
	OutcomeCompleted  = "completed"   // all was written
	OutcomeRefused    = "refused"     // answered with an error status that the request earned
	OutcomeClientGone = "client_gone" // the client went away before the end
	OutcomeStopped    = "stopped"     // the server stopped before the end
	OutcomeFault      = "fault"       // an injected fault ended it: FaultStatus, Reset, Cut, Truncate or Error
)

// A Record is what the server saw and did for one request to generate text.
// Durations are since Server.Start, on its monotonic clock.
type Record struct {
	Ordinal   int64          `json:"ordinal"`    // place in the order of arrivals, from 0
	RequestID string         `json:"request_id"` // X-Request-Id as the client sent it; "" if it sent none
	Operation wire.Operation `json:"operation"`
	Model     string         `json:"model"` // as asked for
	Stream    bool           `json:"stream"`

	Arrival   time.Duration `json:"arrival_ns"` // when headers and body were read
	BodyBytes int64         `json:"body_bytes"`

	PromptTokens int `json:"prompt_tokens"`
	HitBlocks    int `json:"hit_blocks"`    // leading blocks that earlier arrivals had brought; 0 if the engine never saw the request
	HitTokens    int `json:"hit_tokens"`    // tokens in them
	CachedTokens int `json:"cached_tokens"` // of these, not computed again: what usage reports; never the whole prompt

	PlannedTokens   int `json:"planned_tokens"`   // of the answer, all choices; 0 if the engine never saw the request
	SentTokens      int `json:"sent_tokens"`      // of these, written
	ReasoningTokens int `json:"reasoning_tokens"` // of SentTokens

	Chunks        []ChunkSent `json:"chunks"`         // events with tokens, in order; the one body of an answer that is not streamed is no chunk
	ChunksDropped bool        `json:"chunks_dropped"` // the account had no room for them

	Headers time.Duration `json:"headers_ns"` // before the headers were written; 0 if none were
	End     time.Duration `json:"end_ns"`     // when the server was done; 0 while open
	Status  int           `json:"status"`     // HTTP; 0 if no headers were written
	Outcome string        `json:"outcome"`
	Fault   string        `json:"fault"` // the injected fault, "" if none
}

// A ChunkSent is one event with tokens.
type ChunkSent struct {
	At     time.Duration // just before it was written
	Tokens int32         // of all kinds
	Choice int32
}

// MarshalJSON writes [at_ns, tokens, choice].
func (c ChunkSent) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d,%d]", c.At, c.Tokens, c.Choice), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *ChunkSent) UnmarshalJSON(b []byte) error {
	var v [3]int64
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	c.At, c.Tokens, c.Choice = time.Duration(v[0]), int32(v[1]), int32(v[2])
	return nil
}

// An account keeps the records in the order of arrivals.
type account struct {
	mu      sync.Mutex
	records []Record
	chunks  int   // in records
	dropped int64 // requests that found no room
}

// open books an arrival and returns its place, or -1 without room.
func (a *account) open(c *Config, r *Record) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.records) >= c.AccountRecords {
		a.dropped++
		return -1
	}
	a.records = append(a.records, *r)
	return len(a.records) - 1
}

// close replaces the record at its place by what it became.
func (a *account) close(c *Config, place int, r *Record) {
	if place < 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.chunks+len(r.Chunks) > c.AccountChunks {
		r.Chunks, r.ChunksDropped = nil, true
	}
	a.chunks += len(r.Chunks)
	a.records[place] = *r
}

// Account returns the records so far, in the order of arrivals, and how many
// requests found no room among them. A request that is still open has no chunks
// yet. A client that has read a response to its end finds it closed here.
func (s *Server) Account() (records []Record, dropped int64) {
	s.account.mu.Lock()
	defer s.account.mu.Unlock()
	return append([]Record(nil), s.account.records...), s.account.dropped
}

// WriteAccount writes the records as JSON lines, one request each, with keys as
// in Record's tags and durations in ns since Start.
func (s *Server) WriteAccount(w io.Writer) error {
	records, _ := s.Account()
	out := json.NewEncoder(w)
	for i := range records {
		if err := out.Encode(&records[i]); err != nil {
			return fmt.Errorf("write account: %w", err)
		}
	}
	return nil
}

// accountHeader tells how many requests are missing from the lines, and
// startHeader the server's start in Unix ns.
const (
	accountHeader = "X-Mock-Account-Dropped"
	startHeader   = "X-Mock-Start-Unix-Ns"
)

func (s *Server) serveAccount(w http.ResponseWriter, _ *http.Request) {
	_, dropped := s.Account()
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set(accountHeader, fmt.Sprint(dropped))
	w.Header().Set(startHeader, fmt.Sprint(s.start.UnixNano()))
	s.WriteAccount(w) // the client alone can be at fault, and it is gone then
}
