package results

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"reprise/trace"
)

// row makes a result of entries written as "ms tokens kind choice"; tokens ?
// is unknown. Entries at the same time share an event.
func row(osl int64, entries ...string) *Result {
	r := &Result{}
	if osl >= 0 {
		r.OutputTokens = trace.Some(osl)
	}
	event, lastAt := int32(-1), int64(-1)
	for _, s := range entries {
		var e Entry
		var tokens, kind string
		if _, err := fmt.Sscan(s, &e.At, &tokens, &kind, &e.Choice); err != nil {
			panic(err)
		}
		e.Kind = Kind(slices.Index(kindNames[:], kind))
		if e.At != lastAt {
			event++
		}
		lastAt = e.At
		e.At *= 1000
		e.Event = event
		e.Source = SourceUnknown
		if tokens != "?" {
			var n int32
			fmt.Sscan(tokens, &n)
			e.Tokens, e.Source = trace.Some(n), SourceUsage
		}
		r.Ledger = append(r.Ledger, e)
	}
	return r
}

func show(d time.Duration, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(d)/1e6)
}

func all(r *Result) string {
	s := "ttft " + show(TTFT(r)) + " ttfo " + show(TTFO(r)) + " ttst " + show(TTST(r)) + " last " + show(LastToken(r)) +
		" tpot " + show(TPOT(r)) + " osl1 " + show(TPOTOverOSL1(r)) + " stall " + show(LongestStall(r)) + " t90 " + show(TimeTo90(r)) + " itl"
	for d, n := range ITL(r) {
		s += fmt.Sprintf(" %.2fx%d", float64(d)/1e6, n)
	}
	s += " gaps"
	for d, choice := range ChunkGaps(r) {
		s += fmt.Sprintf(" %d:%d", choice, d.Milliseconds())
	}
	return s
}

func TestChunkMetrics(t *testing.T) {
	for _, c := range []struct {
		name string
		row  *Result
		want string
	}{
		{"nothing", row(5), "ttft - ttfo - ttst - last - tpot - osl1 - stall - t90 - itl gaps"},
		{"several tokens per chunk (S07)", row(8, "100 1 content 0", "120 3 content 0", "140 3 content 0", "150 1 content 0", "151 0 none 0"),
			"ttft 100.00 ttfo 100.00 ttst 20.00 last 150.00 tpot 7.14 osl1 7.14 stall 20.00 t90 150.00 itl 6.67x3 6.67x3 10.00x1 gaps 0:20 0:20 0:10"},
		{"bundled first chunk (S08)", row(16, "50 0 none 0", "200 8 content 0", "280 8 content 0"),
			"ttft 200.00 ttfo 200.00 ttst 80.00 last 280.00 tpot 10.00 osl1 5.33 stall 80.00 t90 280.00 itl 10.00x8 gaps 0:80"},
		{"tokens unknown (S09)", row(5, "100 ? content 0", "130 ? content 0"),
			"ttft 100.00 ttfo 100.00 ttst 30.00 last 130.00 tpot - osl1 7.50 stall 30.00 t90 - itl gaps 0:30"},
		{"one chunk (S05)", row(4, "300 4 content 0"),
			"ttft 300.00 ttfo 300.00 ttst - last 300.00 tpot - osl1 - stall - t90 300.00 itl gaps"},
		{"one token", row(1, "90 1 content 0"),
			"ttft 90.00 ttfo 90.00 ttst - last 90.00 tpot - osl1 - stall - t90 90.00 itl gaps"},
		{"reasoning first, one event with both", row(6, "500 2 reasoning 0", "600 ? reasoning 0", "600 3 content 0", "700 1 content 0"),
			"ttft 500.00 ttfo 600.00 ttst 100.00 last 700.00 tpot 50.00 osl1 40.00 stall 100.00 t90 700.00 itl 33.33x3 100.00x1 gaps 0:100 0:100"},
		{"two choices (S50)", row(4, "100 1 content 0", "105 1 content 1", "110 1 content 0", "110 1 content 1", "120 0 none 1"),
			"ttft 100.00 ttfo 100.00 ttst 10.00 last 110.00 tpot 7.50 osl1 7.50 stall 10.00 t90 110.00 itl 10.00x1 5.00x1 gaps 0:10 1:5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := all(c.row); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// A running count that fell stops ITL and TPOT, and keeps the rest (R7).
func TestCountFell(t *testing.T) {
	r := row(2, "100 1 content 0", "110 1 content 0", "120 1 content 0", "121 ? none 0")
	r.Ledger[3].Source = SourceUsage
	want := "ttft 100.00 ttfo 100.00 ttst 10.00 last 120.00 tpot - osl1 20.00 stall 10.00 t90 - itl gaps 0:10 0:10"
	if got := all(r); got != want || !CountFell(r) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestRequestTimes(t *testing.T) {
	at := func(ms int) trace.Optional[time.Duration] { return trace.Some(time.Duration(ms) * time.Millisecond) }
	r := &Result{Due: at(10), Eligible: at(40), Dispatched: at(41), Sent: at(50), End: at(150)}
	got := show(Lateness(r)) + " " + show(E2E(r)) + " " + show(ResponseTime(r))
	if got != "1.00 100.00 140.00" {
		t.Errorf("lateness, E2E, response time: %s", got)
	}
	if _, ok := ResponseTime(&Result{End: at(1)}); ok {
		t.Error("a response time without a due time")
	}
}

func TestSourcesAndSharedReads(t *testing.T) {
	r := row(3, "1 1 content 0", "2 1 content 0", "3 0 none 0")
	r.Ledger[1].Source, r.Ledger[1].SharedRead = SourceLocal, true
	if s, ok := LedgerSource(r.Ledger); s != SourceLocal || !ok {
		t.Errorf("least trusted source %s", s)
	}
	if shared, n := SharedReads(r.Ledger); shared != 1 || n != 2 {
		t.Errorf("%d of %d shared", shared, n)
	}
}
