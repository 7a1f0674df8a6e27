// Package guidellm writes, and reads back, the traces that guidellm replays
// (vllm-project/guidellm 0.8, guidellm/data/deserializers/trace_*.py): JSON lines of
// timestamp and duration in seconds, input_length, output_length and, for the format
// it calls mooncake, hash_ids.
//
// The format has no place for sessions, models, content and what production measured
// beside the duration.
package guidellm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"reprise/formats/mooncake"
	"reprise/formats/peers"
	"reprise/trace"
)

// Importer returns a reader of such traces: rows as Mooncake has them, times in
// seconds.
func Importer(blockTokens int) *mooncake.Importer {
	return &mooncake.Importer{BlockTokens: blockTokens, TimeUnit: time.Second}
}

// An Exporter writes a trace for guidellm. Where the first row has blocks, all rows
// get ids for all of their prompt, as guidellm demands: what is in no block gets an
// id of its own.
type Exporter struct {
	blocks  peers.Renamer
	written bool
}

type line struct {
	Timestamp json.Number `json:"timestamp"`
	Input     int64       `json:"input_length"`
	Output    int64       `json:"output_length"`
	Duration  json.Number `json:"duration,omitempty"`
	Blocks    *[]uint64   `json:"hash_ids,omitempty"`
}

// maxInt32 bounds the numbers that guidellm's tables hold.
const maxInt32 = 1<<31 - 1

// Export implements formats.Exporter. Its memory grows with the number of different
// blocks.
func (e *Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) ([]string, error) {
	if meta.Clock != trace.ClockTrace {
		return nil, trace.WithFix(fmt.Errorf("guidellm needs a start time for each row, and this trace has no clock for all of them (clock %s)", meta.Clock), "give the sessions times first: reprise synth, or export another format")
	}
	e.blocks = peers.Renamer{}
	lost := peers.Losses{}
	withBlocks, first := false, true
	n, err := peers.Lines(ctx, rows, w, func(r *trace.Request) any {
		at, timed := r.Arrival.Get()
		in, okIn := r.InputTokens.Get()
		out, okOut := r.OutputTokens.Get()
		if !timed || !okIn || !okOut || in > maxInt32 || out > maxInt32 {
			lost.Add("whole row (no arrival, or no count of tokens)")
			return nil
		}
		if first {
			withBlocks, first = len(r.Blocks) > 0, false
		}
		l := &line{Timestamp: peers.Decimal(at, 0), Input: in, Output: out}
		if took, ok := r.RecordedE2E.Get(); ok && took >= 0 {
			l.Duration = peers.Decimal(took, 0)
		}
		carried := []peers.Part{}
		if withBlocks {
			ids, ok := e.cover(r, in)
			if ok || len(r.Blocks) == 0 {
				carried = append(carried, peers.Blocks)
			}
			l.Blocks = &ids
		}
		if r.RecordedE2E.Known && !r.RecordedTTFT.Known {
			carried = append(carried, peers.Latencies)
		}
		lost.Row(r, carried...)
		return l
	})
	if err != nil {
		return nil, err
	}
	if e.blocks.Split > 0 {
		lost["prefix shared with a short last block (given an id of its own)"] = e.blocks.Split
	}
	e.written = n > 0
	return lost.List(), nil
}

// cover returns ids for all of a prompt; ok tells whether the row's own are among
// them.
func (e *Exporter) cover(r *trace.Request, in int64) (ids []uint64, ok bool) {
	ids, ok = e.blocks.Row(r, in)
	if ids == nil {
		ids = []uint64{}
	}
	if e.blocks.Size == 0 { // the first row's blocks cannot be used
		e.blocks.Size = max(1, int64(r.BlockTokens.Or(512)))
	}
	for need := (in + e.blocks.Size - 1) / e.blocks.Size; int64(len(ids)) < need; {
		ids = append(ids, e.blocks.Fresh())
	}
	return ids, ok
}

// Advice says how guidellm is told to replay the file.
func (e *Exporter) Advice() []string {
	if !e.written {
		return nil
	}
	if e.blocks.Size > 0 {
		return []string{fmt.Sprintf("guidellm reads it as data of kind mooncake, hash_id_block_size=%d", e.blocks.Size)}
	}
	return []string{"guidellm reads it as data of kind trace_synthetic"}
}
