package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/replay"
	"reprise/trace"
)

// checkProgress refuses what --progress does not know.
func checkProgress(c *cli.Command) error {
	switch p := c.String("progress"); p {
	case "auto", "plain", "none", "json":
		return nil
	default:
		return misuse("use auto, plain, json or none", "--progress %q", p)
	}
}

// progressTo prints a line a second where somebody looks.
func progressTo(c *cli.Command) func(replay.Progress) {
	w := c.Root().ErrWriter
	switch c.String("progress") {
	case "none":
		return nil
	case "json":
		e := json.NewEncoder(w)
		return func(p replay.Progress) { _ = e.Encode(progressJSON(&p)) } // nobody may be reading
	case "plain":
	default:
		if !isTerminal(w) {
			return nil
		}
	}
	return func(p replay.Progress) { fmt.Fprintln(w, progressLine(&p)) }
}

// isTerminal tells whether somebody looks at w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progressLine is a line of plain progress.
func progressLine(p *replay.Progress) string {
	line := fmt.Sprintf("%8s  sent %s, in flight %d, done %d, failed %d, late by up to %v", p.Elapsed.Round(time.Second), ofPlanned(p), p.InFlight, p.Done, p.Failed, p.Lateness.Round(10*time.Microsecond))
	if p.TTFT.N > 0 {
		line += fmt.Sprintf(", ttft p50 %s p99 %s", shortTime(p.TTFT.P50), shortTime(p.TTFT.P99))
	}
	if p.OutputPerS > 0 {
		line += fmt.Sprintf(", %.0f tokens/s", p.OutputPerS)
	}
	return line + ", " + nextText(p)
}

// ofPlanned is how many were sent of how many, where that is known.
func ofPlanned(p *replay.Progress) string {
	if p.Endless {
		return fmt.Sprint(p.Sent)
	}
	return fmt.Sprintf("%d of %d", p.Sent, p.Planned)
}

// nextText says which workers are gone, and what a run waits for.
func nextText(p *replay.Progress) string {
	if p.Lost > 0 {
		return trace.Plural(p.Lost, "worker") + " lost, " + waitText(p)
	}
	return waitText(p)
}

func waitText(p *replay.Progress) string {
	switch next := p.NextDue - p.Elapsed; {
	case !p.Sending && p.Stopped:
		return "sending has stopped"
	case !p.Sending && p.Sent < p.Planned && !p.Endless && p.Lost > 0:
		return fmt.Sprintf("sending is over, %d of %d not known to be sent", p.Planned-p.Sent, p.Planned)
	case !p.Sending && p.Sent < p.Planned && !p.Endless:
		return fmt.Sprintf("sending is over, %d of %d not sent", p.Planned-p.Sent, p.Planned)
	case !p.Sending:
		return "all sent"
	case p.Elapsed < 0:
		return "begins in " + (-p.Elapsed).Round(10*time.Millisecond).String()
	case p.NextDue >= 0 && next < -replay.HeldAfter:
		return "the next one is held, due for " + shortTime(-next)
	case p.Unheard:
		return "sending"
	case p.NextDue < 0:
		return "the next one waits for an answer"
	default:
		return "next due in " + max(0, next).Round(10*time.Millisecond).String()
	}
}

// shortTime writes a time with three digits that count.
func shortTime(d time.Duration) string {
	switch {
	case d <= 0:
		return "0"
	case d < time.Millisecond:
		return max(time.Microsecond, d.Round(time.Microsecond)).String()
	case d < 10*time.Second:
		unit := time.Microsecond
		for d >= 1000*unit {
			unit *= 10
		}
		return d.Round(unit).String()
	}
	return d.Round(time.Second).String()
}

// timeLeft is how long the run may still take: until the last is due or begun, and
// for a plan without times, at the pace until now. What is in flight then comes on
// top. False where nothing tells.
func timeLeft(p *replay.Progress) (left time.Duration, about, ok bool) {
	switch {
	case !p.Sending:
		return 0, false, false
	case p.Length > 0:
		return max(0, p.Length-p.Elapsed), false, true
	case p.Done > 0 && !p.Endless:
		return time.Duration(float64(p.Elapsed) / float64(p.Done) * float64(max(0, p.Planned-p.Done))), true, true
	}
	return 0, false, false
}

// A jsonProgress is a line of --progress json. Times are in seconds; what is not
// known is null.
type jsonProgress struct {
	Elapsed  float64          `json:"elapsed_s"`
	Planned  *int64           `json:"planned"` // null in an endless load
	Sent     int64            `json:"sent"`
	InFlight int64            `json:"in_flight"`
	Done     int64            `json:"done"`
	Failed   int64            `json:"failed"`
	Sending  bool             `json:"sending"`
	Lost     int              `json:"workers_lost"`
	NextDue  *float64         `json:"next_due_s"`
	Left     *float64         `json:"left_s"`
	Lateness float64          `json:"lateness_max_s"` // of the last second
	Late     jsonQuantiles    `json:"lateness"`
	TTFT     jsonQuantiles    `json:"ttft"`
	ITL      jsonQuantiles    `json:"itl"`
	Input    int64            `json:"input_tokens"`
	Output   int64            `json:"output_tokens"`
	InPerS   float64          `json:"input_tokens_per_s"` // of answers that ended in the last 5 to 10 s
	OutPerS  float64          `json:"output_tokens_per_s"`
	Outcomes map[string]int64 `json:"outcomes"`
	Causes   map[string]int64 `json:"causes"` // the most frequent
}

type jsonQuantiles struct {
	N   int64    `json:"n"`
	P50 *float64 `json:"p50_s"`
	P95 *float64 `json:"p95_s"`
	P99 *float64 `json:"p99_s"`
}

func progressJSON(p *replay.Progress) *jsonProgress {
	j := &jsonProgress{
		Elapsed: p.Elapsed.Seconds(), Sent: p.Sent, InFlight: p.InFlight, Done: p.Done, Failed: p.Failed, Sending: p.Sending, Lost: p.Lost, Lateness: p.Lateness.Seconds(),
		Late: quantilesJSON(p.Late), TTFT: quantilesJSON(p.TTFT), ITL: quantilesJSON(p.ITL), Input: p.Input, Output: p.Output, InPerS: p.InputPerS, OutPerS: p.OutputPerS,
		Outcomes: p.Outcomes, Causes: map[string]int64{},
	}
	if !p.Endless {
		j.Planned = &p.Planned
	}
	if p.NextDue >= 0 {
		j.NextDue = new(p.NextDue.Seconds())
	}
	if left, _, ok := timeLeft(p); ok {
		j.Left = new(left.Seconds())
	}
	for _, c := range p.Causes {
		j.Causes[c.Name] = c.N
	}
	return j
}

func quantilesJSON(q replay.Quantiles) jsonQuantiles {
	j := jsonQuantiles{N: q.N}
	if q.N > 0 {
		j.P50, j.P95, j.P99 = new(q.P50.Seconds()), new(q.P95.Seconds()), new(q.P99.Seconds())
	}
	return j
}
