package replay

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/trace"
)

// benchTrace is a trace of n requests of 32 blocks each, in sessions of ten; or the one
// that the environment names.
func benchTrace(b *testing.B, n int64) (path string, rows int64) {
	b.Helper()
	if path = os.Getenv("REPRISE_BENCH_TRACE"); path == "" {
		path = filepath.Join(b.TempDir(), "t.parquet")
		f, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		w, batch := trace.NewWriter(f), trace.NewBatch()
		for i := range n {
			r := at(i, 512, 100)
			r.ID, r.Operation, r.Session, r.Turn, r.BlockTokens = i, trace.OpChat, trace.Some(fmt.Sprintf("session-%08d", i/10)), trace.Some(int32(i%10)), trace.Some(int32(16))
			for block := range uint64(32) {
				r.Blocks = append(r.Blocks, mix(uint64(i/10)<<32|block))
			}
			if batch.Append(&r); batch.Len() == trace.BatchRows {
				if err := w.Write(batch); err != nil {
					b.Fatal(err)
				}
				batch.Reset()
			}
		}
		if err := w.Write(batch); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(trace.Meta{Clock: trace.ClockTrace}); err != nil {
			b.Fatal(err)
		}
	}
	r, err := trace.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	return path, r.NumRows()
}

// BenchmarkPassOver is what a worker that has the whole trace pays for a row of others.
func BenchmarkPassOver(b *testing.B) {
	path, rows := benchTrace(b, 100_000)
	c := Config{Trace: path, Shard: Shard{Owns: func(slot uint16) bool { return slot < Slots/1000 }}}
	b.ResetTimer()
	for range b.N {
		if err := c.each(b.Context(), func(*trace.Batch, int, start) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(time.Nanosecond)/float64(b.N)/float64(rows), "ns/row")
}

// BenchmarkDeal makes the shares of workers, and says what they hold.
func BenchmarkDeal(b *testing.B) {
	for _, workers := range []uint16{4, 100} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) { benchDeal(b, workers) })
	}
}

func benchDeal(b *testing.B, workers uint16) {
	path, rows := benchTrace(b, 100_000)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	c := Config{Trace: path}
	survey, err := Look(context.Background(), &c)
	if err != nil {
		b.Fatal(err)
	}
	var shards []Shard
	for worker := range uint16(workers) {
		shards = append(shards, Shard{Owns: func(slot uint16) bool { return slot%workers == worker }})
	}
	var times, bytes int64
	b.ResetTimer()
	for range b.N {
		times, bytes = 0, 0
		err := Deal(context.Background(), &c, survey, shards, func(_ int, t []byte) (io.WriteCloser, error) {
			times += int64(len(t))
			return &counted{&bytes}, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(time.Nanosecond)/float64(b.N)/float64(rows), "ns/row")
	b.ReportMetric(float64(bytes)/float64(rows), "B/row")
	b.ReportMetric(float64(times)/float64(rows), "B/time")
	b.ReportMetric(float64(info.Size())/float64(rows), "B/row-of-trace")
}

type counted struct{ n *int64 }

func (c *counted) Write(p []byte) (int, error) { *c.n += int64(len(p)); return len(p), nil }
func (c *counted) Close() error                { return nil }
