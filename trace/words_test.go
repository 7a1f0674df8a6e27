package trace_test

import (
	"testing"

	"reprise/trace"
)

func TestPlural(t *testing.T) {
	for _, c := range []struct {
		n    int
		noun string
		want string
	}{
		{0, "run", "0 runs"}, {1, "run", "1 run"}, {2, "run", "2 runs"}, {1, "property", "1 property"}, {3, "dependency", "3 dependencies"}, {2, "key", "2 keys"}, {2, "file descriptor", "2 file descriptors"},
	} {
		if got := trace.Plural(c.n, c.noun); got != c.want {
			t.Errorf("%d %s: %q, want %q", c.n, c.noun, got, c.want)
		}
		if got := trace.Plural(int64(c.n), c.noun); got != c.want {
			t.Errorf("int64 %d %s: %q", c.n, c.noun, got)
		}
	}
}
