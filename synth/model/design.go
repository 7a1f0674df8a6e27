package model

import "time"

// A Design says what a synthesis did to a trace, so that a fidelity report can
// tell what was meant from what was lost.
type Design struct {
	Seed     uint64  `json:"seed"`
	Factor   float64 `json:"factor"`    // times as many sessions (or requests, as Thin says)
	Speed    float64 `json:"speed"`     // time compression; 1 = none
	Copies   int     `json:"copies"`    // whole copies, the source itself included
	Fraction float64 `json:"fraction"`  // share of the sessions in one more copy
	Unit     string  `json:"unit"`      // what is copied and kept whole: session, inferred session or request
	Shift    string  `json:"shift"`     // how copies move: none, session, client, copy, or rate (within each client)
	ShiftWhy string  `json:"shift_why"` // why
	JitterNS int64   `json:"jitter_ns"` // session starts move by at most this
	TickNS   int64   `json:"tick_ns"`   // shifts are whole ticks; 1 where the trace has none

	SourceRows   int64 `json:"source_rows"` // of the selection
	Rows         int64 `json:"rows"`
	SpanNS       int64 `json:"span_ns"`      // of the selection: the period after which copies wrap
	Wrapped      int64 `json:"wrapped_rows"` // moved over an end of the span, into a namespace of their own
	CutAfter     int64 `json:"cut_after"`    // dependencies that wrapping or dropping cut
	Dropped      int64 `json:"dropped_rows"` // of the selection, over --max-input-tokens
	CutAtEnd     int64 `json:"cut_at_end"`   // rows past the end of an extension
	SharedRoots  int64 `json:"shared_roots"` // blocks that many sessions share, which keep their ids in copies
	RootsBounded bool  `json:"roots_bounded,omitempty"`
	Literal      int64 `json:"literal_rows"` // whose text copies repeat

	From   time.Duration `json:"from_ns,omitempty"`
	To     time.Duration `json:"to_ns,omitempty"`
	Extend time.Duration `json:"extend_ns,omitempty"`

	InputScale  float64            `json:"input_scale,omitempty"`  // as reached: block sizes are whole
	OutputScale float64            `json:"output_scale,omitempty"` //
	MaxInput    int64              `json:"max_input_tokens,omitempty"`
	Mix         map[string]float64 `json:"mix,omitempty"` // shares asked for, by model
	HitRate     *HitRate           `json:"hit_rate,omitempty"`
}

// A HitRate is a target for the share of prompt tokens that a prefix cache
// without limit would serve, and what became of it.
type HitRate struct {
	Target  float64 `json:"target"`
	Reached float64 `json:"reached"`
	Least   float64 `json:"least"` // what the means at hand reach at most
	Most    float64 `json:"most"`
	Private float64 `json:"private"` // share of requests whose blocks were made their own
	Shared  float64 `json:"shared"`  // share of copied sessions that kept the ids of their source
}
