package source

import (
	"bytes"
	"encoding/csv"
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
	Inner     map[string]string // JSON: the same for objects that are values of the first record, as "key.inner", or first elements of its arrays, as "key[].inner"
	Texts     map[string]string // JSON: short strings among these, by the same names
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
		h := &Head{Container: "json", Keys: map[string]string{}, Inner: map[string]string{}, Texts: map[string]string{}}
		if text[0] == '[' {
			h.Container = "json array"
			text = bytes.TrimLeft(text[1:], " \t\r\n")
		}
		h.firstKeys(text)
		return h
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	fields, _ := HeaderFields(line)
	if len(fields) < 2 {
		return &Head{Container: "text"}
	}
	return &Head{Container: "csv", Header: fields}
}

// HeaderFields cuts the first line of a table into its fields, without blanks
// and quotes around them, at whichever of comma, tab, semicolon and bar makes the
// most of them.
func HeaderFields(line []byte) (fields []string, comma byte) {
	text := strings.TrimRight(string(line), "\r")
	comma = ','
	for _, c := range []byte("\t;|") {
		if strings.Count(text, string(c)) > strings.Count(text, string(comma)) {
			comma = c
		}
	}
	if strings.Contains(text, `"`) {
		r := csv.NewReader(strings.NewReader(text))
		r.Comma = rune(comma)
		fields, _ = r.Read() // nil where the quotes are broken
	}
	if fields == nil {
		fields = strings.Split(text, string(comma))
	}
	for i := range fields {
		fields[i] = strings.Trim(strings.TrimSpace(fields[i]), `"`)
	}
	return fields, comma
}

// maxText is the longest string that Head.Texts keeps, in bytes.
const maxText = 64

// firstKeys looks at the first object of text, as far as text goes.
func (h *Head) firstKeys(text []byte) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err == nil && t == json.Delim('{') {
		h.object(d, "", h.Keys)
	}
}

// object reads the rest of an object whose keys go to keys under the prefix.
func (h *Head) object(d *json.Decoder, prefix string, keys map[string]string) error {
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return err
		}
		key = prefix + key
		kind, err := h.value(d, key, prefix == "")
		if kind != "" {
			keys[key] = kind
		}
		if err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// value reads a value; where deep is set it looks into it as well.
func (h *Head) value(d *json.Decoder, key string, deep bool) (kind string, err error) {
	t, err := d.Token()
	if err != nil {
		return "", err
	}
	switch v := t.(type) {
	case json.Delim:
		if v == '[' {
			return "array", h.array(d, key, deep)
		}
		if deep {
			return "object", h.object(d, key+".", h.Inner)
		}
		return "object", skip(d)
	case string:
		if len(v) <= maxText {
			h.Texts[key] = v
		}
		return "string", nil
	case float64:
		return "number", nil
	case bool:
		return "bool", nil
	}
	return "null", nil
}

// array reads the rest of an array, looking into its first element if that is an
// object.
func (h *Head) array(d *json.Decoder, key string, deep bool) error {
	if !deep || !d.More() {
		return skip(d)
	}
	t, err := d.Token()
	switch {
	case err != nil:
		return err
	case t == json.Delim('{'):
		err = h.object(d, key+"[].", h.Inner)
	case t == json.Delim('['):
		err = skip(d)
	}
	if err != nil {
		return err
	}
	return skip(d)
}

// skip reads to the end of the object or array that was begun.
func skip(d *json.Decoder) error {
	for depth := 1; depth > 0; {
		t, err := d.Token()
		if err != nil {
			return err
		}
		if v, ok := t.(json.Delim); ok {
			if v == '{' || v == '[' {
				depth++
			} else {
				depth--
			}
		}
	}
	return nil
}
