package main

import (
	"fmt"
	"os"
	"path/filepath"

	"reprise/formats/source/cloud"
	"reprise/trace"
)

// openRemote opens the canonical trace at an address of a store, and reads of it what
// is asked for.
func openRemote(address string) (*trace.Reader, error) {
	o, err := cloud.Open(address)
	if err != nil {
		return nil, err
	}
	r, err := trace.NewReader(o, o.Size(), address)
	if err != nil {
		o.Close()
		return nil, err
	}
	return r, nil
}

// An output is a file, or an object of a store, that appears whole or not at all.
type output struct {
	*trace.File
	address string // of the object; "" for a file
	dir     string // where the object is made
}

// createOutput starts the output called name, a path or an address.
func createOutput(name string) (*output, error) {
	name = cloud.Local(name)
	if !cloud.IsRemote(name) {
		f, err := trace.Create(name)
		return &output{File: f}, err
	}
	if !cloud.Built {
		return nil, cloud.Upload(name, nil) // says what is missing
	}
	dir, err := os.MkdirTemp("", "reprise-out-*")
	if err != nil {
		return nil, err
	}
	f, err := trace.Create(filepath.Join(dir, "out"))
	if err != nil {
		os.Remove(dir)
		return nil, err
	}
	return &output{File: f, address: name, dir: dir}, nil
}

// Commit makes the output appear.
func (o *output) Commit() error {
	if err := o.File.Commit(); err != nil || o.address == "" {
		return err
	}
	defer os.RemoveAll(o.dir)
	f, err := os.Open(filepath.Join(o.dir, "out"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cloud.Upload(o.address, f); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// Abort throws the output away; after Commit it does nothing.
func (o *output) Abort() {
	o.File.Abort()
	if o.dir != "" {
		os.RemoveAll(o.dir)
	}
}
