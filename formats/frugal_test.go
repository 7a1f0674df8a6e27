package formats_test

import (
	"math"
	"runtime/debug"
	"testing"

	"reprise/formats"
)

// Frugal bounds the memory while it lasts, and leaves what the user has set.
func TestFrugal(t *testing.T) {
	limit := func() int64 { return debug.SetMemoryLimit(-1) } // asks
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := limit()
	stop := formats.Frugal()
	if l := limit(); l <= 0 || l > 1<<30 || l == math.MaxInt64 {
		t.Errorf("a limit of %d", l)
	}
	if stop(); limit() != before {
		t.Errorf("%d is left, was %d", limit(), before)
	}
	t.Setenv("GOMEMLIMIT", "5GiB")
	defer formats.Frugal()()
	if limit() != before {
		t.Errorf("changed to %d, though the user has set one", limit())
	}
}
