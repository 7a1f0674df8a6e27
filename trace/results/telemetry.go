package results

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

// TelemetryFile is what servers said of themselves during a run, if they were asked
// (replay --scrape).
const TelemetryFile = "telemetry.parquet"

// telemetryDir holds the parts of it while the run goes on.
const telemetryDir = "telemetry-parts"

// Bounds of a TelemetryRecorder.
const (
	telemetryGroup = 128 << 10 // samples of a row group
	telemetryKept  = 1 << 20   // samples held while the disk refuses them
)

// A Sample is one number of one scrape: one row of telemetry.parquet, telemetry
// schema 1. Each scrape also has the samples ScrapeUp and ScrapeSeconds.
type Sample struct {
	AtNS   int64   `parquet:"at_ns,delta"`      // when the scrape began, since the start of the run; the number may be younger by ScrapeSeconds
	Source string  `parquet:"source,dict,zstd"` // URL, without user and password
	Name   string  `parquet:"name,dict,zstd"`   // as exposed; parts of histograms end in _bucket, _sum and _count
	Labels string  `parquet:"labels,dict,zstd"` // as Prometheus writes them, sorted by name, without braces; "" = none
	Kind   string  `parquet:"kind,dict,zstd"`   // gauge, counter, histogram, summary or untyped
	Value  float64 `parquet:"value,zstd"`       // NaN where the server said so
}

// Samples that the scraper adds, as Prometheus does.
const (
	ScrapeUp      = "up"                      // 1, or 0 where the scrape failed
	ScrapeSeconds = "scrape_duration_seconds" // from the request to the end of the answer
)

// A TelemetrySource says in run.json how the scraping of one URL went.
type TelemetrySource struct {
	URL        string `json:"url"`
	EveryNS    int64  `json:"every_ns"`
	Scrapes    int64  `json:"scrapes"`
	Failed     int64  `json:"failed"`                // of these: no answer in time, an error status, or no such format
	Skipped    int64  `json:"skipped"`               // left out, since the one before was not over
	Samples    int64  `json:"samples"`               // numbers read
	Lost       int64  `json:"lost"`                  // of these, not written, since the disk refused them
	FirstError string `json:"first_error,omitempty"` //
}

// A TelemetryRecorder writes samples into a run directory while the run goes on:
// Flush puts what was added into a part, which appears whole or not at all, and Close
// gathers the parts. It is for one goroutine at a time.
type TelemetryRecorder struct {
	dir   string
	rows  []Sample
	parts int
}

// NewTelemetryRecorder records into dir, which must exist.
func NewTelemetryRecorder(dir string) (*TelemetryRecorder, error) {
	if err := os.MkdirAll(filepath.Join(dir, telemetryDir), 0o755); err != nil {
		return nil, err
	}
	return &TelemetryRecorder{dir: dir}, nil
}

// Add copies samples; it returns how many there was no room for, which only a disk
// that refuses them brings about.
func (w *TelemetryRecorder) Add(samples []Sample) (lost int) {
	room := max(0, telemetryKept-len(w.rows))
	lost = max(0, len(samples)-room)
	w.rows = append(w.rows, samples[:len(samples)-lost]...)
	return lost
}

// Flush writes what was added. After an error it is kept for the next try.
func (w *TelemetryRecorder) Flush() error {
	if len(w.rows) == 0 {
		return nil
	}
	path := filepath.Join(w.dir, telemetryDir, fmt.Sprintf("%08d.parquet", w.parts))
	err := writeTelemetry(path, func(out *parquet.GenericWriter[Sample]) error {
		_, err := out.Write(w.rows)
		return err
	})
	if err != nil {
		return err
	}
	w.parts++
	w.rows = w.rows[:0]
	return nil
}

// Close flushes, and gathers all parts into telemetry.parquet.
func (w *TelemetryRecorder) Close() error {
	if err := w.Flush(); err != nil {
		return err
	}
	parts, err := filepath.Glob(filepath.Join(w.dir, telemetryDir, "*.parquet"))
	if err != nil {
		return err
	}
	slices.Sort(parts)
	err = writeTelemetry(filepath.Join(w.dir, TelemetryFile), func(out *parquet.GenericWriter[Sample]) error {
		for rows, err := range telemetryRows(parts) {
			if err != nil {
				return err
			}
			if _, err := out.Write(rows); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(w.dir, telemetryDir))
}

func writeTelemetry(path string, write func(*parquet.GenericWriter[Sample]) error) error {
	f, err := trace.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	out := parquet.NewGenericWriter[Sample](f, parquet.MaxRowsPerRowGroup(telemetryGroup), parquet.CreatedBy("reprise", "", ""), parquet.KeyValueMetadata("reprise.telemetry", strconv.Itoa(SchemaVersion)))
	if err = write(out); err == nil {
		err = out.Close()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Commit()
}

// Telemetry returns the samples of a run in the order in which they were taken, each
// scrape's together; none if nothing was scraped. Of a run that was killed they come
// from the parts. It stops after an error.
func (o *Opened) Telemetry() iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		if o.Dir == "" {
			return
		}
		files := []string{filepath.Join(o.Dir, TelemetryFile)}
		if _, err := os.Stat(files[0]); err != nil {
			files, _ = filepath.Glob(filepath.Join(o.Dir, telemetryDir, "*.parquet"))
			slices.Sort(files)
		}
		for rows, err := range telemetryRows(files) {
			if err != nil {
				yield(Sample{}, err)
				return
			}
			for _, s := range rows {
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}

// telemetryRows yields the rows of files, some at a time.
func telemetryRows(files []string) iter.Seq2[[]Sample, error] {
	return func(yield func([]Sample, error) bool) {
		rows := make([]Sample, 4096)
		for _, name := range files {
			if err := readTelemetry(name, rows, yield); err != nil {
				if !errors.Is(err, errStopped) {
					yield(nil, fmt.Errorf("%s: %w", name, err))
				}
				return
			}
		}
	}
}

var errStopped = errors.New("stopped")

func readTelemetry(name string, rows []Sample, yield func([]Sample, error) bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return err
	}
	if _, ok := file.Lookup("reprise.telemetry"); !ok {
		return errors.New("not the telemetry of a run (no reprise.telemetry in its metadata)")
	}
	r := parquet.NewGenericReader[Sample](file)
	defer r.Close()
	for {
		n, err := r.Read(rows)
		if n > 0 && !yield(rows[:n], nil) {
			return errStopped
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
