package analysis

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"reprise/trace/results"
)

// A RunData is one run to be compared.
type RunData struct {
	Name    string
	Run     results.Run
	Summary *Summary

	opened *results.Opened
	extent time.Duration // first to last request, on the axis of blocks
	origin time.Duration // where that axis begins
	rows   []runRow
	itl    itlCells
}

// LoadRun reads what the verdict and the basis of a comparison need; limits are
// those of the verdict.
func LoadRun(ctx context.Context, run *results.Opened, name string, limits Limits) (*RunData, error) {
	c := newCollection(nil)
	if err := eachResult(ctx, run, c.add); err != nil {
		return nil, err
	}
	d := &RunData{Name: name, Run: run.Run, opened: run, Summary: c.summary(run)}
	d.Summary.Judge(limits)
	axis := c.spans[0].due
	if axis.n < c.spans[0].sent.n { // pacing without due times
		axis = c.spans[0].sent
	}
	d.origin, d.extent = axis.first, axis.length()
	return d, nil
}

// Metrics of requests that runs are compared by, in the order of every table; itl
// stands after ttfo.
const (
	rowTTFT = iota
	rowTTFO
	rowTPOT
	rowE2E
	rowResponse
	rowLateness
	rowMetrics
)

var rowMetricNames = [rowMetrics]string{"ttft", "ttfo", "tpot", "e2e", "response_time", "lateness"}

// absentValue stands for a number that a request does not have.
const absentValue = math.MinInt64

// A runRow is what a comparison keeps of a request.
type runRow struct {
	id      int64
	pass    int32
	block   uint16 // of time
	group   uint16 // of sessions
	ok, bad bool   // successful; failed
	end     time.Duration
	in, out int64 // tokens, 0 if not counted
	values  [rowMetrics]int64
}

// An axis says what blocks the requests of a side fall into.
type axis struct {
	blocks int           // of time, of equal length
	extent time.Duration // of all of them
	groups int           // of sessions; 0 where a request has none
}

// sessionGroups is how many groups the sessions of a run are put into, by their
// names.
const sessionGroups = 64

// collect reads the requests of the run again, now that the blocks are known.
func (d *RunData) collect(ctx context.Context, a *axis) error {
	d.rows, d.itl = nil, itlCells{}
	return eachResult(ctx, d.opened, func(r *results.Result) {
		if r.Measured() && r.Outcome != results.OutcomeUnsent {
			d.collectRow(r, a)
		}
	})
}

func (d *RunData) collectRow(r *results.Result, a *axis) {
	row := runRow{id: r.ID, pass: r.Pass, ok: successful(r), bad: erroneous(r), end: r.End.Or(-1)}
	at := r.Due.Or(r.Sent.Or(r.Dispatched.Or(d.origin))) - d.origin
	row.block = uint16(min(max(int64(at), 0)*int64(a.blocks)/(int64(a.extent)+1), int64(a.blocks-1)))
	if session, ok := r.Session.Get(); ok && a.groups > 0 {
		row.group = uint16(hashText(session) % uint64(a.groups))
	}
	for i := range row.values {
		row.values[i] = absentValue
	}
	if late, ok := results.Lateness(r); ok {
		row.values[rowLateness] = int64(late)
	}
	if row.ok {
		row.in, row.out = r.CountedInputTokens.Or(0), r.OutputTokens.Or(0)
		for i, of := range [rowLateness]func(*results.Result) (time.Duration, bool){results.TTFT, results.TTFO, results.TPOT, results.E2E, results.ResponseTime} {
			if v, ok := of(r); ok {
				row.values[i] = int64(v)
			}
		}
		for v, tokens := range results.ITL(r) {
			d.itl.add(int64(v), int64(tokens), row.block, row.group)
		}
	}
	d.rows = append(d.rows, row)
}

// hashText is the FNV-1a hash, so that equal sessions fall into equal groups on
// every machine.
func hashText(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h ^ h>>32
}

// itlCells count tokens by their latency, to 4 significant digits, and by block.
type itlCells struct{ time, group map[itlCell]int64 }

type itlCell struct {
	v     int64 // ns
	block uint16
}

func (c *itlCells) add(v, n int64, block, group uint16) {
	if c.time == nil {
		c.time, c.group = map[itlCell]int64{}, map[itlCell]int64{}
	}
	v = fourDigits(v)
	c.time[itlCell{v, block}] += n
	c.group[itlCell{v, group}] += n
}

// fourDigits rounds to 4 significant digits.
func fourDigits(v int64) int64 {
	unit := int64(1)
	for v/unit >= 10_000 {
		unit *= 10
	}
	return (v + unit/2) / unit * unit
}

// axisOf chooses the blocks of runs: minutes, but at least leastBlocks of equal
// length, and at most mostBlocks.
func axisOf(runs []*RunData) axis {
	a := axis{groups: sessionGroups}
	for _, d := range runs {
		a.extent = max(a.extent, d.extent)
		if s := d.Summary.Sessions; s == nil || s.Sessions < leastSessions {
			a.groups = 0
		}
	}
	a.blocks = int(min(max(int64(a.extent/time.Minute), leastBlocks), mostBlocks))
	return a
}

const (
	leastBlocks   = 40
	mostBlocks    = 240
	leastSessions = 20
)

// cells are the numbers of a metric in increasing order, each with its block.
type cells struct {
	v     []int64
	n     []int64
	block []uint16

	count, sum []float64 // by block

	// Of many numbers, the counts by block of each stride of them: to find a
	// quantile takes strides and one stride's numbers, and not all.
	stride  int // 0 = none
	strides [][]float64
}

// mostStrides is how many strides there are at most.
const mostStrides = 256

func (c *cells) close(blocks int) {
	c.count, c.sum = make([]float64, blocks), make([]float64, blocks)
	for i, v := range c.v {
		c.count[c.block[i]] += float64(c.n[i])
		c.sum[c.block[i]] += float64(c.n[i]) * float64(v)
	}
	if len(c.v) < 4*mostStrides*blocks {
		return
	}
	c.stride = (len(c.v) + mostStrides - 1) / mostStrides
	for i := range c.v {
		if i%c.stride == 0 {
			c.strides = append(c.strides, make([]float64, blocks))
		}
		c.strides[i/c.stride][c.block[i]] += float64(c.n[i])
	}
}

// rowCells are those of a metric of requests, by time or by sessions.
func rowCells(runs []*RunData, metric int, byGroup bool, blocks int) *cells {
	type cell struct {
		v     int64
		block uint16
	}
	var list []cell
	for _, d := range runs {
		for i := range d.rows {
			r := &d.rows[i]
			if v := r.values[metric]; v != absentValue {
				block := r.block
				if byGroup {
					block = r.group
				}
				list = append(list, cell{v, block})
			}
		}
	}
	slices.SortFunc(list, func(a, b cell) int { return cmp.Compare(a.v, b.v) })
	c := &cells{}
	for _, x := range list {
		c.v, c.n, c.block = append(c.v, x.v), append(c.n, 1), append(c.block, x.block)
	}
	c.close(blocks)
	return c
}

// itlCellsOf are those of the ITL.
func itlCellsOf(runs []*RunData, byGroup bool, blocks int) *cells {
	all := map[itlCell]int64{}
	for _, d := range runs {
		from := d.itl.time
		if byGroup {
			from = d.itl.group
		}
		for k, n := range from {
			all[k] += n
		}
	}
	keys := make([]itlCell, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b itlCell) int { return cmp.Or(cmp.Compare(a.v, b.v), cmp.Compare(a.block, b.block)) })
	c := &cells{}
	for _, k := range keys {
		c.v, c.n, c.block = append(c.v, k.v), append(c.n, all[k]), append(c.block, k.block)
	}
	c.close(blocks)
	return c
}
