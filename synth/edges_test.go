package synth

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// gridded are 3,000 rows at 4/s, their times in ticks of 3 s and off by up to a
// millisecond, as a clock of milliseconds says.
func gridded(t testing.TB) *made {
	random := stats.Stream(5)
	at := 0.0
	var rows []trace.Request
	for i := range 3000 {
		at += random.ExpFloat64() / 4
		tick := time.Duration(at/3) * 3 * time.Second
		if tick > 0 {
			tick += time.Duration(int64(tick/(3*time.Second))%10/9) * time.Millisecond
		}
		rows = append(rows, trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(tick), InputTokens: trace.Some(int64(9)), OutputTokens: trace.Some(int64(9))})
	}
	return write(t, trace.Meta{Clock: trace.ClockTrace, TickNS: trace.Some(int64(time.Millisecond))}, rows)
}

// TestEffectiveTick is what is spread over, and what scaling keeps: its batches
// are no bursts.
func TestEffectiveTick(t *testing.T) {
	m := gridded(t)
	var done Spread
	spread := collect(t, func(emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		meta, done, err = Spreading{}.Run(context.Background(), m.open, emit)
		return meta, err
	})
	if done.TickNS != 3e9 || done.Most < 5 {
		t.Errorf("spread over %+v, want ticks of 3 s", done)
	}
	if idc, _ := dispersion(t, spread, time.Second); math.Abs(idc-1) > 0.2 {
		t.Errorf("IDC at 1 s is %v after spreading, want that of Poisson arrivals", idc)
	}
	out, design := scale(t, m, Scaling{Factor: 3})
	if design.TickNS != 3e9 || design.Shift != shiftSession || !strings.Contains(design.ShiftWhy, "ticks of 3s") {
		t.Errorf("shift %q (%s), tick %v", design.Shift, design.ShiftWhy, design.TickNS)
	}
	for _, r := range out.rows {
		if off := (r.Arrival.Value + time.Second) % (3 * time.Second); off < time.Second-5*time.Millisecond || off > time.Second+5*time.Millisecond {
			t.Fatalf("id %d arrives at %v, off the ticks of 3 s", r.ID, r.Arrival.Value)
		}
	}
	// Regular arrivals are on a grid, too, and no row shares its time.
	regular := write(t, trace.Meta{Clock: trace.ClockTrace}, rowsEvery(2*time.Second, 100))
	if _, design := scale(t, regular, Scaling{Factor: 2}); design.TickNS != 1 {
		t.Errorf("regular arrivals have a tick of %d ns", design.TickNS)
	}
}

func rowsEvery(gap time.Duration, n int) []trace.Request {
	var rows []trace.Request
	for i := range n {
		rows = append(rows, trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(i) * gap), InputTokens: trace.Some(int64(9)), OutputTokens: trace.Some(int64(9))})
	}
	return rows
}

// TestScalingRefusesWhatCannotBe names what is wrong instead of making no rows,
// wrong times or ids, or no end.
func TestScalingRefusesWhatCannotBe(t *testing.T) {
	every := func(gap time.Duration, n int) *made {
		return write(t, trace.Meta{Clock: trace.ClockTrace}, rowsEvery(gap, n))
	}
	large := rowsEvery(time.Second, 2)
	large[1].ID = math.MaxInt64 - 1
	for _, c := range []struct {
		of   *made
		s    Scaling
		says string
	}{
		{every(0, 0), Scaling{Factor: 2}, "the trace has no rows"},
		{every(0, 1), Scaling{Extend: time.Hour}, "all requests arrive at one time"},
		{every(0, 9), Scaling{Rate: 3}, "all requests arrive at one time"},
		{every(time.Second, 50), Scaling{Factor: 1e-9}, "no request is left of 50"},
		{every(time.Second, 50), Scaling{Rate: 1e-9}, "no request is left of 50"},
		{every(time.Second, 50), Scaling{Speed: 1e-300}, "longer than 146 years"},
		{every(50*365*24*time.Hour, 3), Scaling{Factor: 2}, "more than 73 years"},
		{every(time.Second, 50), Scaling{InputScale: 1e300}, "more than a million times"},
		{write(t, trace.Meta{Clock: trace.ClockTrace}, large), Scaling{Factor: 2}, "leave no room"},
	} {
		_, _, err := c.s.Run(context.Background(), c.of.open, func(*trace.Batch) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want %s", c.s, err, c.says)
		}
	}
	if _, err := Fit(t.Context(), every(50*365*24*time.Hour, 3).open, FitOptions{}); err == nil || !strings.Contains(err.Error(), "more than 73 years") {
		t.Errorf("fit of 100 years: %v", err)
	}
}

// TestGenerationIsBounded in time and in the blocks of a prompt.
func TestGenerationIsBounded(t *testing.T) {
	of := func(rate, tokens float64, prefix bool) *model.Workload {
		law := stats.SpecOf(stats.Constant{Value: tokens})
		s := model.Stream{Name: "all", Arrivals: &model.Arrivals{RateHz: rate, Profile: []model.Rate{{ToS: 10, RateHz: rate}}}, Lengths: model.Lengths{InputLaw: &law, OutputLaw: &law}}
		if prefix {
			s.Prefix = &model.Prefix{BlockTokens: 16, Tail: trace.TailPartial}
		}
		return &model.Workload{Streams: []model.Stream{s}}
	}
	for says, c := range map[string]struct {
		w *model.Workload
		g Generation
	}{
		"more than 292 years": {of(1e-10, 5, false), Generation{Requests: 3}},
		"more than 4194304":   {of(1, 1e9, true), Generation{Requests: 3}},
		"1 ns":                {of(1, 5, false), Generation{Requests: 3, Rate: 1e10}},
	} {
		if _, err := c.g.Run(context.Background(), c.w, func(*trace.Batch) error { return nil }); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %s", err, says)
		}
	}
}

// TestRootsOfUnchainedIDs: where ids are not chained, as those of text hashed
// block by block, the shares of beginnings still add up to 1 at most.
func TestRootsOfUnchainedIDs(t *testing.T) {
	rows := rowsEvery(time.Second, 200)
	for i := range rows {
		rows[i].InputTokens, rows[i].BlockTokens, rows[i].BlockTail = trace.Some(int64(48)), trace.Some(int32(16)), trace.Some(trace.TailPartial)
		rows[i].Session, rows[i].Turn = trace.Some(fmt.Sprint(i)), trace.Some(int32(0))
		rows[i].Blocks = []uint64{1, uint64(10 + i%9), 7}
	}
	w, err := Fit(t.Context(), write(t, trace.Meta{Clock: trace.ClockTrace}, rows).open, FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, r := range w.Streams[0].Prefix.Roots {
		sum += r.Share
	}
	if sum > 1 || sum < 0.9 {
		t.Errorf("roots %+v have the share %v", w.Streams[0].Prefix.Roots, sum)
	}
}

// TestSpreadingRefusesTheEndOfTime: a tick after the last arrival must fit.
func TestSpreadingRefusesTheEndOfTime(t *testing.T) {
	m := write(t, trace.Meta{Clock: trace.ClockTrace}, []trace.Request{
		{Operation: trace.OpChat, Arrival: trace.Some(time.Duration(0))}, {ID: 1, Operation: trace.OpChat, Arrival: trace.Some(time.Duration(math.MaxInt64 - 5))},
	})
	_, _, err := Spreading{Tick: time.Second}.Run(t.Context(), m.open, func(*trace.Batch) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "arrival_ns 9223372036854775802 and a tick of 1s do not fit") {
		t.Errorf("error %v", err)
	}
}
