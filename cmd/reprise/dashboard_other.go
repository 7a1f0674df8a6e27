//go:build !unix

package main

import "os"

// inForeground is false where nothing is known of process groups: progress is then in
// lines.
func inForeground(*os.File) bool { return false }

// raise ends this program.
func raise(os.Signal) { os.Exit(130) }
