package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
	"reprise/trace/column"
)

// Names within a run directory.
const (
	RunFile        = "run.json"
	RequestsFile   = "requests.parquet"
	SummaryFile    = "summary.json"
	HistogramsFile = "histograms.hlog"
	partsDir       = "parts"
)

const keySchema = "reprise.results"

// batchRows cuts results to batches.
const batchRows = 1024

// Versions of HTTP, as Run.HTTP names them.
const (
	HTTP1 = "1.1"
	HTTP2 = "2"
)

// A Run is what run.json says: everything that is needed to repeat the run, and
// no secrets.
type Run struct {
	Schema    int               `json:"schema"`
	Version   string            `json:"version"`             // of reprise
	Started   string            `json:"started"`             // RFC 3339, wall clock at offset 0
	Label     string            `json:"label"`               // "open loop", "capped" or "closed loop", with the pacing
	Labels    map[string]string `json:"labels,omitempty"`    // --label
	Trace     *trace.Input      `json:"trace,omitempty"`     // the file that was replayed
	History   []trace.Step      `json:"history,omitempty"`   // how it came to be
	Pace      string            `json:"pace"`                // schedule, causal or think
	Speed     float64           `json:"speed"`               // time compression; 1 = as recorded
	Seed      uint64            `json:"seed"`                // of prompts and session arrivals
	URLs      []string          `json:"urls"`                // without user and password
	HTTP      string            `json:"http,omitempty"`      // HTTP1 or HTTP2; "" in runs of older versions, which is HTTP1
	Protocol  string            `json:"protocol"`            //
	Models    map[string]string `json:"models,omitempty"`    // recorded to sent; "" = recorded without a model
	Flags     map[string]string `json:"flags,omitempty"`     // as given, secrets replaced by their length
	Planned   Planned           `json:"planned"`             //
	Probe     *Probe            `json:"probe,omitempty"`     // what was asked before the run
	Ended     *Ended            `json:"ended,omitempty"`     // absent in a run that was killed
	Warnings  []string          `json:"warnings,omitempty"`  // doubts about what was measured
	Telemetry []TelemetrySource `json:"telemetry,omitempty"` // what was scraped, and how that went
	Host      Host              `json:"host"`
	Workers   []Worker          `json:"workers,omitempty"` // of a run of several load hosts
}

// Planned is what the run was to do.
type Planned struct {
	Requests     int64  `json:"requests"`
	InputTokens  *int64 `json:"input_tokens"`       // sum over the rows that know them; null if none does
	OutputTokens *int64 `json:"output_tokens"`      // likewise
	ReuseTokens  *int64 `json:"reuse_tokens"`       // of the input, what a prefix cache without limit would find: leading blocks, or the common text of a conversation; null if not known, as for literal prompts
	DurationNS   int64  `json:"duration_ns"`        // first to last due
	UntilNS      *int64 `json:"until_ns,omitempty"` // nothing began that late, and how many requests there would be was for the endpoint to say: Requests is how many were sent
}

// A Probe is what a few small requests before the run found out.
type Probe struct {
	Requests       int    `json:"requests"`
	RunningUsage   bool   `json:"running_usage"`   // the server sends usage on every event
	ExactFields    bool   `json:"exact_fields"`    // it accepts min_tokens and ignore_eos
	TemplateTokens *int64 `json:"template_tokens"` // that its chat template adds to a prompt; null if not known
	ShortestExact  *int64 `json:"shortest_exact"`  // tokens of the shortest prompt that can be exact
}

// Ended is how the run ended.
type Ended struct {
	DurationNS  int64  `json:"duration_ns"` // start to the end of the last response
	Sent        int64  `json:"sent"`
	Unsent      int64  `json:"unsent"` // planned, but not sent, because the run was stopped
	Interrupted bool   `json:"interrupted"`
	Capped      int64  `json:"capped"`                 // requests that waited for --max-in-flight
	Holds       *Holds `json:"holds,omitempty"`        // of causal and think pacing
	Overlaps    int64  `json:"session_overlaps"`       // requests sent while an earlier one of their session was in flight
	Aborted     string `json:"aborted,omitempty"`      // why the run was ended before its time, by --abort-if
	RecordError string `json:"record_error,omitempty"` // why records were lost
	RecordsLost int64  `json:"records_lost"`
	Lost        int64  `json:"lost,omitempty"`        // of the shards of workers that were lost: nobody knows whether they were sent
	Unconcluded bool   `json:"unconcluded,omitempty"` // the coordinator of its workers did not end it: assembled later from what they had kept
	Client      Client `json:"client"`
}

// Holds counts what causal and think pacing did.
type Holds struct {
	Held          int64 `json:"held"`           // causal: requests that were due before those they come after had ended
	HeldNS        int64 `json:"held_ns"`        // sum of these waits
	NoDelay       int64 `json:"no_delay"`       // dependent requests without a recorded delay: none is added (causal), or the gap between arrivals is taken (think)
	GapsCut       int64 `json:"gaps_cut"`       // waits that --gap-cap shortened
	GapsCutNS     int64 `json:"gaps_cut_ns"`    // by how much, in all
	Outside       int64 `json:"outside"`        // dependencies on requests that are not part of the run
	LeftOut       int64 `json:"left_out"`       // requests that were not sent since what they come after has failed, as --on-error says
	Joins         int64 `json:"joins"`          // requests that came after more than one
	JoinWaitNS    int64 `json:"join_wait_ns"`   // from the first to the last end of what they came after, in all
	NeverEligible int64 `json:"never_eligible"` // requests that still waited when the run was stopped
}

// Client is what the client used of its machine during the run.
type Client struct {
	CPUSeconds  *float64 `json:"cpu_seconds"` // user and system time; null where not measured
	GCCycles    uint32   `json:"gc_cycles"`
	GCPauseNS   uint64   `json:"gc_pause_ns"` // sum of stop-the-world pauses
	ConnsOpened int64    `json:"conns_opened"`
	ConnsReused int64    `json:"conns_reused"` // requests that found an open connection

	Realtime bool `json:"realtime"` // requests were sent from a thread that goes before all others of the machine (Linux SCHED_FIFO)

	OutOfDescriptors int64 `json:"out_of_descriptors"` // requests that got no connection, since the client could open no more files
	OutOfPorts       int64 `json:"out_of_ports"`       // likewise, since no local port was left

	// ReceiveDelay is from the kernel's receipt of a read's last segment to our
	// read: how late the client saw what the server had sent. Null where the kernel
	// does not stamp (not Linux), or a stamp says nothing (TLS).
	ReceiveDelay *Delay `json:"receive_delay"`
	// RunQueue is how long goroutines that could run waited for a processor.
	RunQueue *Delay `json:"run_queue"`
}

// A Delay is the distribution of a delay of the client's own, in ns.
type Delay struct {
	N      int64 `json:"n"`
	P50NS  int64 `json:"p50_ns"`
	P99NS  int64 `json:"p99_ns"`
	P999NS int64 `json:"p99_9_ns"`
	MaxNS  int64 `json:"max_ns"`
	// Histogram holds all of it, as an HdrHistogram in V2 compressed form, base64;
	// "" where there is none.
	Histogram string `json:"histogram,omitempty"`
}

// Host is the machine of the client.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// WriteRun writes run.json into dir.
func WriteRun(dir string, r *Run) error {
	r.Schema = SchemaVersion
	return WriteJSON(filepath.Join(dir, RunFile), r)
}

// WriteJSON writes v, indented, whole or not at all.
func WriteJSON(path string, v any) error {
	f, err := trace.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	e := json.NewEncoder(f)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Commit()
}

// A Recorder writes results into a run directory while the run goes on: Flush
// puts what was added since the last into a part of its own, which appears whole
// or not at all, and Close gathers the parts into requests.parquet.
type Recorder struct {
	dir   string
	batch *batch
	out   *column.Writer // of all files, one after the other
	parts int
	rows  int64
}

// NewRecorder records into dir, which must exist.
func NewRecorder(dir string) (*Recorder, error) {
	if err := os.MkdirAll(filepath.Join(dir, partsDir), 0o755); err != nil {
		return nil, err
	}
	return &Recorder{dir: dir, batch: newBatch(), out: newWriter()}, nil
}

// Add copies r.
func (w *Recorder) Add(r *Result) { w.batch.append(r) }

// Pending returns how many results wait for Flush.
func (w *Recorder) Pending() int { return w.batch.len() }

// fullEntries is how many ledger entries are held before a part is written, some
// 6 MB.
const fullEntries = 1 << 18

// Full tells that what waits for Flush has grown large.
func (w *Recorder) Full() bool { return w.batch.at.Len() >= fullEntries }

// Flush writes what was added. After an error the results are kept for the next
// try.
func (w *Recorder) Flush() error {
	if w.batch.len() == 0 {
		return nil
	}
	path := filepath.Join(w.dir, partsDir, partName(w.parts))
	if err := w.writeFile(path, func(cw *column.Writer) error { return cw.Write(w.batch.cols) }); err != nil {
		return err
	}
	w.parts++
	w.rows += int64(w.batch.len())
	w.batch.reset()
	return nil
}

// Drop forgets what was not flushed and returns how many results that were.
func (w *Recorder) Drop() int {
	n := w.batch.len()
	w.batch.reset()
	return n
}

// Close flushes and gathers all parts into requests.parquet.
func (w *Recorder) Close() error {
	if err := w.Flush(); err != nil {
		return err
	}
	err := w.writeFile(filepath.Join(w.dir, RequestsFile), func(cw *column.Writer) error {
		parts, err := partFiles(w.dir)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if err := gather(cw, part, w.batch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(w.dir, partsDir))
}

// gather appends the rows of a part: its bytes if it is large, else row by row,
// through b, so that row groups do not get small.
func gather(cw *column.Writer, part string, b *batch) error {
	f, err := os.Open(part)
	if err != nil {
		return err
	}
	defer f.Close()
	file, err := openResults(f, part)
	if err != nil {
		return err
	}
	if copied, err := cw.Copy(file, f); copied || err != nil {
		return err
	}
	for err := range readBatches(part, b) {
		if err != nil {
			return err
		}
		if err := cw.Write(b.cols); err != nil {
			return err
		}
	}
	return nil
}

func newWriter() *column.Writer {
	return column.NewWriter(nil, Schema, "3", "cause", "note")
}

func (w *Recorder) writeFile(path string, write func(*column.Writer) error) error {
	f, err := trace.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	cw := w.out
	cw.Reset(f)
	cw.SetMetadata(keySchema, strconv.Itoa(SchemaVersion))
	if err = write(cw); err == nil {
		err = cw.Close()
	}
	if err != nil {
		w.out = newWriter() // what half a file has left in this one is not known
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Commit()
}

func partFiles(dir string) ([]string, error) {
	parts, err := filepath.Glob(filepath.Join(dir, partsDir, "*.parquet"))
	slices.Sort(parts)
	return parts, err
}

// readBatches reads the file at path through b.
func readBatches(path string, b *batch) iter.Seq[error] {
	return func(yield func(error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(err)
			return
		}
		defer f.Close()
		file, err := openResults(f, path)
		if err != nil {
			yield(err)
			return
		}
		r, err := column.NewReader(file, Schema)
		if err != nil {
			yield(err)
			return
		}
		defer r.Close()
		for {
			b.reset()
			_, err := r.Read(b.cols, batchRows)
			if err == io.EOF {
				return
			}
			if err == nil {
				err = b.check()
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			if !yield(err) || err != nil {
				return
			}
		}
	}
}

func openResults(f *os.File, path string) (*parquet.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: not a Parquet file: %w", path, err)
	}
	if _, ok := file.Lookup(keySchema); !ok {
		return nil, trace.WithFix(fmt.Errorf("%s: not the results of a run (no %s in its metadata)", path, keySchema), "name a run directory written by reprise replay")
	}
	return file, nil
}

// An Opened is a run directory that is being read.
type Opened struct {
	Dir       string
	Run       Run
	Recovered bool // the run was killed: its results are read from the parts
	files     []string
	rows      []Result // of InMemory
}

// InMemory is a run that is in no directory, such as a simulated one, with its
// results in the order in which they ended.
func InMemory(run Run, rows []Result) *Opened { return &Opened{Run: run, rows: rows} }

// OpenRun opens a run directory, also one of a run that was killed or still
// goes on.
func OpenRun(dir string) (*Opened, error) {
	o := &Opened{Dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, RunFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, trace.WithFix(fmt.Errorf("%s: not a run directory: no %s in it", dir, RunFile), "name the directory written by reprise replay -o")
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &o.Run); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, RunFile), err)
	}
	if o.Run.Schema > SchemaVersion {
		return nil, trace.WithFix(fmt.Errorf("%s: results schema %d, this program reads 1 to %d", dir, o.Run.Schema, SchemaVersion), "use a newer reprise")
	}
	whole := filepath.Join(dir, RequestsFile)
	if _, err := os.Stat(whole); err == nil {
		o.files = []string{whole}
		return o, nil
	}
	o.Recovered = true
	o.files, err = partFiles(dir)
	return o, err
}

// Results returns all results in the order in which they ended. It stops after
// an error.
func (o *Opened) Results() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for i := range o.rows {
			if !yield(o.rows[i], nil) {
				return
			}
		}
		if o.files == nil {
			return
		}
		b := newBatch()
		for _, file := range o.files {
			for err := range readBatches(file, b) {
				if err != nil {
					yield(Result{}, err)
					return
				}
				for i := range b.len() {
					if !yield(b.row(i), nil) {
						return
					}
				}
			}
		}
	}
}
