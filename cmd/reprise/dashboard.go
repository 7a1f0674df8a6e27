package main

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/urfave/cli/v3"

	"reprise/replay"
)

// A dashboard shows a run on a terminal: one frame a second, below what is there
// already, and nothing is left of it in the end. It owns the terminal while it is
// shown: q and ctrl-c are an interrupt, the second ends the program at once, with the
// terminal as it was.
type dashboard struct {
	program *tea.Program
	over    chan struct{}        // closed when the terminal is as it was
	latest  chan replay.Progress // holds one
	signals chan os.Signal
	begin   sync.Once
	end     sync.Once
	begun   bool
}

// endTime is how long a terminal may take to take the end: one that is stopped with
// ctrl-s takes nothing.
const endTime = 2 * time.Second

// again is how long after an interrupt a second one counts, as in main.
const again = time.Second

// dashboardFor returns the dashboard of a run if there is a terminal that can have
// one, and that is this program's to use; else nil.
func dashboardFor(c *cli.Command) *dashboard {
	out, ok := c.Root().ErrWriter.(*os.File)
	if c.String("progress") != "auto" || !ok || !isTerminal(out) || os.Getenv("TERM") == "dumb" || !inForeground(out) {
		return nil
	}
	in, _ := c.Root().Reader.(*os.File)
	if in != nil && (!isTerminal(in) || !inForeground(in)) {
		in = nil
	}
	return newDashboard(out, in, &board{title: runTitle(c), color: os.Getenv("NO_COLOR") == "", keys: in != nil})
}

func newDashboard(out *os.File, in *os.File, b *board) *dashboard {
	d := &dashboard{over: make(chan struct{}), latest: make(chan replay.Progress, 1), signals: make(chan os.Signal, 8)}
	b.interrupt, b.die = func() { raise(os.Interrupt) }, func() { go d.die() }
	var keys io.Reader
	if in != nil {
		keys = in
	}
	d.program = tea.NewProgram(b, tea.WithOutput(out), tea.WithInput(keys), tea.WithoutSignalHandler(), tea.WithFPS(10))
	return d
}

// start shows it; nil is not shown.
func (d *dashboard) start() {
	if d == nil {
		return
	}
	d.begin.Do(func() {
		d.begun = true
		signal.Notify(d.signals, os.Interrupt, syscall.SIGTERM)
		go func() {
			defer close(d.over)
			_, _ = d.program.Run() // without a terminal there is nothing to see, and the run goes on
		}()
		go d.feed()
		go d.watch()
	})
}

// update takes what to show; it never waits for the terminal.
func (d *dashboard) update(p replay.Progress) {
	for {
		select {
		case d.latest <- p:
			return
		default:
		}
		select {
		case <-d.latest: // nobody needs it any more
		default:
		}
	}
}

func (d *dashboard) feed() {
	for {
		select {
		case p := <-d.latest:
			d.program.Send(progressed(p))
		case <-d.over:
			return
		}
	}
}

// watch ends the program at the second interrupt. The first is main's, which stops
// the sending; without this, the second would kill before the terminal is as it was.
func (d *dashboard) watch() {
	var first time.Time
	for {
		select {
		case <-d.signals:
			if first.IsZero() {
				first = time.Now()
				d.program.Send(interrupted{})
			} else if time.Since(first) >= again {
				d.die()
			}
		case <-d.over:
			return
		}
	}
}

// die gives the terminal back and ends the program as an interrupt does.
func (d *dashboard) die() {
	d.program.Kill()
	d.wait()
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	raise(os.Interrupt)
}

// stop takes it away; it may be called again, and without start.
func (d *dashboard) stop() {
	if d == nil {
		return
	}
	d.end.Do(func() {
		if !d.begun {
			return
		}
		d.program.Send(ended{})
		d.program.Quit()
		d.wait()
		signal.Stop(d.signals)
	})
}

func (d *dashboard) wait() {
	select {
	case <-d.over:
	case <-time.After(endTime):
		d.program.Kill()
	}
}
