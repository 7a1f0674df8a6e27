package sse

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// got is an event that outlives the call that handed it over.
type got struct {
	name, data string
	at         time.Duration
	shared     bool
}

// read feeds the reads, 1 ms apart, and returns what came out.
func read(t *testing.T, r *Reader, reads ...string) (events []got, note string) {
	t.Helper()
	emit := func(e Event) error {
		if e.Index != len(events) {
			t.Errorf("event %d has index %d", len(events), e.Index)
		}
		events = append(events, got{string(e.Name), string(e.Data), e.At, e.SharedRead})
		return nil
	}
	at := time.Duration(0)
	for _, p := range reads {
		at += time.Millisecond
		if err := r.Feed([]byte(p), at, emit); err != nil {
			t.Fatalf("read %q: %v", p, err)
		}
	}
	note, err := r.Finish(at+time.Millisecond, emit)
	if err != nil {
		t.Fatalf("finish: %v", err)
	}
	return events, note
}

func TestReaderFraming(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		reads  []string
		want   []got
		counts Counts
		note   string
	}{
		{name: "blank after the colon", reads: []string{"data: a\n\ndata:b\n\ndata:  c\n\n"},
			want: []got{{data: "a", at: ms}, {data: "b", at: ms, shared: true}, {data: " c", at: ms, shared: true}}, counts: Counts{Events: 3}},
		{name: "cr alone", reads: []string{"data: a\r\rdata: b\r\r"},
			want: []got{{data: "a", at: ms}, {data: "b", at: ms, shared: true}}, counts: Counts{Events: 2}},
		{name: "cr and lf in two reads", reads: []string{"data: a\r", "\n\r", "\ndata: b\r\n\r\n"},
			want: []got{{data: "a", at: 2 * ms}, {data: "b", at: 3 * ms}}, counts: Counts{Events: 2}},
		{name: "lines joined", reads: []string{"data: a\nda", "ta: b\ndata:\ndata: c\n", "\n"},
			want: []got{{data: "a\nb\n\nc", at: 3 * ms}}, counts: Counts{Events: 1}},
		{name: "byte order mark over reads", reads: []string{"\xEF", "\xBB", "\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n"},
			want: []got{{data: "a", at: 3 * ms}}, counts: Counts{Events: 1, Unknown: 1}},
		{name: "comments and unknown fields", reads: []string{":\n\n: ping\n\nfoo: bar\ndata: a\n: c\ndatax: no\n\n"},
			want: []got{{data: "a", at: ms}}, counts: Counts{Events: 1, Comments: 3, Unknown: 2}},
		{name: "events without data", reads: []string{"event: ping\n\nid: 7\n\nretry: 3\n\n\n\ndata:\n\ndata: \n\ndata\n\nevent: x\ndata: a\n\n"},
			want: []got{{name: "x", data: "a", at: ms}}, counts: Counts{Events: 1, Empty: 6}},
		{name: "name does not leak into the next event", reads: []string{"event: x\n\ndata: a\n\n"},
			want: []got{{data: "a", at: ms}}, counts: Counts{Events: 1, Empty: 1}},
		{name: "split anywhere", reads: []string{"data", ":", " {\"a\":\"x", " y\"}", "\n", "\n"},
			want: []got{{data: `{"a":"x y"}`, at: 6 * ms}}, counts: Counts{Events: 1}},
		{name: "open end marker", reads: []string{"data: a\n\ndata: [DONE]\n"},
			want: []got{{data: "a", at: ms}, {data: "[DONE]", at: 2 * ms}}, counts: Counts{Events: 2}, note: NoteOpenMarker},
		{name: "open end marker without a line end", reads: []string{"data: [DONE]"},
			want: []got{{data: "[DONE]", at: 2 * ms}}, counts: Counts{Events: 1}, note: NoteOpenMarker},
		{name: "half line dropped", reads: []string{"data: a\n\ndata: {\"b"},
			want: []got{{data: "a", at: ms}}, counts: Counts{Events: 1}, note: `last event was cut off and dropped: "data: {\"b"`},
		{name: "open event dropped", reads: []string{"data: {}\n"}, note: `last event was cut off and dropped: "{}"`},
		{name: "open comment is nothing", reads: []string{": pi"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Reader
			events, note := read(t, &r, c.reads...)
			if fmt.Sprint(events) != fmt.Sprint(c.want) {
				t.Errorf("events\n got %v\nwant %v", events, c.want)
			}
			if r.Counts() != c.counts {
				t.Errorf("counts %+v, want %+v", r.Counts(), c.counts)
			}
			if note != c.note {
				t.Errorf("note %q, want %q", note, c.note)
			}
		})
	}
}

func TestReaderShowsFirstUnknownLine(t *testing.T) {
	var r Reader
	events, _ := read(t, &r, "data:\n {\"id\":1}\n\n")
	if len(events) != 0 || r.FirstUnknown() != ` {"id":1}` {
		t.Errorf("events %v, first unknown line %q", events, r.FirstUnknown())
	}
}

func TestReaderLongLines(t *testing.T) {
	var r Reader
	body := "data: " + strings.Repeat("x", 70_000) + "\n\ndata: " + strings.Repeat("y", 3<<20) + "\n\n"
	for _, size := range []int{len(body), 16 << 10} {
		r.Reset()
		var reads []string
		for b := body; len(b) > 0; b = b[min(size, len(b)):] {
			reads = append(reads, b[:min(size, len(b))])
		}
		events, _ := read(t, &r, reads...)
		if len(events) != 2 || len(events[0].data) != 70_000 || len(events[1].data) != 3<<20 {
			t.Errorf("reads of %d: %d events", size, len(events))
		}
	}
}

// An event over the bound fails with the bound in the message, however it is
// cut, after the events before it.
func TestReaderBound(t *testing.T) {
	for _, body := range []string{
		"data: ok\n\ndata: " + strings.Repeat("x", 100) + "\n\n",
		"data: ok\n\n:" + strings.Repeat("x", 100),
		"data: ok\n\n" + strings.Repeat("data: 123456789\n", 10) + "\n",
	} {
		for _, size := range []int{1, 7, len(body)} {
			r := Reader{Limit: 64}
			n := 0
			var err error
			for b := []byte(body); len(b) > 0 && err == nil; b = b[min(size, len(b)):] {
				err = r.Feed(b[:min(size, len(b))], 0, func(Event) error { n++; return nil })
			}
			var limit *LimitError
			if !errors.As(err, &limit) || limit.Limit != 64 || !strings.Contains(err.Error(), "64 bytes") || n != 1 {
				t.Errorf("%.20q by %d: %d events, error %v", body, size, n, err)
			}
			if again := r.Feed([]byte("data: a\n\n"), 0, func(Event) error { n++; return nil }); again != err || n != 1 {
				t.Errorf("reading went on after the bound: %v, %d events", again, n)
			}
		}
	}
}

func TestReaderStopsAtEmitError(t *testing.T) {
	var r Reader
	stop := errors.New("stop")
	n := 0
	err := r.Feed([]byte("data: a\n\ndata: b\n\n"), 0, func(Event) error { n++; return stop })
	if err != stop || n != 1 {
		t.Errorf("%v after %d events", err, n)
	}
}

func TestLines(t *testing.T) {
	var l Lines
	var events []string
	emit := func(e Event) error {
		events = append(events, fmt.Sprintf("%s %d %v", e.Data, e.At.Milliseconds(), e.SharedRead))
		return nil
	}
	for i, p := range []string{"{\"a\":1}\n{\"b\"", ":2}\r", "\n\n{\"c\":3}\n{\"d\":", "4}"} {
		if err := l.Feed([]byte(p), time.Duration(i)*time.Millisecond, emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Finish(9*time.Millisecond, emit); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"a":1} 0 false`, `{"b":2} 2 false`, `{"c":3} 2 true`, `{"d":4} 9 false`}
	if fmt.Sprint(events) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", events, want)
	}
	l = Lines{Limit: 8}
	if err := l.Feed([]byte("123456789"), 0, emit); err == nil || !strings.Contains(err.Error(), "8 bytes") {
		t.Errorf("bound not kept: %v", err)
	}
}

// reference splits a whole body by the rules, written for clarity: the model
// that the fuzz target holds the reader against.
func reference(body string) (events []got) {
	body = strings.TrimPrefix(body, "\xEF\xBB\xBF")
	body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(body, "\n")
	var name string
	var data []string
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if d := strings.Join(data, "\n"); d != "" {
				events = append(events, got{name: name, data: d})
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		}
	}
	return events
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"data: a\n\n", "data: a\r\n\r\ndata: [DONE]\r\n\r\n", "\xEF\xBB\xBFevent: e\rdata:b\r\r",
		": ping\n\ndata\ndata:\n\nid: 1\n\ndata: x\ndata: y\n\ndata: [DONE]",
		"data: {\"a\":\"\xE4\xBD\xA0\"}\n\n \xEF\xBB\xBF\n\n",
	} {
		f.Add([]byte(s), uint64(0x0102030405060708))
	}
	f.Fuzz(func(t *testing.T, body []byte, cuts uint64) {
		want := reference(string(body))
		var notes []string
		for _, cut := range []func(i int) int{
			func(int) int { return 1 },
			func(int) int { return len(body) },
			func(i int) int { return 1 + int(cuts>>(8*(i%8)))&0xff },
		} {
			var r Reader
			var events []got
			emit := func(e Event) error {
				events = append(events, got{name: string(e.Name), data: string(e.Data)})
				return nil
			}
			rest := append([]byte(nil), body...)
			for i := 0; len(rest) > 0; i++ {
				n := min(cut(i), len(rest))
				p := bytes.Clone(rest[:n])
				if err := r.Feed(p, 0, emit); err != nil {
					t.Fatal(err)
				}
				clear(p) // the reader must not lean on the caller's buffer
				rest = rest[n:]
			}
			if fmt.Sprint(events) != fmt.Sprint(want) {
				t.Fatalf("%q:\n got %+v\nwant %+v", body, events, want)
			}
			note, err := r.Finish(0, emit)
			if err != nil {
				t.Fatal(err)
			}
			notes = append(notes, note)
		}
		if notes[0] != notes[1] || notes[0] != notes[2] {
			t.Fatalf("%q: notes depend on the cut: %q", body, notes)
		}
	})
}

func TestPiecesOfOneReadShareIt(t *testing.T) {
	var r Reader
	var l Lines
	var shared []bool
	emit := func(e Event) error { shared = append(shared, e.SharedRead); return nil }
	for _, at := range []time.Duration{1, 1, 1, 2, 2, 3} {
		if err := r.Feed([]byte("data: a\n\n"), at, emit); err != nil {
			t.Fatal(err)
		}
		if err := l.Feed([]byte("{}\n"), at, emit); err != nil {
			t.Fatal(err)
		}
	}
	want := []bool{false, false, true, true, true, true, false, false, true, true, false, false}
	if !slices.Equal(shared, want) {
		t.Errorf("got %v, want %v", shared, want)
	}
}
