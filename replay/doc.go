// Package replay sends the requests of a canonical trace to an endpoint on
// their fixed schedule, open loop, and books every chunk and token of every
// answer.
//
// Times: a request is due when the schedule says, eligible when nothing of the
// run's own rules holds it any more, dispatched when this client acts, and sent
// when its first byte is written. Nothing shifts a due time, and no arrival is
// dropped in silence.
package replay
