//go:build linux || darwin

package baseten

import (
	"io"
	"os"
	"syscall"
)

// mapFile maps a plain file into memory; ok is false if r is none or the system
// does not let it.
func mapFile(r io.ReaderAt, size int64) (data []byte, unmap func(), ok bool) {
	f, isFile := r.(*os.File)
	if !isFile || size <= 0 || int64(int(size)) != size {
		return nil, nil, false
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, false
	}
	return data, func() { syscall.Munmap(data) }, true
}
