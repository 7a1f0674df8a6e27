package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Values of Meta.Clock.
const (
	ClockTrace   = "trace"   // one clock for all rows
	ClockSession = "session" // each session has its own and begins at 0
	ClockNone    = "none"    // the source has no times
)

// Meta is what a trace file says of itself, kept under reprise.* in its
// metadata. It holds no clock time of ours, no host name and no absolute path,
// so that equal input gives equal bytes.
type Meta struct {
	Clock    string          // ClockTrace, ClockSession or ClockNone
	Format   string          // source format, such as "mooncake"; "" if generated
	Dialect  string          // which form of it, in words
	EpochNS  Optional[int64] // Unix time of arrival 0 in nanoseconds, where the source has absolute times
	OriginNS Optional[int64] // the source's own time of arrival 0, in nanoseconds on its clock, where that is not 0
	Zone     string          // how a zone was found for times without one; "" if none was needed
	TickNS   Optional[int64] // effective resolution of the timestamps in nanoseconds, detected
	Counts   Counts
	Guesses  []Guess
	History  []Step
}

// Counts says what became of the rows of the sources.
type Counts struct {
	Read     int64            `json:"read"`               // rows of the source, as a person would count them
	Kept     int64            `json:"kept"`               // rows of this trace
	Rejected map[string]int64 `json:"rejected,omitempty"` // by reason
	Merged   map[string]int64 `json:"merged,omitempty"`   // by reason: rows that went into another one
	Notes    map[string]int64 `json:"notes,omitempty"`    // other counted facts, such as moved or clamped rows
}

// A Guess is a decision that the source did not settle.
type Guess struct {
	What     string `json:"what"`     // block size, time basis, session key, ...
	Value    string `json:"value"`    // what was decided
	Evidence string `json:"evidence"` // why
	Flag     string `json:"flag,omitempty"`
}

// A Step is one command that made the file what it is.
type Step struct {
	Command string            `json:"command"`
	Version string            `json:"version"`
	Seed    *uint64           `json:"seed,omitempty"`
	Flags   map[string]string `json:"flags,omitempty"` // those that matter for the result
	Inputs  []Input           `json:"inputs,omitempty"`
}

// An Input is one file that a step read.
type Input struct {
	Name   string `json:"name"` // base name
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Identify reads the file at path and says which it is.
func Identify(path string) (Input, error) {
	f, err := os.Open(path)
	if err != nil {
		return Input{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return Input{}, fmt.Errorf("%s: %w", path, err)
	}
	return Input{Name: filepath.Base(path), SHA256: hex.EncodeToString(h.Sum(nil)), Bytes: n}, nil
}

// keys of the file metadata.
const (
	keySchema  = "reprise.schema"
	keyClock   = "reprise.clock"
	keyFormat  = "reprise.format"
	keyDialect = "reprise.dialect"
	keyEpoch   = "reprise.epoch_ns"
	keyOrigin  = "reprise.origin_ns"
	keyZone    = "reprise.zone"
	keyTick    = "reprise.tick_ns"
	keyCounts  = "reprise.counts"
	keyGuesses = "reprise.guesses"
	keyHistory = "reprise.history"
)

// pairs returns the metadata in a fixed order; unknown parts are left out.
func (m *Meta) pairs() ([][2]string, error) {
	out := [][2]string{{keySchema, strconv.Itoa(SchemaVersion)}, {keyClock, m.Clock}}
	add := func(key, value string) {
		if value != "" {
			out = append(out, [2]string{key, value})
		}
	}
	add(keyFormat, m.Format)
	add(keyDialect, m.Dialect)
	if v, ok := m.EpochNS.Get(); ok {
		add(keyEpoch, strconv.FormatInt(v, 10))
	}
	if v, ok := m.OriginNS.Get(); ok {
		add(keyOrigin, strconv.FormatInt(v, 10))
	}
	add(keyZone, m.Zone)
	if v, ok := m.TickNS.Get(); ok {
		add(keyTick, strconv.FormatInt(v, 10))
	}
	for _, part := range []struct {
		key   string
		value any
		empty bool
	}{
		{keyCounts, m.Counts, false},
		{keyGuesses, m.Guesses, len(m.Guesses) == 0},
		{keyHistory, m.History, len(m.History) == 0},
	} {
		if part.empty {
			continue
		}
		text, err := json.Marshal(part.value)
		if err != nil {
			return nil, fmt.Errorf("metadata %s: %w", part.key, err)
		}
		add(part.key, string(text))
	}
	return out, nil
}

// parseMeta reads metadata through lookup; ok is false if the file is no
// canonical trace.
func parseMeta(lookup func(string) (string, bool)) (m Meta, ok bool, err error) {
	version, ok := lookup(keySchema)
	if !ok {
		return m, false, nil
	}
	if v, err := strconv.Atoi(version); err != nil || v < 1 || v > SchemaVersion {
		return m, true, WithFix(fmt.Errorf("schema version %q, this program reads 1 to %d", version, SchemaVersion), "use a newer reprise")
	}
	m.Clock, _ = lookup(keyClock)
	m.Format, _ = lookup(keyFormat)
	m.Dialect, _ = lookup(keyDialect)
	m.Zone, _ = lookup(keyZone)
	for _, part := range []struct {
		key string
		to  any
	}{{keyCounts, &m.Counts}, {keyGuesses, &m.Guesses}, {keyHistory, &m.History}} {
		if text, ok := lookup(part.key); ok {
			if err := json.Unmarshal([]byte(text), part.to); err != nil {
				return m, true, fmt.Errorf("metadata %s: %w", part.key, err)
			}
		}
	}
	for _, part := range []struct {
		key string
		to  *Optional[int64]
	}{{keyEpoch, &m.EpochNS}, {keyOrigin, &m.OriginNS}, {keyTick, &m.TickNS}} {
		if text, ok := lookup(part.key); ok {
			v, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return m, true, fmt.Errorf("metadata %s: %w", part.key, err)
			}
			*part.to = Some(v)
		}
	}
	return m, true, nil
}
