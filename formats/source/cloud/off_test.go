//go:build !cloud

package cloud

import (
	"strings"
	"testing"

	"reprise/trace"
)

// Without the drivers, what is missing is said.
func TestNotBuilt(t *testing.T) {
	_, err := Open("s3://bucket/key")
	_, lerr := List("gs://bucket/")
	for _, err := range []error{err, lerr, Upload("s3://bucket/key", nil)} {
		if err == nil || !strings.Contains(err.Error(), "built without cloud storage") || !strings.Contains(trace.Fix(err), "tag cloud") {
			t.Errorf("%v: %s", err, trace.Fix(err))
		}
	}
}
