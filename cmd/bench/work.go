package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// A work is one run of an arm in its process.
type work struct {
	dir     string // files that the measure has set up, and room for more
	address string // of the paced server
	Sample
	begun time.Time
	used  time.Duration
}

// child runs one arm and prints what it took.
func child(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("usage: bench arm MEASURE ARM DIR [ADDRESS]")
	}
	w := &work{dir: args[2]}
	if len(args) > 3 {
		w.address = args[3]
	}
	for _, m := range measures {
		if m.name != args[0] {
			continue
		}
		arms := []arm{m.ours}
		for _, r := range m.refs {
			arms = append(arms, r.arm)
		}
		for _, a := range arms {
			if a.name == args[1] {
				if err := a.run(w); err != nil {
					return err
				}
				w.RSS = peakRSS()
				return json.NewEncoder(os.Stdout).Encode(w.Sample)
			}
		}
	}
	switch args[0] {
	case "server":
		return serve()
	case "discard":
		return discard(w.address)
	case "hog":
		return hog()
	case "stall":
		return stall(args[1])
	case "account":
		return account(args[3:])
	}
	return fmt.Errorf("no arm %s of %s", args[1], args[0])
}

// begin starts the clock; what was done before does not count.
func (w *work) begin() {
	runtime.GC()
	w.begun, w.used = time.Now(), cpuTime()
}

// end stops it: units of work were done.
func (w *work) end(units float64) {
	w.Wall = time.Since(w.begun).Seconds()
	w.CPU = (cpuTime() - w.used).Seconds()
	w.Units = units
}

// repeat does the work until half a second has gone by; once returns its units.
func (w *work) repeat(once func() (units int)) {
	once()
	w.begin()
	n := 0
	for time.Since(w.begun) < 700*time.Millisecond {
		n += once()
	}
	w.end(float64(n))
}

func (w *work) extra(name string, v float64) {
	if w.Extra == nil {
		w.Extra = map[string]float64{}
	}
	w.Extra[name] = v
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// peakRSS is the largest resident size of this process, MB.
func peakRSS() float64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	unit := 1e-3 // KiB on Linux
	if runtime.GOOS == "darwin" {
		unit = 1e-6
	}
	return float64(r.Maxrss) * unit
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
