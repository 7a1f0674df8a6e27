package jsonx

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"reprise/formats/source"
)

// An Object is one record of a JSON source.
type Object struct {
	Line int64           // line; the position, from 1, in an array or a sequence over any lines
	Raw  json.RawMessage // valid until the visit ends; in UTF-8: other bytes are U+FFFD, as encoding/json reads them
	Err  error           // set if there is no object at this place
}

// Objects visits the records of f, whose head is h: an object per line, one array
// of objects, or objects one after another over any lines. One record is held at
// a time. It can be called again; standard input is spooled by Head.
func Objects(f *source.Source, h *source.Head, fn func(Object) error) error {
	visit := func(o Object) error {
		if !utf8.Valid(o.Raw) {
			o.Raw = json.RawMessage(string([]rune(string(o.Raw))))
		}
		return fn(o)
	}
	if h.Container != "json array" {
		byLine, err := textLines(f, visit)
		if err != nil || byLine {
			return err
		}
	}
	return jsonValues(f, visit)
}

// textLines reads an object per line; done is false if the text is laid out in
// another way. What begins like no JSON at all is one bad object.
func textLines(f *source.Source, visit func(Object) error) (done bool, err error) {
	r, err := f.Open()
	if err != nil {
		return false, err
	}
	defer r.Close()
	lines := source.NewLines(r)
	first := true
	for {
		line, n, err := lines.Next()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return true, f.Wrap(err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if first && line[0] == '{' && line[len(line)-1] != '}' {
			return false, nil
		}
		if err := visit(Object{Line: n, Raw: line}); err != nil {
			return true, err
		}
		if first && line[0] != '{' {
			return true, nil
		}
		first = false
	}
}

// jsonValues reads objects, or one array of objects, laid out over any lines.
// What follows a place that is no JSON cannot be told apart and is not read.
func jsonValues(f *source.Source, visit func(Object) error) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	br := bufio.NewReader(r)
	d := json.NewDecoder(br)
	more, n := func() bool { return true }, int64(1)
	inArray := beginsArray(br)
	if inArray {
		if _, err := d.Token(); err != nil {
			return Named(f, err)
		}
		more = d.More
	}
	for ; more(); n++ {
		o := Object{Line: n}
		err := d.Decode(&o.Raw)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return brokenJSON(f, n, err, visit)
		}
		if err := visit(o); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return brokenJSON(f, n, err, visit)
	}
	return nil
}

// brokenJSON visits a place that is no JSON; any other error is returned.
func brokenJSON(f *source.Source, n int64, err error, visit func(Object) error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if _, syntax := errors.AsType[*json.SyntaxError](err); syntax || err == io.ErrUnexpectedEOF {
		return visit(Object{Line: n, Err: fmt.Errorf("not valid JSON: %w", err)})
	}
	return Named(f, err)
}

// Named adds the file's name unless it is there.
func Named(f *source.Source, err error) error {
	if strings.HasPrefix(err.Error(), f.Name) {
		return err
	}
	return f.Wrap(err)
}

// beginsArray tells whether the text begins with '['; it uses up blanks only.
func beginsArray(r *bufio.Reader) bool {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return false
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			r.UnreadByte()
			return c == '['
		}
	}
}
