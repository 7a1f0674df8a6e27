// Package formats brings foreign traces into the canonical form and back. Each
// format has a package of its own below; this one finds the format of a file,
// runs the importer, sorts, and keeps the account of what was read.
package formats

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/formats/mapper"
	"reprise/formats/source"
	"reprise/trace"
)

// A Format is one foreign trace format.
type Format struct {
	Name string
	Doc  string // one line for --help

	// Detect tells by the beginning of a source whether it is of this format,
	// with the evidence in words.
	Detect func(h *source.Head) (evidence string, ok bool)

	// Flags are the import flags that apply, without dashes.
	Flags []string

	// NewImporter returns an importer with the options that apply to it; the
	// error names an option that it cannot have.
	NewImporter func(o Options) (Importer, error)

	// NewExporter is nil if there is none.
	NewExporter func() Exporter
}

// Options are the import flags of all formats; the zero value is the default of
// each.
type Options struct {
	BlockTokens   int           // tokens per prefix block; 0 = found from the file (mooncake), or 64 where a session does not say (weka)
	NestedTime    string        // "", "relative" or "absolute": basis of sub-agent times (weka)
	SessionColumn string        // "" = by rule (baseten, otel)
	KeepPairs     bool          // do not merge duplicate n/s pairs (weka)
	GapCap        time.Duration // idle time within a session is cut to this; 0 = never (weka)
	TimeUnit      string        // "", "s", "ms", "us", "ns": of source times, where the format has one by default (mooncake, lmcache)
	InputLengths  string        // "", "cumulative" or "incremental": input_length of later turns (mooncake)
	SingleTurn    bool          // only the first turn of each conversation (sharegpt)
	Zone          string        // offset from UTC of calendar times that name none; "" = UTC
	KeepPrivate   bool          // keep users, keys, addresses and metadata (litellm)

	Seed     uint64        // of what is drawn (servegen)
	From     time.Duration // since the data begin (servegen)
	Duration time.Duration // from From on; 0 = to the end of the data (servegen)

	Map *mapper.Mapping // which column is which (csv, jsonl, parquet)

	Count   func(text string) int // tokens of a text, for texts without counts (sharegpt); nil = such counts stay unknown
	Counter string                // the name of what counts
	Recount bool                  // count also where the source has counts, and keep those as attributes (baseten)
}

// An Exporter writes a canonical trace in a foreign format.
type Exporter interface {
	// Export writes the rows, in canonical order, to w. lost says in words, with
	// counts, what of the rows the format cannot hold.
	Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) (lost []string, err error)
}

// An Adviser is an exporter that knows how the program it writes for is told to read
// the file. Advice is asked for after Export.
type Adviser interface{ Advice() []string }

// timeUnit returns the unit of TimeUnit; 0 if it is not set.
func (o Options) timeUnit() (time.Duration, error) {
	switch o.TimeUnit {
	case "":
		return 0, nil
	case "s":
		return time.Second, nil
	case "ms":
		return time.Millisecond, nil
	case "us":
		return time.Microsecond, nil
	case "ns":
		return time.Nanosecond, nil
	}
	return 0, trace.WithFix(fmt.Errorf("--time-unit %q", o.TimeUnit), "use s, ms, us or ns")
}

// ByName returns the format called name.
func ByName(name string) (Format, error) {
	for _, f := range All {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, trace.WithFix(fmt.Errorf("unknown format %q", name), "use one of: auto, "+strings.Join(Names(false), ", "))
}

// Detect finds the format of the first source by its content. More than one
// candidate, or none, is an error that lists what was seen.
func Detect(s *source.Source) (Format, string, error) {
	h, err := s.Head()
	if err != nil {
		return Format{}, "", err
	}
	if h.Canonical {
		return Format{}, "", trace.WithFix(fmt.Errorf("%s: a canonical trace already", s.Name), "use it as it is, or export it with: reprise trace export")
	}
	var found []Format
	var evidence []string
	for _, f := range All {
		if why, ok := f.Detect(h); ok {
			found = append(found, f)
			evidence = append(evidence, why)
		}
	}
	switch len(found) {
	case 1:
		return found[0], evidence[0], nil
	case 0:
		return Format{}, "", trace.WithFix(fmt.Errorf("%s: format not recognised (%s)", s.Name, describe(h)),
			"name it with --format ("+strings.Join(Names(false), ", ")+"), or write a mapping for it: reprise trace map-init "+s.Name)
	}
	var names []string
	for i, f := range found {
		names = append(names, f.Name+" ("+evidence[i]+")")
	}
	return Format{}, "", trace.WithFix(fmt.Errorf("%s: could be %s", s.Name, strings.Join(names, " or ")), "name it with --format")
}

// DetectMapped finds the format that reads the container of the first source with a
// mapping.
func DetectMapped(s *source.Source) (Format, string, error) {
	h, err := s.Head()
	if err != nil {
		return Format{}, "", err
	}
	name := map[string]string{"csv": mapper.CSV, "json": mapper.JSONL, "json array": mapper.JSONL, "parquet": mapper.Parquet}[h.Container]
	if name == "" {
		return Format{}, "", trace.WithFix(fmt.Errorf("%s: %s, and a mapping is for CSV, JSON and Parquet", s.Name, h.Container), "turn it into a table with named columns first")
	}
	f, err := ByName(name)
	return f, "by a mapping", err
}

func describe(h *source.Head) string {
	switch {
	case len(h.Header) > 0:
		return h.Container + " with header " + strings.Join(h.Header, ",")
	case len(h.Keys) > 0:
		keys := slices.Sorted(maps.Keys(h.Keys))
		if len(keys) > 12 {
			keys = append(keys[:12], "...")
		}
		return h.Container + " with " + strings.Join(keys, ", ")
	}
	return h.Container
}
