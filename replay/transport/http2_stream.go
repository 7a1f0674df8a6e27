package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A stream is an exchange on its way over HTTP/2, in a goroutine of its own.
type stream struct {
	h      *HTTP2
	x      *Exchange
	ctx    context.Context // of the exchange; its cause is a passed limit, or what Cut said
	cancel context.CancelCauseFunc
	timer  *time.Timer
	body   outgoing

	mu   sync.Mutex
	over bool // x is no longer ours
}

// A passed limit is why the context of a stream ends.
type passed struct{ which limit }

func (passed) Error() string { return "a limit has passed" }

// An ending is an error that says how the exchange ends.
type ending struct {
	end End
	error
}

func newStream(h *HTTP2, x *Exchange) *stream {
	s := &stream{h: h, x: x}
	s.ctx, s.cancel = context.WithCancelCause(h.ctx)
	return s
}

// exchange does all of x, and hands it on.
func (s *stream) exchange() {
	err := s.connectAndSend()
	at := s.h.now()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	x := s.x
	x.BytesOut = s.body.release()
	x.End, x.Err = s.ended(err)
	x.Ended = at
	s.cancel(nil)
	x.Sink.Done(x)
}

// ended says how the exchange has ended.
func (s *stream) ended(err error) (End, error) {
	if err == nil {
		return EndClean, nil
	}
	if e, ok := errors.AsType[ending](err); ok {
		return e.end, e.error
	}
	cause := context.Cause(s.ctx)
	if p, ok := errors.AsType[passed](cause); ok {
		return s.x.Limits.passed(p.which)
	}
	if cause != nil {
		return EndCut, cause
	}
	return broken(err)
}

// sendTries bounds how often a connection is looked for that takes the request:
// each may be closing while it is chosen.
const sendTries = 4

// connectAndSend finds a connection and does the exchange on it. A request that
// the server said it had not seen (GOAWAY, RFC 9113 section 6.8) is sent again,
// once, which the exchange tells; one that never left is sent elsewhere.
func (s *stream) connectAndSend() error {
	x := s.x
	for try := 1; ; try++ {
		cc, found, err := s.connect()
		if err != nil {
			return err
		}
		x.Connected, x.HasConnected, x.Reused = s.h.now(), true, found
		err = s.roundTrip(cc)
		switch {
		case err == nil || s.ctx.Err() != nil || x.headSeen || try == sendTries:
			return err
		case strings.Contains(err.Error(), "client conn not usable"):
		case strings.Contains(err.Error(), "graceful shutdown GOAWAY") && !x.Resent:
			x.Resent = true
		default:
			return err
		}
	}
}

// connect waits for a connection, no longer than the exchange may last.
func (s *stream) connect() (*http.ClientConn, bool, error) {
	ctx := s.ctx
	if total := s.x.Limits.Total; total > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, total, fmt.Errorf("no connection within %v", total))
		defer cancel()
		ctx = limited
	}
	cc, found, err := s.h.acquire(ctx)
	switch {
	case err == nil && found:
		s.h.found.Add(1)
	case err != nil && s.ctx.Err() != nil:
		return nil, false, context.Cause(s.ctx)
	case err != nil && ctx.Err() != nil:
		return nil, false, ending{EndTimeout, context.Cause(ctx)}
	case err != nil:
		return nil, false, ending{EndRefused, err}
	}
	return cc, found, err
}

// roundTrip sends the request and reads the answer to its end.
func (s *stream) roundTrip(cc *http.ClientConn) error {
	req, err := s.request()
	if err != nil {
		cc.Release()
		return ending{EndProtocol, err}
	}
	x := s.x
	x.sent.Store(int64(s.h.now()) + 1)
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Hour, s.watch) // set right at once
	}
	s.watch()
	resp, err := cc.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	at := s.h.now()
	x.FirstByte, x.HasByte = at, true
	x.lastByte.Store(int64(at))
	x.headSeen = true
	x.Sink.OnHead(headOf(resp), at)
	return s.read(resp.Body)
}

var bodyBuffers = sync.Pool{New: func() any { b := make([]byte, readSize); return &b }}

func (s *stream) read(body io.Reader) error {
	buf := bodyBuffers.Get().(*[]byte)
	defer bodyBuffers.Put(buf)
	x := s.x
	for {
		n, err := body.Read(*buf)
		if n > 0 {
			at := s.h.now()
			x.lastByte.Store(int64(at))
			x.BytesIn += int64(n)
			if limit := x.Limits.MaxBytes; limit > 0 && x.BytesIn > limit {
				return ending{EndProtocol, fmt.Errorf("response is longer than %d bytes", limit)}
			}
			if err := x.Sink.OnBody((*buf)[:n], at); err != nil {
				return ending{EndProtocol, err}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// request makes of the bytes of x, which are those of HTTP/1.1, a request for
// net/http.
func (s *stream) request() (*http.Request, error) {
	head, body, ok := bytes.Cut(s.x.Request, []byte("\r\n\r\n"))
	if !ok {
		return nil, errors.New("request without a head")
	}
	head = s.x.Request[:len(head)+4]
	req, err := http.ReadRequest(bufio.NewReaderSize(bytes.NewReader(head), 512))
	if err != nil {
		return nil, err
	}
	req.RequestURI = ""
	req.URL.Scheme, req.URL.Host = s.h.scheme(), req.Host
	req.Header.Del("Content-Length")
	s.body.fill(body)
	req.Body, req.ContentLength = &s.body, int64(len(body))
	return req.WithContext(httptrace.WithClientTrace(s.ctx, &httptrace.ClientTrace{WroteRequest: s.wrote})), nil
}

// wrote is told by net/http that the whole request has gone out.
func (s *stream) wrote(info httptrace.WroteRequestInfo) {
	at := s.h.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if info.Err == nil && !s.over {
		s.x.SentEnd, s.x.HasSentEnd = at, true
		s.body.release()
		s.x.written.Store(true)
	}
}

// watch ends the exchange when one of its limits has passed, or looks again when
// the next may have.
func (s *stream) watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	at, which := s.x.next()
	if which == noLimit {
		return
	}
	if left := at - s.h.now(); left > 0 {
		s.timer.Reset(left)
		return
	}
	s.cancel(passed{which})
}

func headOf(resp *http.Response) *Head {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return &Head{
		Status: resp.StatusCode, Type: strings.ToLower(strings.TrimSpace(kind)), Encoding: strings.ToLower(resp.Header.Get("Content-Encoding")),
		RetryAfter: resp.Header.Get("Retry-After"), Location: resp.Header.Get("Location"),
	}
}

// An outgoing is the body of a request, in memory that goes to others when the
// exchange is over, whatever net/http still does then.
type outgoing struct {
	mu   sync.Mutex
	p    []byte
	gone bool
	n    int64 // read
}

func (o *outgoing) fill(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.p, o.gone, o.n = p, false, 0
}

// Read implements io.Reader.
func (o *outgoing) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.gone:
		return 0, net.ErrClosed
	case len(o.p) == 0:
		return 0, io.EOF
	}
	n := copy(p, o.p)
	o.p = o.p[n:]
	o.n += int64(n)
	return n, nil
}

// Close implements io.Closer.
func (o *outgoing) Close() error { o.release(); return nil }

// release lets go of the memory and returns how many bytes were read.
func (o *outgoing) release() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.p, o.gone = nil, true
	return o.n
}

// What net/http says of streams and connections that break; its types of errors
// are not exported.
var (
	streamError = regexp.MustCompile(`stream error: stream ID \d+; ([A-Z_0-9]+)(.*)`)
	goAway      = regexp.MustCompile(`server sent GOAWAY.*ErrCode=([A-Z_0-9]+)`)
)

// broken says how an exchange ended that the connection or the server broke, in
// words that are the same for all such exchanges.
func broken(err error) (End, error) {
	text := err.Error()
	if m := streamError.FindStringSubmatch(text); m != nil {
		if strings.Contains(m[2], "received from peer") {
			return EndReset, fmt.Errorf("the server reset the stream (RST_STREAM %s)", m[1])
		}
		return EndProtocol, fmt.Errorf("HTTP/2 stream error %s%s", m[1], m[2])
	}
	if m := goAway.FindStringSubmatch(text); m != nil {
		return EndReset, fmt.Errorf("the server closed the connection (GOAWAY %s)", m[1])
	}
	switch {
	case strings.Contains(text, "graceful shutdown GOAWAY"):
		return EndReset, errors.New("the server closed the connection (GOAWAY) before it took the request")
	case strings.Contains(text, "malformed HTTP response"), strings.Contains(text, "PROTOCOL_ERROR"), strings.Contains(text, "frame too large"):
		return EndProtocol, fmt.Errorf("not an HTTP/2 server: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return EndReset, ErrTruncated
	}
	return EndReset, plain(err)
}
