package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"reprise/analysis"
	"reprise/analysis/stats"
	"reprise/synth"
	"reprise/synth/model"
	"reprise/trace"
)

// manyRows is what the whole commands are held against.
const manyRows = 10_000_000

func commandMeasures() []measure {
	return []measure{
		{name: "generate 10 million requests", unit: "row", pairs: 1, ours: arm{"reprise", generateMany},
			bounds: []bound{{"time", "s", 60, wall}, {"resident memory at its peak", "MB", 500, rss}}},
		{name: "scale to 10 million requests", unit: "row", pairs: 1, ours: arm{"reprise", scaleMany},
			setup:  func(dir string) error { return generateTo(filepath.Join(dir, "source.parquet"), manyRows*2/5) },
			bounds: []bound{{"time", "s", 60, wall}, {"resident memory at its peak", "MB", 500, rss}}},
		{name: "analyze 10 million requests", unit: "row", pairs: 1, ours: arm{"reprise", analyzeMany},
			setup:  func(dir string) error { return generateTo(filepath.Join(dir, "source.parquet"), manyRows) },
			bounds: []bound{{"time", "s", 60, wall}, {"resident memory at its peak", "MB", 1024, rss}}},
		{name: "fit 10 million requests", unit: "row", pairs: 1, ours: arm{"reprise", fitMany},
			setup:  func(dir string) error { return generateTo(filepath.Join(dir, "source.parquet"), manyRows) },
			bounds: []bound{{"time", "s", 60, wall}, {"resident memory at its peak", "MB", 1024, rss}}},
		{name: "fit 10 million requests of 24 block ids", unit: "row", pairs: 1, ours: arm{"reprise", fitMany},
			setup:  func(dir string) error { return writeBlocks(filepath.Join(dir, "source.parquet"), manyRows) },
			bounds: []bound{{"time", "s", 300, wall}, {"resident memory at its peak", "MB", 2048, rss}}},
	}
}

// writeBlocks writes requests of sessions of three turns, whose prompts of 24
// blocks grow from one another.
func writeBlocks(path string, rows int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := trace.NewWriter(f)
	b := trace.NewBatch()
	row := trace.Request{Operation: trace.OpChat, BlockTokens: trace.Some(int32(512)), BlockTail: trace.Some(trace.TailPartial)}
	for i := range rows {
		session, turn := i/3, i%3
		row.ID, row.Arrival = int64(i), trace.Some(time.Duration(i)*time.Millisecond)
		row.Session, row.Turn = trace.Some(strconv.Itoa(session)), trace.Some(int32(turn))
		row.InputTokens, row.OutputTokens = trace.Some(int64(24*512-100*(session%5))), trace.Some(int64(50+i%400))
		row.Blocks = row.Blocks[:0]
		for k := range 24 {
			id := uint64(k) // a preamble that all share
			if k > 3 {
				id = uint64(session)*64 + uint64(k)
			}
			if k > 18 {
				id += uint64(turn) * 8
			}
			row.Blocks = append(row.Blocks, id)
		}
		b.Append(&row)
		if b.Len() == trace.BatchRows {
			if err := w.Write(b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close(trace.Meta{Clock: trace.ClockTrace})
}

// fitMany fits as the command does.
func fitMany(w *work) error {
	source := filepath.Join(w.dir, "source.parquet")
	debug.SetGCPercent(25)
	w.begin()
	model, err := synth.Fit(context.Background(), func() (*trace.Reader, error) { return trace.Open(source) }, synth.FitOptions{})
	w.end(manyRows)
	if err == nil && model.Requests != manyRows {
		err = fmt.Errorf("%d rows", model.Requests)
	}
	return err
}

// laws are 1,000 requests a second of lognormal lengths.
func laws() *model.Workload {
	spec := func(l stats.Law) *stats.LawSpec { s := stats.SpecOf(l); return &s }
	return &model.Workload{Streams: []model.Stream{{
		Name: "all", Arrivals: &model.Arrivals{Of: "request", RateHz: 1000, Profile: []model.Rate{{ToS: 3600, RateHz: 1000}}, Gaps: spec(stats.Gamma{Shape: 0.25, Scale: 4})},
		Lengths: model.Lengths{InputLaw: spec(stats.Lognormal{Mu: 7, Sigma: 1}), OutputLaw: spec(stats.Lognormal{Mu: 5, Sigma: 0.8})},
	}}}
}

func generateTo(path string, rows int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := trace.NewWriter(f)
	meta, err := synth.Generation{Requests: rows}.Run(context.Background(), laws(), w.Write)
	if err != nil {
		return err
	}
	return w.Close(meta)
}

func generateMany(w *work) error {
	w.begin()
	err := generateTo(filepath.Join(w.dir, "made.parquet"), manyRows)
	w.end(manyRows)
	return err
}

func scaleMany(w *work) error {
	source := filepath.Join(w.dir, "source.parquet")
	f, err := os.Create(filepath.Join(w.dir, "scaled.parquet"))
	if err != nil {
		return err
	}
	defer f.Close()
	w.begin()
	out := trace.NewWriter(f)
	meta, design, err := (&synth.Scaling{Factor: 2.5}).Run(context.Background(), func() (*trace.Reader, error) { return trace.Open(source) }, out.Write)
	if err != nil {
		return err
	}
	if err := out.Close(meta); err != nil {
		return err
	}
	w.end(float64(design.Rows))
	if design.Rows < manyRows*99/100 {
		return fmt.Errorf("%d rows", design.Rows)
	}
	return nil
}

func analyzeMany(w *work) error {
	debug.SetGCPercent(20)
	r, err := trace.Open(filepath.Join(w.dir, "source.parquet"))
	if err != nil {
		return err
	}
	defer r.Close()
	w.begin()
	t, err := analysis.AnalyzeTraffic(context.Background(), r, analysis.TrafficOptions{})
	w.end(manyRows)
	if err == nil && t.Rows != manyRows {
		err = fmt.Errorf("%d rows", t.Rows)
	}
	return err
}
