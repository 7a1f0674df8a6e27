//go:build !linux && !darwin

package baseten

import "io"

// mapFile is for systems where files are read, not mapped.
func mapFile(io.ReaderAt, int64) (data []byte, unmap func(), ok bool) { return nil, nil, false }
