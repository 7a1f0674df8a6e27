//go:build !cloud

package cloud

import (
	"fmt"
	"io"

	"reprise/trace"
)

// Built tells whether the drivers are there.
const Built = false

func missing(address string) error {
	return trace.WithFix(fmt.Errorf("%s: this program was built without cloud storage", address), "build it with the tag cloud (make build-cloud), or copy the object to a file first")
}

// Open opens an object.
func Open(address string) (Object, error) { return nil, missing(address) }

// List returns the addresses of the objects below one that ends in a slash, by name.
func List(address string) ([]string, error) { return nil, missing(address) }

// Upload writes an object, which appears whole or not at all.
func Upload(address string, r io.Reader) error { return missing(address) }
