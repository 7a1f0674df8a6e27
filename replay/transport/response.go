// Package transport is an HTTP/1.1 client on net.Conn, made for measuring: one
// goroutine reads each connection, every read is time-stamped once, body bytes
// are handed on as they come, and nothing is retried or guessed. An HTTP2 does the
// same with the standard library's client, as well as that lets it.
package transport

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxHeader is the most bytes that status line and headers of a response may
// take.
const MaxHeader = 256 << 10

// A Head is the status line and the headers that matter of a response.
type Head struct {
	Status     int
	Reason     string
	Type       string // Content-Type, lower case, without parameters
	Encoding   string // Content-Encoding
	RetryAfter string
	Location   string
	Close      bool // the connection ends with this response
}

// A Parser takes the bytes of one response as they are read, RFC 9112 sections
// 4 to 7: interim responses, Content-Length, chunked coding with extensions and
// trailers, and bodies that end with the connection. Anything odd is an error,
// never a guess. The zero value is ready; NoBody must be set for answers to HEAD.
type Parser struct {
	NoBody bool

	state   state
	line    []byte // of a line that reads cut
	headLen int
	head    Head
	left    int64 // bytes left of the body or of the chunk
	chunked bool
	old     bool  // HTTP/1.0
	length  int64 // -1 = none
	lengths int
}

type state uint8

const (
	inStatus state = iota
	inHeader
	inBody
	inUntilClose
	inChunkSize
	inChunkData
	inChunkEnd
	inTrailer
	done
)

// ErrTruncated reports a connection that closed within a response.
var ErrTruncated = errors.New("connection closed in mid-response")

// Feed takes the bytes of one read. It calls body for each run of body bytes,
// valid during the call. It returns how many bytes belonged to this response;
// fewer than len(p) only when it is done.
func (r *Parser) Feed(p []byte, body func([]byte) error) (int, error) {
	used := 0
	for used < len(p) && r.state != done {
		if r.state == inChunkSize && len(r.line) == 0 {
			size, n := plainSize(p[used:])
			from, to := used+n, used+n+int(size)
			if size > 0 && to+2 <= len(p) && p[to] == '\r' && p[to+1] == '\n' { // all of a chunk, as most reads bring
				used = to + 2
				if err := body(p[from:to]); err != nil {
					return used, err
				}
				continue
			}
		}
		n, err := r.step(p[used:], body)
		used += n
		if err != nil {
			return used, err
		}
	}
	return used, nil
}

func (r *Parser) step(p []byte, body func([]byte) error) (int, error) {
	switch r.state {
	case inBody, inChunkData:
		n := int(min(int64(len(p)), r.left))
		r.left -= int64(n)
		if r.left == 0 {
			if r.state == inBody {
				r.state = done
			} else {
				r.state = inChunkEnd
			}
		}
		return n, body(p[:n])
	case inUntilClose:
		return len(p), body(p)
	case inChunkSize:
		if size, n := plainSize(p); n > 0 && len(r.line) == 0 {
			r.beginChunk(size)
			return n, nil
		}
	case inChunkEnd:
		if len(p) >= 2 && p[0] == '\r' && p[1] == '\n' && len(r.line) == 0 {
			r.state = inChunkSize
			return 2, nil
		}
	}
	line, n, ok := r.takeLine(p)
	if !ok {
		return n, r.bound(n)
	}
	if err := r.bound(n); err != nil {
		return n, err
	}
	err := r.takeLineIn(line)
	r.line = r.line[:0]
	return n, err
}

func (r *Parser) bound(n int) error {
	r.headLen += n
	if r.state <= inHeader && r.headLen > MaxHeader || len(r.line) > MaxHeader {
		return fmt.Errorf("response headers are longer than %d bytes", MaxHeader)
	}
	return nil
}

// takeLine returns a line without its end; ok is false if p does not end it.
func (r *Parser) takeLine(p []byte) (line []byte, n int, ok bool) {
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		r.line = append(r.line, p...)
		return nil, len(p), false
	}
	line = p[:i]
	if len(r.line) > 0 {
		r.line = append(r.line, line...)
		line = r.line
	}
	return bytes.TrimSuffix(line, []byte("\r")), i + 1, true
}

func (r *Parser) takeLineIn(line []byte) error {
	switch r.state {
	case inStatus:
		return r.statusLine(line)
	case inHeader:
		if len(line) == 0 {
			return r.endHeaders()
		}
		return r.header(line)
	case inChunkSize:
		return r.chunkSize(line)
	case inChunkEnd:
		if len(line) != 0 {
			return fmt.Errorf("chunk of the body is followed by %q, want a line end", clip(line))
		}
		r.state = inChunkSize
	case inTrailer:
		if len(line) == 0 {
			r.state = done
		}
	}
	return nil
}

func (r *Parser) statusLine(line []byte) error {
	version, rest, _ := bytes.Cut(line, []byte(" "))
	code, reason, _ := bytes.Cut(rest, []byte(" "))
	status, ok := statusCode(code)
	if r.old = string(version) == "HTTP/1.0"; !ok || !r.old && string(version) != "HTTP/1.1" {
		return fmt.Errorf("not an HTTP/1 response: it begins with %q", clip(line))
	}
	r.head = Head{Status: status, Reason: usual(reason), Close: r.old}
	r.chunked, r.length, r.lengths = false, -1, 0
	r.state = inHeader
	return nil
}

func statusCode(b []byte) (n int, ok bool) {
	if len(b) != 3 || b[0] == '0' {
		return 0, false
	}
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return n, true
}

// usual returns text as a string, without allocation if it is what most servers
// send.
func usual(text []byte) string {
	switch string(text) {
	case "OK":
		return "OK"
	case "text/event-stream":
		return "text/event-stream"
	case "application/json":
		return "application/json"
	case "chunked":
		return "chunked"
	case "keep-alive":
		return "keep-alive"
	}
	return string(text)
}

func (r *Parser) header(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
		return fmt.Errorf("malformed response header %q", clip(line))
	}
	which := known(name)
	if which == "content-type" {
		value, _, _ = bytes.Cut(value, []byte(";"))
	}
	if value = bytes.Trim(value, " \t"); which == "" {
		return nil
	}
	text := usual(value)
	switch which {
	case "content-length":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || (r.lengths > 0 && n != r.length) {
			return fmt.Errorf("response header Content-Length: %q", text)
		}
		r.length = n
		r.lengths++
	case "transfer-encoding":
		if !strings.EqualFold(text, "chunked") {
			return fmt.Errorf("response header Transfer-Encoding: %q is not supported", text)
		}
		r.chunked = true
	case "content-type":
		r.head.Type = strings.ToLower(text)
	case "content-encoding":
		r.head.Encoding = strings.ToLower(text)
	case "retry-after":
		r.head.RetryAfter = text
	case "location":
		r.head.Location = text
	case "connection":
		switch lower := strings.ToLower(text); {
		case strings.Contains(lower, "close"):
			r.head.Close = true
		case strings.Contains(lower, "keep-alive"):
			r.head.Close = false
		}
	}
	return nil
}

// known returns the name of a header that matters, in lower case; "" of another.
func known(name []byte) string {
	for _, k := range [...]string{"content-length", "transfer-encoding", "content-type", "content-encoding", "retry-after", "location", "connection"} {
		if len(k) == len(name) && strings.EqualFold(k, string(name)) {
			return k
		}
	}
	return ""
}

func (r *Parser) endHeaders() error {
	if r.head.Status < 200 && r.head.Status != 101 {
		r.state = inStatus // an interim response; the real one follows
		return nil
	}
	if r.old && r.chunked {
		return errors.New("chunked coding in an HTTP/1.0 response") // RFC 9112 section 6.1: faulty framing
	}
	switch {
	case r.NoBody || r.head.Status == 204 || r.head.Status == 304:
		r.state = done
	case r.chunked:
		r.state = inChunkSize
	case r.length == 0:
		r.state = done
	case r.length > 0:
		r.state, r.left = inBody, r.length
	default:
		r.state, r.head.Close = inUntilClose, true
	}
	return nil
}

func (r *Parser) chunkSize(line []byte) error {
	size, _, _ := bytes.Cut(line, []byte(";"))
	size = bytes.TrimRight(size, " \t")
	if len(size) == 0 || len(size) > 15 {
		return fmt.Errorf("malformed chunk size %q", clip(line))
	}
	n, ok := hexadecimal(size)
	if !ok {
		return fmt.Errorf("malformed chunk size %q", clip(line))
	}
	r.beginChunk(n)
	return nil
}

func (r *Parser) beginChunk(size int64) {
	if r.left = size; size == 0 {
		r.state = inTrailer
	} else {
		r.state = inChunkData
	}
}

// plainSize reads a line that holds the size of a chunk in few digits and nothing
// else, as nearly all do; n is 0 for any other.
func plainSize(p []byte) (size int64, n int) {
	for i, d := range p[:min(len(p), 10)] {
		switch {
		case '0' <= d && d <= '9':
			size = size<<4 | int64(d-'0')
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			size = size<<4 | int64(d|0x20-'a'+10)
		case d == '\r' && i > 0 && i+1 < len(p) && p[i+1] == '\n':
			return size, i + 2
		default:
			return 0, 0
		}
	}
	return 0, 0
}

// hexadecimal reads at most 15 digits.
func hexadecimal(b []byte) (n int64, ok bool) {
	for _, d := range b {
		switch {
		case '0' <= d && d <= '9':
			n = n<<4 | int64(d-'0')
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			n = n<<4 | int64(d|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// Head returns the status and headers, and whether they are complete. They are
// valid until Reset.
func (r *Parser) Head() (*Head, bool) { return &r.head, r.state > inHeader }

// Done tells whether the response is complete.
func (r *Parser) Done() bool { return r.state == done }

// CloseRead takes note that the connection closed. It is an error unless the
// body was one that ends so.
func (r *Parser) CloseRead() error {
	if r.state == inUntilClose {
		r.state = done
	}
	if r.state == done {
		return nil
	}
	if r.state == inStatus && len(r.line) == 0 {
		return errors.New("connection closed before the response")
	}
	return ErrTruncated
}

// Reset readies the parser for the next response.
func (r *Parser) Reset() { *r = Parser{line: r.line[:0]} }

func clip(b []byte) string {
	if len(b) > 64 {
		b = b[:64]
	}
	return string(b)
}
