package analysis

import (
	"fmt"
	"math"
	"strings"
	"time"

	"reprise/trace/results"
)

// Results of a Verdict.
const (
	Valid    = "valid"
	Degraded = "degraded"
	Invalid  = "invalid"
)

// CodeInvalid is the exit code of a command whose run is not a valid
// measurement.
const CodeInvalid = 3

// Defaults of Limits.
const (
	DefaultLateLimit = time.Millisecond
	DefaultLateShare = 0.01

	DefaultReceiveShare = 0.05
)

// invalidTimes is how many times over its limit the lateness makes a run
// invalid.
const invalidTimes = 10

// Limits say how late the client may be: its p99 lateness may be up to the
// larger of Lateness and Share of the median TTFT. A zero value is the default.
type Limits struct {
	Lateness time.Duration
	Share    float64

	// ReceiveShare is the share of the median ITL that the p99 of the receive delay
	// may reach.
	ReceiveShare float64
}

// A Verdict is on the client: whether the run measured the server, and not
// itself.
type Verdict struct {
	worst string // of Reasons, the first that made it invalid

	Result      string   `json:"result"`       // valid, degraded or invalid
	Code        int      `json:"code"`         // exit code: 0, or CodeInvalid
	Reasons     []string `json:"reasons"`      // why it is not valid
	Remarks     []string `json:"remarks"`      // what else to know before reading on
	NotMeasured []string `json:"not_measured"` // what no verdict is given on

	LatenessP99 *float64 `json:"lateness_p99_ms"`   // null if nothing was dispatched
	Limit       float64  `json:"lateness_limit_ms"` // degraded above, invalid above ten times as much
	LateLimit   float64  `json:"late_limit_ms"`     // the parameters
	LateShare   float64  `json:"late_share"`

	ReceiveP99   *float64 `json:"receive_delay_p99_ms"`   // null where it was not measured
	ReceiveLimit *float64 `json:"receive_delay_limit_ms"` // null without ITL
	ReceiveShare float64  `json:"receive_share"`          // the parameter
}

// Judge gives the verdict by other limits.
func (s *Summary) Judge(l Limits) {
	if l.Lateness == 0 {
		l.Lateness = DefaultLateLimit
	}
	if l.Share == 0 {
		l.Share = DefaultLateShare
	}
	if l.ReceiveShare == 0 {
		l.ReceiveShare = DefaultReceiveShare
	}
	v := Verdict{
		Result: Valid, Reasons: []string{}, Remarks: s.remarks(), NotMeasured: []string{},
		LateLimit: *milliseconds(l.Lateness), LateShare: l.Share, ReceiveShare: l.ReceiveShare,
	}
	v.unconcluded(s)
	v.resources(s)
	v.late(s)
	v.receive(s)
	v.records(s)
	v.parts(s)
	v.workers(s)
	v.failures(s)
	if v.Result == Invalid {
		v.Code = CodeInvalid
	}
	s.Verdict = v
}

// worsen sets the result, never to a better one.
func (v *Verdict) worsen(result, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if result == Invalid && v.Result != Invalid {
		v.worst = reason
	}
	if v.Result != Invalid {
		v.Result = result
	}
	v.Reasons = append(v.Reasons, reason)
}

// Headline is why a run is invalid in some words, for a line beside the report, which has
// all of it.
func (v *Verdict) Headline() string {
	text, _, _ := strings.Cut(v.worst, ": ")
	if text, _, _ = strings.Cut(text, "; "); len(v.Reasons) > 1 {
		all := "both"
		if len(v.Reasons) > 2 {
			all = fmt.Sprintf("all %d", len(v.Reasons))
		}
		text += " (the report has " + all + " reasons)"
	}
	return text
}

func (v *Verdict) late(s *Summary) {
	v.Limit = v.LateLimit
	whence := fmt.Sprintf("%s ms", plainNumber(v.LateLimit))
	if ttft, ok := s.Metrics.Get("ttft").Stat("p50").Get(); ok && ttft*v.LateShare > v.Limit {
		v.Limit = math.Round(ttft*v.LateShare*1e6) / 1e6
		whence = fmt.Sprintf("%s of the median TTFT", percent(v.LateShare))
	}
	p99, ok := s.Metrics.Get("lateness").Stat("p99").Get()
	if !ok {
		return
	}
	v.LatenessP99 = &p99
	when := s.Late.concentrated(v.Limit)
	if when != "" {
		when = "; it was late " + when
	}
	switch {
	case p99 > invalidTimes*v.Limit:
		v.worsen(Invalid, "p99 lateness %s ms is above %d times the limit of %s ms (%s): the client was late, and measured itself%s", decimals(p99), invalidTimes, decimals(v.Limit), whence, when)
	case p99 > v.Limit:
		v.worsen(Degraded, "p99 lateness %s ms is above the limit of %s ms (%s)%s", decimals(p99), decimals(v.Limit), whence, when)
	default:
		if when := s.Late.concentrated(invalidTimes * v.Limit); when != "" {
			v.Remarks = append(v.Remarks, "the client was late "+when+"; the p99 of the run is within the limit")
		}
	}
}

// receive holds how late the client read against what it measures: the time
// between tokens.
func (v *Verdict) receive(s *Summary) {
	if s.Client == nil || s.Client.ReceiveDelay == nil {
		v.NotMeasured = append(v.NotMeasured, "receive delay: no stamps of the kernel (they need Linux, HTTP/1.1 on plain TCP, and a run that ended)")
		return
	}
	v.ReceiveP99 = milliseconds(time.Duration(s.Client.ReceiveDelay.P99NS))
	itl, ok := s.Metrics.Get("itl").Stat("p50").Get()
	if !ok || itl <= 0 {
		v.NotMeasured = append(v.NotMeasured, "receive delay: no ITL to hold it against")
		return
	}
	limit := math.Round(itl*v.ReceiveShare*1e6) / 1e6
	v.ReceiveLimit = &limit
	whence := fmt.Sprintf("%s of the median ITL", percent(v.ReceiveShare))
	switch p99 := *v.ReceiveP99; {
	case p99 > invalidTimes*limit:
		v.worsen(Invalid, "p99 receive delay %s ms is above %d times the limit of %s ms (%s): the client read late, and measured itself", decimals(p99), invalidTimes, decimals(limit), whence)
	case p99 > limit:
		v.worsen(Degraded, "p99 receive delay %s ms is above the limit of %s ms (%s)", decimals(p99), decimals(limit), whence)
	}
}

// failedShare is the share of failed requests from which a report says beside the
// verdict that it is not on the server.
const failedShare = 0.1

// failures says so where a good client met a server that mostly refused: latencies are
// those of the few that it answered.
func (v *Verdict) failures(s *Summary) {
	rate := s.ErrorRate
	if v.Result == Invalid || rate == nil || *rate < failedShare {
		return
	}
	text := fmt.Sprintf("this verdict is on the client alone: %s of the %s that ended failed, and latencies are those of the %s that succeeded", percent(*rate), Counted(s.Requests.Ended(), "request"), Grouped(s.Requests.Successful))
	v.Remarks = append([]string{text}, v.Remarks...)
}

// resources: requests that failed for the client's own limits measure no server.
func (v *Verdict) resources(s *Summary) {
	if s.Client == nil {
		return
	}
	if n := s.Client.OutOfDescriptors; n > 0 {
		v.worsen(Invalid, "the client ran out of file descriptors: %s got no connection (ulimit -n, or --max-in-flight)", Counted(n, "request"))
	}
	if n := s.Client.OutOfPorts; n > 0 {
		v.worsen(Invalid, "the client ran out of local ports: %s got no connection", Counted(n, "request"))
	}
}

func (v *Verdict) records(s *Summary) {
	q := &s.Requests
	switch {
	case q.Recorded == 0:
		v.worsen(Invalid, "no request was recorded")
	case q.Recorded == q.WarmUp:
		v.worsen(Invalid, "only the warm-up was recorded")
	case q.Successful == 0:
		v.worsen(Invalid, "no request was successful")
	}
	if q.RecordsLost > 0 {
		why := ""
		if s.run.Ended != nil && s.run.Ended.RecordError != "" {
			why = ": " + s.run.Ended.RecordError
		}
		v.worsen(Invalid, "%s records of sent requests were lost%s", Grouped(q.RecordsLost), why)
	}
	switch {
	case q.Killed:
		v.worsen(Degraded, "the run was killed or still goes on: %s of %s planned requests are recorded, and those in flight, the slow ones first of all, are missing", Grouped(q.Recorded), Grouped(s.Planned.Requests))
	case q.Unsent > 0 && !q.Interrupted && !q.Unconcluded:
		v.worsen(Invalid, "%s of %s planned requests were not sent", Grouped(q.Unsent), Grouped(s.Planned.Requests))
	}
}

func (s *Summary) remarks() []string {
	remarks := []string{}
	q := &s.Requests
	if q.Interrupted {
		remarks = append(remarks, fmt.Sprintf("interrupted: %s of %s planned requests were not sent", Grouped(q.Unsent), Grouped(s.Planned.Requests)))
	}
	if e := s.run.Ended; e != nil && e.Aborted != "" {
		remarks = append(remarks, e.Aborted)
	}
	switch {
	case q.Recovered && q.Killed:
		remarks = append(remarks, "read from the parts of the results; up to one second of finished requests is missing")
	case q.Recovered:
		remarks = append(remarks, "read from the parts of the results, since "+results.RequestsFile+" was not written")
	}
	return remarks
}
