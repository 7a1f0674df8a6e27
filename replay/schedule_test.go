package replay

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// fixed is a schedule of known times.
type fixed []time.Duration

func (f *fixed) Next() (time.Duration, bool) {
	if len(*f) == 0 {
		return 0, false
	}
	due := (*f)[0]
	*f = (*f)[1:]
	return due, true
}

func TestDispatchIsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, due := time.Now(), fixed{0, 100 * time.Millisecond, time.Second}
		err := dispatch(t.Context(), &due, newTimerWaiter(start), func(seq int, due time.Duration) {
			if late := time.Since(start) - due; late != 0 {
				t.Errorf("request %d sent %v late", seq, late)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A stall is caught up with: what is due in it goes out at once, later due times
// stay where they are.
func TestDispatchCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, due := time.Now(), fixed{0, 100 * time.Millisecond, 200 * time.Millisecond, time.Second}
		var sent []time.Duration
		dispatch(t.Context(), &due, newTimerWaiter(start), func(seq int, _ time.Duration) {
			sent = append(sent, time.Since(start))
			if seq == 0 {
				time.Sleep(500 * time.Millisecond)
			}
		})
		if want := []time.Duration{0, 500 * time.Millisecond, 500 * time.Millisecond, time.Second}; !slices.Equal(sent, want) {
			t.Errorf("sent at %v, want %v", sent, want)
		}
	})
}

// The ordering suite that every waiter passes: never early, in order, and at
// once when the time has passed or the context ends.
func testWaiter(t *testing.T, make func(start time.Time) (waiter, func())) {
	start := time.Now()
	w, release := make(start)
	defer release()
	last := -1
	due := fixed{0, 0, time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond}
	all := slices.Clone(due)
	err := dispatch(t.Context(), &due, w, func(seq int, at time.Duration) {
		if now := time.Since(start); now < at {
			t.Errorf("request %d sent %v early", seq, at-now)
		}
		if seq != last+1 || at != all[seq] {
			t.Errorf("request %d after %d", seq, last)
		}
		last = seq
	})
	if err != nil || last != len(all)-1 {
		t.Errorf("sent %d of %d: %v", last+1, len(all), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	time.AfterFunc(10*time.Millisecond, func() { cancel(stop) })
	if err := w.waitUntil(ctx, time.Hour); !errors.Is(err, stop) {
		t.Errorf("a wait of an hour ended with %v", err)
	}
}

func TestTimerWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		testWaiter(t, func(start time.Time) (waiter, func()) { return newTimerWaiter(start), func() {} })
	})
}

func TestPlatformWaiter(t *testing.T) {
	for _, realtime := range []bool{false, true} {
		testWaiter(t, func(start time.Time) (waiter, func()) {
			w, first, release := newWaiter(start, realtime)
			if first && !realtime {
				t.Error("it goes before others, though it was not asked to")
			}
			return w, release
		})
	}
}
