package cluster

import (
	"time"

	"reprise/replay"
	"reprise/trace/results"
)

// protocolVersion is that of the messages; a worker with another is refused.
const protocolVersion = 2

// A hello is how a worker asks to join.
type hello struct {
	Version  string       `json:"version"`  // of reprise
	Protocol int          `json:"protocol"` // of the messages
	Nonce    string       `json:"nonce"`    // of this process: the name may have been another's
	Host     results.Host `json:"host"`
}

// A welcome answers it. A worker that is refused gives up; one that is told to wait
// asks again.
type welcome struct {
	Refused string `json:"refused,omitempty"`
	Fix     string `json:"fix,omitempty"`
	Wait    string `json:"wait,omitempty"`
	Plan    *plan  `json:"plan,omitempty"`
}

// A plan is all that a worker needs to send its shard. Keys and the values of headers
// are in the environment of each worker, and not in it; --extra-body is.
type plan struct {
	Run      string         `json:"run"` // a name of its own for this run
	Index    int            `json:"index"`
	Of       int            `json:"of"`
	Args     []string       `json:"args,omitempty"` // flags of reprise replay; in no file, for extra bodies may be secrets
	Path     string         `json:"path"`           // of the trace, where the coordinator has it
	Sessions bool           `json:"sessions"`
	Slots    slotSet        `json:"slots"`
	Mine     int64          `json:"mine"`             // requests in them
	Lease    time.Duration  `json:"lease"`            // a worker that is silent for longer is lost
	Every    time.Duration  `json:"every"`            // from beat to beat
	Stream   time.Duration  `json:"stream,omitempty"` // how often results are handed over while the run goes on; 0 = the coordinator sees the directory
	TakeOver bool           `json:"take_over"`
	Closed   bool           `json:"closed,omitempty"`
	Places   int            `json:"places,omitempty"`    // of the whole run
	CoolFrom *time.Duration `json:"cool_from,omitempty"` // when the cool-down begins
	Base     results.Run    `json:"base"`                // what run.json says of the whole run, as known before it
}

// A beat says how far a worker is.
type beat struct {
	Nonce     string          `json:"nonce"`
	Sent      int64           `json:"sent"`  // clock: when this beat left
	State     string          `json:"state"` // stateReady, ...
	Error     string          `json:"error,omitempty"`
	Fix       string          `json:"fix,omitempty"`
	Legs      int             `json:"legs"`            // shards that it has begun, taken over or its own
	Reach     []*promise      `json:"reach,omitempty"` // of each leg of a closed loop; null = not known yet
	Progress  replay.Progress `json:"progress"`
	Clock     *Estimate       `json:"clock,omitempty"`
	Want      []int           `json:"want,omitempty"` // legs whose share it needs: the trace is not at the plan's path
	Delivered bool            `json:"delivered,omitempty"`
}

// States of a worker, in their order.
const (
	statePreparing = "preparing"
	stateReady     = "ready"
	stateRunning   = "running"
	stateFenced    = "fenced" // it has heard nothing for so long that others take over what it has not sent
	stateDone      = "done"
	stateFailed    = "failed"
)

// orders answer a beat. They say what holds from now on, not what has changed, so
// that none is missed.
type orders struct {
	There    int64      `json:"there"`
	Answered int64      `json:"answered"`
	Unknown  bool       `json:"unknown,omitempty"`  // this worker is not part of the run
	Start    int64      `json:"start,omitempty"`    // instant of time 0, by the coordinator's clock; 0 = not yet
	Stop     bool       `json:"stop,omitempty"`     // send no more
	Fail     string     `json:"fail,omitempty"`     // the run is off, and why
	Takeover []takeover `json:"takeover,omitempty"` // all that the beat's Legs does not count
	Collect  bool       `json:"collect,omitempty"`  // all is sent: hand over the results
	Upload   bool       `json:"upload,omitempty"`   // over the bus; else the coordinator sees the directory
	Bye      bool       `json:"bye,omitempty"`
	Shares   []share    `json:"shares,omitempty"` // of those that the beat wants, what is in the object store
}

// A piece is the answer to a piece of a file: where the next begins.
type piece struct {
	Next  int64  `json:"next"`
	Error string `json:"error,omitempty"`
}

// Headers of a piece.
const (
	headerFile   = "Reprise-File"
	headerOffset = "Reprise-Offset"
	headerSum    = "Reprise-SHA256" // of the whole file, with its last piece
)

// A kept is worker.json: what makes the results of a worker part of a run. It is
// beside them from the start, so that they can be assembled without a coordinator.
type kept struct {
	Worker string   `json:"worker"`
	Plan   plan     `json:"plan"`
	Start  int64    `json:"start"` // instant of time 0 by this worker's clock
	First  Estimate `json:"first"` // that Start was made with
	Clock  filter   `json:"clock"`
	Host   results.Host
	State  string `json:"state"`
	Legs   int    `json:"legs"`
}

// keptFile is the name of a kept in a worker's directory, beside its shards' run
// directories 0, 1, ...
const keptFile = "worker.json"
