// Package inferenceperf writes, and reads back, the tables that inference-perf
// replays (kubernetes-sigs/inference-perf 0.7, utils/trace_reader.py,
// AzurePublicDatasetReader): a header, then time, prompt tokens and answer tokens, by
// position. Its reader keeps microseconds, and drops rows whose time has a zone but no
// fraction, as Azure's of 2024 may have; so all times here have 6 digits and no zone.
//
// The format has no place for anything else.
package inferenceperf

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"reprise/formats/peers"
	"reprise/trace"
)

// Header is the first line.
const Header = "TIMESTAMP,ContextTokens,GeneratedTokens\n"

// An Exporter writes a table for inference-perf. Times of traces without Unix times
// count from 1970.
type Exporter struct{}

// Export implements formats.Exporter.
func (Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) ([]string, error) {
	if meta.Clock != trace.ClockTrace {
		return nil, trace.WithFix(fmt.Errorf("inference-perf needs a start time for each row, and this trace has no clock for all of them (clock %s)", meta.Clock), "give the sessions times first: reprise synth, or export another format")
	}
	out := bufio.NewWriterSize(w, 1<<16)
	out.WriteString(Header)
	lost := peers.Losses{}
	epoch := time.Duration(meta.EpochNS.Or(0))
	var buf []byte
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		at, timed := r.Arrival.Get()
		tokens, okIn := r.InputTokens.Get()
		answer, okOut := r.OutputTokens.Get()
		if !timed || !okIn || !okOut {
			lost.Add("whole row (no arrival, or no count of tokens)")
			continue
		}
		if (epoch+at)%time.Microsecond != 0 {
			lost.Add("digits below the microsecond")
		}
		buf = time.Unix(0, int64(epoch+at)).UTC().AppendFormat(buf[:0], "2006-01-02 15:04:05.000000")
		buf = strconv.AppendInt(append(buf, ','), tokens, 10)
		buf = strconv.AppendInt(append(buf, ','), answer, 10)
		if _, err := out.Write(append(buf, '\n')); err != nil {
			return nil, err
		}
		lost.Row(&r)
	}
	return lost.List(), out.Flush()
}

// Advice says how inference-perf is told to replay the file.
func (Exporter) Advice() []string {
	return []string{"inference-perf reads it as data.trace and load.trace of format AzurePublicDataset"}
}
