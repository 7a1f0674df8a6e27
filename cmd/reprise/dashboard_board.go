package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/replay"
)

// A board is what a dashboard shows.
type board struct {
	title         string
	p             *replay.Progress // nil until there is one
	width, height int
	color, keys   bool
	interrupts    int
	over          bool
	interrupt     func() // stops the sending
	die           func() // ends the program
}

type (
	progressed  replay.Progress
	interrupted struct{} // by a signal
	ended       struct{}
)

// runTitle names a run in a line.
func runTitle(c *cli.Command) string {
	what := "made requests"
	if c.Args().Len() > 0 {
		what = c.Args().First()
	}
	return what + " to " + strings.Join(c.StringSlice("url"), ", ")
}

// Init implements tea.Model.
func (b *board) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (b *board) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		b.width, b.height = m.Width, m.Height
	case progressed:
		p := replay.Progress(m)
		b.p = &p
	case interrupted:
		b.interrupts = max(1, b.interrupts)
	case ended:
		b.over = true
	case tea.KeyPressMsg:
		if k := m.String(); k == "q" || k == "ctrl+c" {
			b.pressed()
		}
	}
	return b, nil
}

// pressed is an interrupt by a key.
func (b *board) pressed() {
	b.interrupts++
	switch b.interrupts {
	case 1:
		b.interrupt()
	case 2:
		b.die()
	}
}

// View implements tea.Model.
func (b *board) View() tea.View {
	if b.over {
		return tea.NewView("")
	}
	return tea.NewView(b.frame())
}

// wide is the width from which lines hold two things beside one another.
const wide = 72

// frame is what is seen, without a line break at its end.
func (b *board) frame() string {
	width := b.width
	if width == 0 {
		width = 80
	}
	var lines []string
	lines = append(lines, b.bold(cut("reprise: "+printable(b.title), width)))
	if b.p == nil {
		lines = append(lines, "waiting for the first second")
	} else {
		lines = append(lines, "")
		for _, line := range b.body(width) {
			lines = append(lines, b.paint(cut(line, width)))
		}
	}
	lines = append(lines, "", b.faint(cut(b.help(), width)))
	return strings.Join(fit(lines, b.height), "\n")
}

// fit leaves out empty lines, then what stands last but for the help, until the
// frame is no higher than the terminal.
func fit(lines []string, height int) []string {
	if height <= 0 || len(lines) <= height {
		return lines
	}
	var kept []string
	for _, line := range lines {
		if line != "" {
			kept = append(kept, line)
		}
	}
	if len(kept) > height {
		kept = append(kept[:max(0, height-1)], kept[len(kept)-1])
	}
	return kept
}

func (b *board) body(width int) []string {
	lines := b.head(width)
	lines = append(append(lines, ""), b.latency(width)...)
	lines = append(append(lines, ""), b.tokens(width)...)
	return append(append(lines, ""), b.errors()...)
}

// head is how far the run is.
func (b *board) head(width int) []string {
	p := b.p
	lines := []string{b.bar(width)}
	sent, flight := "sent "+grouped(p), "in flight "+analysis.Grouped(p.InFlight)
	done, failed := "done "+analysis.Grouped(p.Done), "failed "+analysis.Grouped(p.Failed)
	late := fmt.Sprintf("late p50 %s, p99 %s, last second %s", timeCell(p.Late.N, p.Late.P50), timeCell(p.Late.N, p.Late.P99), shortTime(p.Lateness))
	if width < wide {
		return append(lines, sent, flight, done+", "+failed, strings.Replace(late, ", last second", ", now", 1), nextText(p))
	}
	return append(lines, pair(sent, flight), pair(done, failed), late, nextText(p))
}

// pair sets two things beside one another.
func pair(a, b string) string {
	return a + strings.Repeat(" ", max(2, 44-utf8.RuneCountInString(a))) + b
}

func grouped(p *replay.Progress) string {
	if p.Endless {
		return analysis.Grouped(p.Sent)
	}
	return analysis.Grouped(p.Sent) + " of " + analysis.Grouped(p.Planned)
}

// bar draws the time that has gone, or the requests where a plan has no times.
func (b *board) bar(width int) string {
	p := b.p
	left, about, ok := timeLeft(p)
	text := p.Elapsed.Round(time.Second).String()
	share := -1.0
	switch {
	case !p.Sending && p.Stopped:
		text += ", stopped: waiting for what is in flight"
	case !p.Sending:
		text += ", all sent: waiting for what is in flight"
	case ok && about:
		share = float64(p.Done) / float64(max(1, p.Planned))
		text += ", about " + left.Round(time.Second).String() + " left"
	case ok:
		share = p.Elapsed.Seconds() / max(p.Length.Seconds(), 1e-9)
		text += ", " + left.Round(time.Second).String() + " left"
	}
	if share < 0 {
		return text
	}
	share = min(max(share, 0), 1)
	room := max(8, min(40, width-utf8.RuneCountInString(text)-9))
	full := int(share*float64(room) + 0.5)
	return fmt.Sprintf("[%s%s] %3.0f%% %s", strings.Repeat("#", full), strings.Repeat(".", room-full), 100*share, text)
}

// latency is the table of what has ended.
func (b *board) latency(width int) []string {
	p := b.p
	rows := []struct {
		name        string
		all, recent replay.Quantiles
	}{{"ttft", p.TTFT, p.RecentTTFT}, {"itl", p.ITL, p.RecentITL}}
	if width < wide {
		lines := []string{fmt.Sprintf("%-5s%9s%9s%9s", "", "p50", "p99", "p99 now")}
		for _, r := range rows {
			lines = append(lines, fmt.Sprintf("%-5s%9s%9s%9s", r.name, timeCell(r.all.N, r.all.P50), timeCell(r.all.N, r.all.P99), timeCell(r.recent.N, r.recent.P99)))
		}
		return lines
	}
	lines := []string{fmt.Sprintf("%-6s%12s%9s%9s%9s   |%9s%9s", "", "n", "p50", "p95", "p99", "p50 now", "p99 now")}
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("%-6s%12s%9s%9s%9s   |%9s%9s", r.name, analysis.Grouped(r.all.N), timeCell(r.all.N, r.all.P50), timeCell(r.all.N, r.all.P95), timeCell(r.all.N, r.all.P99), timeCell(r.recent.N, r.recent.P50), timeCell(r.recent.N, r.recent.P99)))
	}
	return lines
}

// tokens is what was counted in answers that have ended; now is over the last 5 to
// 10 s, as in the table.
func (b *board) tokens(width int) []string {
	p := b.p
	out := fmt.Sprintf("output %s tokens, now %s/s", analysis.Grouped(p.Output), analysis.Grouped(int64(p.OutputPerS+0.5)))
	in := fmt.Sprintf("input %s tokens, now %s/s", analysis.Grouped(p.Input), analysis.Grouped(int64(p.InputPerS+0.5)))
	if width < wide {
		return []string{out, in}
	}
	return []string{pair(out, in)}
}

// errors are the most frequent causes.
func (b *board) errors() []string {
	p := b.p
	if len(p.Causes) == 0 {
		return []string{"no errors"}
	}
	lines := []string{"errors"}
	for _, c := range p.Causes {
		lines = append(lines, fmt.Sprintf("! %s x %s", analysis.Grouped(c.N), printable(c.Name)))
	}
	if p.OtherFailed > 0 {
		lines = append(lines, fmt.Sprintf("! %s x %s", analysis.Grouped(p.OtherFailed), analysis.Counted(p.OtherCauses, "other cause")))
	}
	return lines
}

func (b *board) help() string {
	switch {
	case !b.keys:
		return "an interrupt stops the sending"
	case b.interrupts > 0:
		return "q: end now, without waiting"
	}
	return "q: stop sending, and wait for the rest"
}

func timeCell(n int64, d time.Duration) string {
	if n == 0 {
		return "n/a"
	}
	return shortTime(d)
}

// cut shortens a line to a width.
func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	runes := []rune(line)
	return string(runes[:max(0, width-1)]) + "~"
}

// printable takes out what would move the cursor or change colours: causes come from
// servers.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

func (b *board) styled(code, text string) string {
	if !b.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (b *board) bold(text string) string  { return b.styled("1", text) }
func (b *board) faint(text string) string { return b.styled("2", text) }

// paint shows errors in red.
func (b *board) paint(line string) string {
	if strings.HasPrefix(line, "! ") {
		return b.styled("31", line)
	}
	return line
}
