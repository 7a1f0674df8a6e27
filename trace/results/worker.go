package results

// A Worker is one load host of a run of several. Instants of its results are on the
// coordinator's clock as far as that is known: Clock says how far.
type Worker struct {
	Name     string `json:"name"`
	State    string `json:"state"`    // WorkerEnded, ...
	Planned  int64  `json:"planned"`  // requests of its shard at the start
	Recorded int64  `json:"recorded"` // results, also of what it took over
	Sent     int64  `json:"sent"`     // of these, dispatched
	Lost     int64  `json:"lost"`     // requests of its shard that are in no result, and were taken over by none

	LostAtNS  *int64 `json:"lost_at_ns,omitempty"` // since the start of the run: when it was noticed
	LostWhy   string `json:"lost_why,omitempty"`
	TookOver  int    `json:"took_over,omitempty"` // shards of lost workers, in part
	SilentNS  int64  `json:"longest_silence_ns"`  // between two messages from it
	LateP99NS *int64 `json:"lateness_p99_ns"`     // dispatched - eligible; null if it dispatched nothing

	Clock *WorkerClock `json:"clock"` // null if it was never compared
	Host  Host         `json:"host"`
}

// MissingWorkers stands for all workers of which nothing is at hand, as one.
const MissingWorkers = "missing"

// States of a worker.
const (
	WorkerEnded    = "ended"    // it sent its shard, and its results are all here
	WorkerStopped  = "stopped"  // it stopped sending before its end, and its results are here
	WorkerLost     = "lost"     // it fell silent; its results are not here
	WorkerRestored = "restored" // it was lost, and its results were found later
)

// Said is how many workers came to an end, and said what their clients used: the sums of
// Ended.Client are theirs.
func (r *Run) Said() (n int) {
	for i := range r.Workers {
		if s := r.Workers[i].State; s == WorkerEnded || s == WorkerStopped {
			n++
		}
	}
	return n
}

// A WorkerClock compares a worker's clock with the coordinator's. The true offset is
// within the bound of the estimate, as far as the clocks run evenly: the bound is
// half of the shortest round trip.
type WorkerClock struct {
	OffsetNS  int64    `json:"offset_ns"`       // coordinator - worker, before the start
	BoundNS   int64    `json:"bound_ns"`        // of OffsetNS
	LastNS    int64    `json:"last_offset_ns"`  // likewise, at the end
	LastBound int64    `json:"last_bound_ns"`   //
	DriftPPM  *float64 `json:"drift_ppm"`       // growth of the offset; null without a time between the two
	DriftOf   *float64 `json:"drift_bound_ppm"` // what the bounds leave open
	Samples   int      `json:"samples"`         // exchanges
	ShiftNS   int64    `json:"shift_ns"`        // most that an instant of this worker was moved by; 0 where the change of the offset is within the bounds
}
