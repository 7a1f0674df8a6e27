package results

import (
	"fmt"
	"os"
	"path/filepath"

	"reprise/trace/column"
)

// GatherParts writes one file at path of the parts of a run that goes on, from the given
// one on, and returns the number after the last; it writes none where there are no more.
// A run that ends meanwhile takes its parts away, which is an error.
func GatherParts(dir string, from int, path string) (next int, err error) {
	w := &Recorder{dir: dir, batch: newBatch(), out: newWriter()}
	part := func(n int) string { return filepath.Join(dir, partsDir, partName(n)) }
	for next = from; ; next++ {
		if _, err := os.Stat(part(next)); err != nil {
			break
		}
	}
	if next == from {
		return from, nil
	}
	err = w.writeFile(path, func(cw *column.Writer) error {
		for n := from; n < next; n++ {
			if err := gather(cw, part(n), w.batch); err != nil {
				return err
			}
		}
		return nil
	})
	return next, err
}

func partName(n int) string { return fmt.Sprintf("%08d.parquet", n) }

// PartPath is where the n-th part of a run is, below its directory, with slashes.
func PartPath(n int) string { return partsDir + "/" + partName(n) }
