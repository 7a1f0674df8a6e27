package analysis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// lateRun has 200 requests with the median TTFT and p99 lateness given.
func lateRun(ttft, late float64) []results.Result {
	var list []results.Result
	for i := range int64(200) {
		r := sent(i, float64(i), float64(i), float64(i), float64(i)+ttft+1, results.OutcomeOK)
		if i < 3 {
			r.Dispatched = ms(float64(i) + late)
		}
		r.Ledger = []results.Entry{chunk(0, ttft, 1, results.KindContent, false)}
		list = append(list, r)
	}
	return list
}

func TestVerdict(t *testing.T) {
	edit := func(f func(*results.Run)) *results.Run {
		run := baseRun()
		run.Planned.Requests, run.Ended.Sent, run.Ended.Unsent = 200, 200, 0
		f(run)
		return run
	}
	same := func(*results.Run) {}
	failed := func() []results.Result {
		list := lateRun(50, 0)
		for i := range list {
			list[i].Outcome = results.OutcomeFailed
		}
		return list
	}
	for _, tt := range []struct {
		name   string
		run    *results.Run
		rows   []results.Result
		limits Limits
		want   string
		reason string // part of the reasons or remarks
	}{
		{"on time", edit(same), lateRun(50, 0.9), Limits{}, Valid, ""},
		{"at the limit", edit(same), lateRun(50, 1), Limits{}, Valid, ""},
		{"above 1 ms", edit(same), lateRun(50, 1.1), Limits{}, Degraded, "p99 lateness 1.100 ms is above the limit of 1.000 ms (1 ms)"},
		{"1 % of the median TTFT is more", edit(same), lateRun(500, 4.9), Limits{}, Valid, ""},
		{"above 1 % of the median TTFT", edit(same), lateRun(500, 5.1), Limits{}, Degraded, "limit of 5.000 ms (1 % of the median TTFT)"},
		{"ten times", edit(same), lateRun(50, 10), Limits{}, Degraded, "above the limit"},
		{"above ten times", edit(same), lateRun(50, 10.1), Limits{}, Invalid, "10 times the limit"},
		{"another limit", edit(same), lateRun(50, 10.1), Limits{Lateness: 20 * time.Millisecond}, Valid, ""},
		{"another share", edit(same), lateRun(50, 10.1), Limits{Share: 0.1}, Degraded, "10 % of the median TTFT"},
		{"lost records", edit(func(r *results.Run) { r.Ended.RecordsLost, r.Ended.RecordError = 3, "disk full" }), lateRun(50, 0), Limits{}, Invalid, "3 records of sent requests were lost: disk full"},
		{"fewer records than were sent", edit(func(r *results.Run) { r.Ended.Sent = 205 }), lateRun(50, 0), Limits{}, Invalid, "5 records"},
		{"unsent", edit(func(r *results.Run) { r.Planned.Requests, r.Ended.Unsent = 210, 10 }), lateRun(50, 0), Limits{}, Invalid, "10 of 210 planned requests were not sent"},
		{"interrupted", edit(func(r *results.Run) {
			r.Planned.Requests, r.Ended.Unsent, r.Ended.Interrupted = 210, 10, true
		}), lateRun(50, 0), Limits{}, Valid, "interrupted: 10 of 210"},
		{"killed", edit(func(r *results.Run) { r.Ended = nil }), lateRun(50, 0), Limits{}, Degraded, "200 of 200 planned requests are recorded"},
		{"all failed", edit(same), failed(), Limits{}, Invalid, "no request was successful"},
		{"mostly failed", edit(same), mostlyFailed(190), Limits{}, Valid, "this verdict is on the client alone: 95 % of the 200 requests that ended failed, and latencies are those of the 10 that succeeded"},
		{"unconcluded", edit(func(r *results.Run) {
			r.Planned.Requests, r.Ended.Unsent, r.Ended.Unconcluded = 210, 10, true
			r.Workers = []results.Worker{{Name: "w1", State: results.WorkerEnded, Planned: 110, Recorded: 110}, {Name: "w2", State: results.WorkerStopped, Planned: 100, Recorded: 90}}
		}), lateRun(50, 0), Limits{}, Degraded, "complete: w1 (110 of 110 planned requests recorded); stopped sending before the end: w2 (90 of 100 planned requests recorded); 10 of 210 planned requests were not sent"},
		{"late and lossy", edit(func(r *results.Run) { r.Ended.RecordsLost = 1 }), lateRun(50, 2), Limits{}, Invalid, "above the limit"},
		{"out of descriptors", edit(func(r *results.Run) { r.Ended.Client.OutOfDescriptors = 12 }), lateRun(50, 0), Limits{}, Invalid, "the client ran out of file descriptors: 12 requests"},
		{"out of ports", edit(func(r *results.Run) { r.Ended.Client.OutOfPorts = 1200 }), lateRun(50, 0), Limits{}, Invalid, "the client ran out of local ports: 1,200 requests"},
		{"nothing", edit(func(r *results.Run) { r.Ended.Sent = 0 }), nil, Limits{}, Invalid, "no request was recorded"},
	} {
		s := summarize(t, tt.run, tt.rows)
		s.Judge(tt.limits)
		v := s.Verdict
		code := 0
		if tt.want == Invalid {
			code = CodeInvalid
		}
		said := strings.Join(slices.Concat(v.Reasons, v.Remarks), "; ")
		if v.Result != tt.want || v.Code != code || !strings.Contains(said, tt.reason) {
			t.Errorf("%s: %s, code %d: %s; want %s: %s", tt.name, v.Result, v.Code, said, tt.want, tt.reason)
		}
		if (v.Result == Valid) != (len(v.Reasons) == 0) {
			t.Errorf("%s: %s with reasons %v", tt.name, v.Result, v.Reasons)
		}
	}
}

// TestWarnings says what a summary must doubt.
func TestWarnings(t *testing.T) {
	mostFailed := lateRun(50, 0)
	for i := range mostFailed[1:] {
		mostFailed[i+1].Outcome, mostFailed[i+1].Cause = results.OutcomeFailed, trace.Some("HTTP 400")
	}
	early := sent(0, 0, 0, 0, 100, results.OutcomeOK)
	early.PlannedOutputTokens, early.OutputTokens = tokens(512), tokens(43)
	buffered := sent(0, 0, 0, 0, 2001, results.OutcomeOK)
	for e := range int32(64) {
		buffered.Ledger = append(buffered.Ledger, chunk(e, 2000, 1, results.KindContent, e > 0))
	}
	for _, tt := range []struct {
		name string
		rows []results.Result
		want string
	}{
		{"most failed", mostFailed, "rests on 1 of 200 requests"},
		{"tok-early-stop", []results.Result{early}, "1 of 1 responses (100 %) were shorter than planned; 43 of 512 tokens came"},
		{"sse-proxy-buffer", []results.Result{buffered}, "98.4 % of the chunks were read together"},
		{"met-small-n", lateRun(50, 0)[:40], "p99 and above are the largest sample where there are fewer than 100, and rest on that one: lateness (40), ttft (40)"},
		{"p99.9", lateRun(50, 0), "p99.9 is the largest sample where there are fewer than 1000, and rest"},
		{"tokens unknown", rows(), "the tokens per chunk of 1 of 4 successful responses are not known"},
		{"ledger", rows(), "1 of 2 responses do not add up to the final usage, by up to -1 tokens"},
		{"input", rows(), "other input tokens than planned for 1 of 3 requests, by up to -10"},
	} {
		var all []string
		for _, w := range summarize(t, baseRun(), tt.rows).Warnings {
			all = append(all, w.Error())
		}
		if text := strings.Join(all, "\n"); !strings.Contains(text, tt.want) {
			t.Errorf("%s: want %q in\n%s", tt.name, tt.want, text)
		}
	}
}

// TestReceiveDelayIsJudged holds the receive delay against the median ITL, 10 ms
// in the run of rows.
func TestReceiveDelayIsJudged(t *testing.T) {
	for _, c := range []struct {
		p99    time.Duration
		share  float64
		want   string
		reason string
	}{
		{500 * time.Microsecond, 0, Valid, ""},
		{501 * time.Microsecond, 0, Degraded, "p99 receive delay 0.501 ms is above the limit of 0.500 ms (5 % of the median ITL)"},
		{5001 * time.Microsecond, 0, Invalid, "p99 receive delay 5.001 ms is above 10 times the limit of 0.500 ms (5 % of the median ITL): the client read late, and measured itself"},
		{5001 * time.Microsecond, 0.6, Valid, ""},
	} {
		run, list := baseRun(), rows()
		run.Planned.Requests, run.Ended.Unsent = 6, 0
		run.Ended.Client.ReceiveDelay = &results.Delay{N: 100, P99NS: int64(c.p99)}
		list = append(list[:6:6], list[7])
		s := summarize(t, run, list)
		s.Judge(Limits{ReceiveShare: c.share})
		reasons := strings.Join(s.Verdict.Reasons, "; ")
		if s.Verdict.Result != c.want || reasons != c.reason || len(s.Verdict.NotMeasured) != 0 {
			t.Errorf("%v: %s (%s), not measured %v; want %s (%s)", c.p99, s.Verdict.Result, reasons, s.Verdict.NotMeasured, c.want, c.reason)
		}
	}
}

// mostlyFailed has 200 requests that were on time, of which so many were refused.
func mostlyFailed(n int) []results.Result {
	list := lateRun(50, 0)
	for i := range n {
		list[i].Outcome, list[i].Sent = results.OutcomeRefused, trace.Optional[time.Duration]{}
	}
	return list
}

// TestNeverSent: the line of what was sent says how many were not, and why.
func TestNeverSent(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*results.Ended)
		rows []results.Result
		want string
	}{
		{"all sent", func(*results.Ended) {}, lateRun(50, 0), "sent         200 requests, 200 recorded\n"},
		{"refused", func(*results.Ended) {}, mostlyFailed(195), "sent         5 requests, 200 recorded, 195 never sent (refused 195)\n"},
		{"interrupted", func(e *results.Ended) { e.Unsent, e.Interrupted = 400, true }, lateRun(50, 0), "200 recorded, 400 never sent (interrupted before 400)\n"},
		{"aborted", func(e *results.Ended) { e.Unsent, e.Aborted = 400, "aborted: too many failed" }, mostlyFailed(150), "550 never sent (refused 150, aborted before 400)\n"},
		{"coordinator killed", func(e *results.Ended) { e.Unsent, e.Unconcluded, e.Lost = 300, true, 100 }, lateRun(50, 0), "300 never sent (the coordinator was gone before 300), 100 lost with their workers\n"},
	} {
		run := baseRun()
		run.Planned.Requests, run.Ended.Sent, run.Ended.Unsent, run.Ended.Capped = 600, 200, 0, 0
		tt.end(run.Ended)
		var out strings.Builder
		if err := WriteText(&out, summarize(t, run, tt.rows)); err != nil || !strings.Contains(strings.ReplaceAll(out.String(), "\n             ", " "), tt.want) {
			t.Errorf("%s: no %q in %s", tt.name, tt.want, out.String()[:1200])
		}
	}
}
