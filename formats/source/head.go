package source

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

// headBytes is how much of a text is looked at to tell its format.
const headBytes = 256 << 10

// A Head is what the beginning of a source shows.
type Head struct {
	Container string            // "parquet", "arrow", "json array", "json", "csv" or "text"
	Keys      map[string]string // JSON: keys of the first record seen within the head, with the kind of the value: object, array, string, number, bool, null; Parquet and Arrow: column names with ""
	Header    []string          // CSV: fields of the first line
	Canonical bool              // a Parquet file that is a canonical trace already
}

// Has tells whether all keys are there.
func (h *Head) Has(keys ...string) bool {
	for _, k := range keys {
		if _, ok := h.Keys[k]; !ok {
			return false
		}
	}
	return true
}

// Head looks at the beginning of the source. What can be read only once
// is spooled to a temporary file first, so that it can still be read.
func (s *Source) Head() (*Head, error) {
	if s.once() && s.temp == nil {
		if err := s.spool(); err != nil {
			return nil, err
		}
	}
	r, err := s.Open()
	if err != nil {
		return nil, err
	}
	head := make([]byte, headBytes)
	n, err := io.ReadFull(r, head)
	r.Close()
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return s.parquetHead()
	case bytes.HasPrefix(head, []byte("ARROW1")):
		return s.arrowHead()
	}
	return textHead(head), nil
}

func (s *Source) parquetHead() (*Head, error) {
	r, size, err := s.ReaderAt()
	if err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, trace.WithFix(s.Wrap(err), "the file begins like Parquet but cannot be read as such; fetch it again")
	}
	h := &Head{Container: "parquet", Keys: map[string]string{}}
	for _, c := range f.Root().Columns() {
		h.Keys[c.Name()] = ""
	}
	_, h.Canonical = f.Lookup("reprise.schema")
	return h, nil
}

func (s *Source) arrowHead() (*Head, error) {
	r, size, err := s.ReaderAt()
	if err != nil {
		return nil, err
	}
	if err := VerifyArrowFile(r, size); err != nil {
		return nil, trace.WithFix(s.Wrap(err), "the file begins like Arrow IPC but cannot be read as such; fetch it again")
	}
	f, err := ipc.NewFileReader(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, trace.WithFix(s.Wrap(err), "the file begins like Arrow IPC but cannot be read as such; fetch it again")
	}
	defer f.Close()
	h := &Head{Container: "arrow", Keys: map[string]string{}}
	for _, c := range f.Schema().Fields() {
		h.Keys[c.Name] = ""
	}
	return h, nil
}

func textHead(head []byte) *Head {
	text := bytes.TrimLeft(head, " \t\r\n")
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		h := &Head{Container: "json", Keys: map[string]string{}}
		if text[0] == '[' {
			h.Container = "json array"
			text = bytes.TrimLeft(text[1:], " \t\r\n")
		}
		firstKeys(text, h.Keys)
		return h
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	fields := strings.Split(strings.TrimRight(string(line), "\r"), ",")
	for i := range fields {
		fields[i] = strings.Trim(strings.TrimSpace(fields[i]), `"`)
	}
	if len(fields) < 2 {
		return &Head{Container: "text"}
	}
	return &Head{Container: "csv", Header: fields}
}

// firstKeys fills keys from the first object of text, as far as text goes.
func firstKeys(text []byte, keys map[string]string) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return
	}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return
		}
		kind, err := skipValue(d)
		if kind != "" {
			keys[key] = kind
		}
		if err != nil {
			return
		}
	}
}

func skipValue(d *json.Decoder) (kind string, err error) {
	t, err := d.Token()
	if err != nil {
		return "", err
	}
	switch v := t.(type) {
	case json.Delim:
		kind = "object"
		if v == '[' {
			kind = "array"
		}
		for depth := 1; depth > 0; {
			t, err := d.Token()
			if err != nil {
				return kind, err
			}
			if v, ok := t.(json.Delim); ok {
				if v == '{' || v == '[' {
					depth++
				} else {
					depth--
				}
			}
		}
	case string:
		kind = "string"
	case float64:
		kind = "number"
	case bool:
		kind = "bool"
	default:
		kind = "null"
	}
	return kind, nil
}
