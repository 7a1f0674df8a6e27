package weka

import (
	"bytes"
	"fmt"
	"strings"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// soonAfter is how many seconds after its marker a sub-agent's first request
// comes, at most, if both are on one clock.
const soonAfter = 30

// timeSlack is how many seconds recorded times may contradict each other: most
// are whole seconds.
const timeSlack = 1

// votes count the sub-agents of a file by what their times show.
type votes struct {
	relative  int // a request before its marker, or the first at 0 under a later marker
	absolute  int // the first request follows its marker
	ambiguous int // marker at or before 0, or nothing in it, or neither of the above
}

func (v votes) agents() int { return v.relative + v.absolute + v.ambiguous }

// decide follows the published traces where nothing else is seen: all of them
// count from the marker. An absolute file has only absolute sub-agents.
func (v votes) decide() string {
	if v.absolute > 0 && v.relative == 0 {
		return Absolute
	}
	return Relative
}

func (v *votes) add(o votes) {
	v.relative += o.relative
	v.absolute += o.absolute
	v.ambiguous += o.ambiguous
}

// vote looks at the sub-agents of a session. What is broken has no say; it is
// reported when it is imported.
func (o *object) vote(v *votes) {
	if bytes.Count(o.raw, []byte("requests")) < 2 {
		return // no entry holds requests of its own; most sessions end here
	}
	_, entries, err := o.fields()
	if err != nil {
		return
	}
	for _, raw := range entries {
		f, err := o.entry(raw)
		if err != nil || !isMarker(f) {
			continue
		}
		marker, ok, err := f.Float("t")
		if !ok || err != nil {
			continue
		}
		nested, err := takeRequests(f)
		if err != nil {
			continue
		}
		var times []float64
		for _, raw := range nested {
			if r, err := o.entry(raw); err == nil {
				if t, ok, err := r.Float("t"); ok && err == nil {
					times = append(times, t)
				}
			}
		}
		v.subagent(marker, times)
	}
}

func (v *votes) subagent(marker float64, times []float64) {
	if len(times) == 0 || marker <= 0 {
		v.ambiguous++
		return
	}
	earliest := times[0]
	for _, t := range times {
		earliest = min(earliest, t)
	}
	switch first := times[0]; {
	case earliest < marker-timeSlack, first == 0:
		v.relative++
	case first <= marker+soonAfter:
		v.absolute++
	default:
		v.ambiguous++
	}
}

func isMarker(f jsonx.Row) bool {
	_, nested := f["requests"]
	return nested || string(f["type"]) == `"subagent"`
}

// decided notes the basis of a file that has sub-agents.
func (s *state) decided(basis, file string, v votes) {
	if v.agents() == 0 {
		return
	}
	w := s.why[basis]
	w.add(v)
	s.why[basis] = w
	s.files[basis] = append(s.files[basis], file)
}

// guessNested says per basis which files have it and why.
func (s *state) guessNested(m *trace.Meta) {
	const what, flag = "time basis of sub-agents", "--nested-time"
	if s.im.NestedTime != "" {
		m.Guesses = append(m.Guesses, trace.Guess{What: what, Value: s.im.NestedTime, Evidence: "given", Flag: flag})
		return
	}
	for _, basis := range []string{Relative, Absolute} {
		files := s.files[basis]
		if len(files) == 0 {
			continue
		}
		v := s.why[basis]
		names := files
		if len(names) > 5 {
			names = append(names[:5:5], fmt.Sprintf("and %d more files", len(files)-5))
		}
		evidence := fmt.Sprintf("%s: of %d sub-agents %d begin at 0 or before their marker's t, %d begin right after it, %d show neither",
			strings.Join(names, ", "), v.agents(), v.relative, v.absolute, v.ambiguous)
		m.Guesses = append(m.Guesses, trace.Guess{What: what, Value: basis, Evidence: evidence, Flag: flag})
	}
}
