//go:build !nvml

package scrape

import "net/http"

// hasNVML says that this program can ask the GPUs of its own machine: one that is
// built with the tag nvml, and cgo, can.
const hasNVML = false

func localGPUs() http.RoundTripper { return nil }
