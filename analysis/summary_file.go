package analysis

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/trace"
	"reprise/trace/results"
)

// WriteSummary writes summary.json and histograms.hlog into dir.
func WriteSummary(dir string, s *Summary) error {
	if err := results.WriteJSON(filepath.Join(dir, results.SummaryFile), s); err != nil {
		return err
	}
	path := filepath.Join(dir, results.HistogramsFile)
	f, err := trace.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := WriteHistograms(f, s); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Commit()
}

// WriteHistograms writes the latencies as an HdrHistogram log (format 1.3, V2
// compressed), one line with the metric as its tag: lateness, ttft, itl,
// chunk_gap, tpot, e2e and response_time, and receive_delay where the run has it. Values are nanoseconds to 3
// significant digits, so that logs of several runs or workers can be merged;
// a lateness below 0 stands as 0. Each interval begins at 0 and has the length of
// the run's window: no clock time is written. Metrics without samples have no line.
func WriteHistograms(w io.Writer, s *Summary) error {
	log := hdrhistogram.NewHistogramLogWriter(w)
	if err := log.OutputLogFormatVersion(); err != nil {
		return err
	}
	if err := log.OutputComment(fmt.Sprintf("[values in ns; quantiles at most %s above the sample]", percent(HistogramError))); err != nil {
		return err
	}
	if err := log.OutputLegend(); err != nil {
		return err
	}
	for _, name := range histogramsOf {
		h := s.histograms[name]
		if h.TotalCount() == 0 {
			continue
		}
		h.SetTag(name)
		h.SetStartTimeMs(0)
		if s.Throughput.WindowMS != nil {
			h.SetEndTimeMs(int64(*s.Throughput.WindowMS))
		}
		if err := log.OutputIntervalHistogram(h); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.Client == nil || s.Client.ReceiveDelay == nil || s.Client.ReceiveDelay.Histogram == "" {
		return nil
	}
	h, err := hdrhistogram.Decode([]byte(s.Client.ReceiveDelay.Histogram))
	if err != nil {
		return fmt.Errorf("receive_delay: %w", err)
	}
	h.SetTag("receive_delay")
	return log.OutputIntervalHistogram(h)
}
