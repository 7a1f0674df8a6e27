package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock/pipe"
)

// A heard is what came of one exchange.
type heard struct {
	head  Head
	body  strings.Builder
	reads int
	done  chan struct{}
	seen  chan struct{} // closed with the first bytes
	fail  error         // what OnBody returns
}

func (s *heard) OnSent() {}

func (s *heard) OnHead(h *Head, _ time.Duration) { s.head = *h }
func (s *heard) OnBody(p []byte, _ time.Duration) error {
	if s.reads++; s.reads == 1 {
		close(s.seen)
	}
	s.body.Write(p)
	return s.fail
}
func (s *heard) Done(*Exchange) { close(s.done) }

// asks makes an exchange in the bytes of HTTP/1.1.
func asks(path, body string, l Limits) (*Exchange, *heard) {
	s := &heard{done: make(chan struct{}), seen: make(chan struct{})}
	text := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nX-Request-Id: 7\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	return &Exchange{Request: []byte(text), Sink: s, Limits: l}, s
}

// h2c serves HTTP/2 without TLS and returns a client for it.
func h2c(t *testing.T, conns int, streams int, handler http.HandlerFunc) *HTTP2 {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	server.Start()
	t.Cleanup(server.Close)
	begin := time.Now()
	h := NewHTTP2(false, conns, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
	}, func() time.Duration { return time.Since(begin) })
	t.Cleanup(h.Close)
	return h
}

// inBubble serves HTTP/2 without TLS over connections in memory, so that times are those
// of a synctest bubble, and returns a client for it.
func inBubble(t *testing.T, server *http.Server) *HTTP2 {
	t.Helper()
	server.Protocols = new(http.Protocols)
	server.Protocols.SetUnencryptedHTTP2(true)
	l := pipe.Listen()
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	begin := time.Now()
	h := NewHTTP2(false, 1, l.Dial, func() time.Duration { return time.Since(begin) })
	t.Cleanup(func() { h.Close(); server.Close(); <-served })
	return h
}

func TestHTTP2Exchange(t *testing.T) {
	h := h2c(t, 1, 0, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if r.ProtoMajor != 2 || r.Header.Get("X-Request-Id") != "7" || r.Host != "h" || r.ContentLength != int64(len(text)) {
			t.Errorf("HTTP/%d, host %s, length %d of %d, %v", r.ProtoMajor, r.Host, r.ContentLength, len(text), r.Header)
		}
		w.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(429)
		for i := range 3 {
			fmt.Fprintf(w, "part %d of %d\n", i, len(text))
			w.(http.Flusher).Flush()
		}
	})
	for i := range 3 {
		long := strings.Repeat("x", 200_000)
		x, s := asks("/v1?q=1", long, Limits{Total: time.Minute})
		h.Send(x)
		<-s.done
		if x.End != EndClean || x.Err != nil || s.head != (Head{Status: 429, Type: "text/event-stream", RetryAfter: "3"}) {
			t.Errorf("ended %d (%v), head %+v", x.End, x.Err, s.head)
		}
		if want := "part 0 of 200000\npart 1 of 200000\npart 2 of 200000\n"; s.body.String() != want || x.BytesIn != int64(len(want)) || x.BytesOut != 200_000 {
			t.Errorf("%q, %d bytes in, %d out", s.body.String(), x.BytesIn, x.BytesOut)
		}
		sent, _ := x.Sent()
		if !x.HasConnected || !x.HasSentEnd || !x.HasByte || x.Connected > sent || sent > x.SentEnd || x.FirstByte > x.Ended || x.Reused != (i > 0) {
			t.Errorf("connected %v (%v), sent %v to %v, first byte %v, ended %v, reused %v", x.Connected, x.HasConnected, sent, x.SentEnd, x.FirstByte, x.Ended, x.Reused)
		}
	}
	if opened, found := h.Connections(); opened != 1 || found != 2 {
		t.Errorf("%d connections opened, found by %d", opened, found)
	}
}

// TestHTTP2Connections: so many are opened as asked for, and more when the
// server takes no more streams on them; no exchange waits for another.
func TestHTTP2Connections(t *testing.T) {
	for _, c := range []struct{ conns, streams, requests, opened int }{
		{1, 250, 40, 1}, {3, 250, 40, 3}, {1, 10, 40, 4},
	} {
		var wait sync.WaitGroup
		wait.Add(c.requests)
		h := h2c(t, c.conns, c.streams, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/all" {
				wait.Done()
				wait.Wait() // all are here at once
			}
		})
		x, s := asks("/first", "b", Limits{Total: time.Minute})
		h.Send(x)
		<-s.done // the server has said what it takes
		var all []*heard
		for range c.requests {
			x, s := asks("/all", "b", Limits{Total: time.Minute})
			h.Send(x)
			all = append(all, s)
		}
		for _, s := range all {
			<-s.done
			if s.head.Status != 200 {
				t.Fatalf("%+v: status %d", c, s.head.Status)
			}
		}
		full := c.conns*c.streams < c.requests // then one more, if the first stream is not given back yet
		if opened, _ := h.Connections(); int(opened) != c.opened && !(full && int(opened) == c.opened+1) {
			t.Errorf("%+v: %d connections", c, opened)
		}
	}
}

// TestHTTP2Endings has one of each.
func TestHTTP2Endings(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for _, c := range []struct {
		name    string
		limits  Limits
		fail    error
		handler http.HandlerFunc
		end     End
		cause   string
	}{
		{"total", Limits{Total: 50 * time.Millisecond}, nil, hang, EndTimeout, "not complete within 50ms"},
		{"bytes", Limits{Bytes: 50 * time.Millisecond}, nil, hang, EndTimeout, "no byte for 50ms"},
		{"token", Limits{Token: 50 * time.Millisecond}, nil, hang, EndTimeout, "no token for 50ms"},
		{"cancelled", Limits{Cancel: 50 * time.Millisecond, HasCancel: true}, nil, hang, EndCancelled, "cancelled after 50ms, on purpose"},
		{"too long", Limits{MaxBytes: 1000}, nil, func(w http.ResponseWriter, r *http.Request) {
			w.Write(make([]byte, 2000))
		}, EndProtocol, "response is longer than 1000 bytes"},
		{"sink", Limits{}, errors.New("no JSON"), hang, EndProtocol, "no JSON"},
		{"reset in mid-stream", Limits{}, nil, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, EndReset, "the server reset the stream (RST_STREAM INTERNAL_ERROR)"},
		{"reset at once", Limits{}, nil, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
			EndReset, "the server reset the stream (RST_STREAM INTERNAL_ERROR)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := inBubble(t, &http.Server{Handler: c.handler})
			x, s := asks("/", "b", c.limits)
			s.fail = c.fail
			h.Send(x)
			<-s.done
			if x.End != c.end || x.Err == nil || x.Err.Error() != c.cause {
				t.Errorf("%s: ended %d: %v", c.name, x.End, x.Err)
			}
			if want := max(c.limits.Total, c.limits.Bytes, c.limits.Token, c.limits.Cancel); x.Ended != want {
				t.Errorf("%s: ended at %v, want %v", c.name, x.Ended, want)
			}
		})
	}
}

// TestHTTP2Cut ends what is in flight, and what comes after.
func TestHTTP2Cut(t *testing.T) {
	h := h2c(t, 1, 0, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	x, s := asks("/", "b", Limits{})
	h.Send(x)
	<-s.seen
	h.Cut(errors.New("enough"))
	<-s.done
	later, s2 := asks("/", "b", Limits{})
	h.Send(later)
	<-s2.done
	for _, x := range []*Exchange{x, later} {
		if x.End != EndCut || x.Err.Error() != "enough" {
			t.Errorf("ended %d: %v", x.End, x.Err)
		}
	}
}

// TestHTTP2Refused: nobody listens; the connection breaks; the server speaks
// another protocol; a dial that lasts too long.
func TestHTTP2Refused(t *testing.T) {
	old := httptest.NewServer(http.NotFoundHandler())
	defer old.Close()
	old.Config.ErrorLog = nil
	closing := func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			io.CopyN(io.Discard, far, 100)
			far.Close()
		}()
		return near, nil
	}
	for _, c := range []struct {
		name  string
		limit time.Duration
		dial  func(context.Context) (net.Conn, error)
		end   End
		cause string
	}{
		{"refused", time.Minute, func(context.Context) (net.Conn, error) { return nil, errors.New("connection refused") }, EndRefused, "connection refused"},
		{"slow", 50 * time.Millisecond, func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, context.Cause(ctx) }, EndTimeout, "no connection within 50ms"},
		{"HTTP/1.1", time.Minute, func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", old.Listener.Addr().String())
		}, EndProtocol, "not an HTTP/2 server"},
		{"closed", time.Minute, closing, EndReset, "connection "},
	} {
		begin := time.Now()
		h := NewHTTP2(false, 1, c.dial, func() time.Duration { return time.Since(begin) })
		x, s := asks("/", "b", Limits{Total: c.limit})
		h.Send(x)
		<-s.done
		h.Close()
		// an old server says what it is and hangs up; where a write finds that out before
		// its words are read, the connection broke
		raced := c.end == EndProtocol && x.End == EndReset && strings.Contains(x.Err.Error(), "connection broke")
		if (x.End != c.end || !strings.Contains(x.Err.Error(), c.cause)) && !raced {
			t.Errorf("%s: ended %d: %v", c.name, x.End, x.Err)
		}
	}
}

// TestHTTP2GoAway: a server that stops takes no further request, and answers
// those that it has; the next one opens a new connection.
func TestHTTP2GoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server *http.Server
		var stopping sync.WaitGroup
		t.Cleanup(stopping.Wait)
		server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stopping.Go(func() { server.Shutdown(context.Background()) })
			time.Sleep(300 * time.Millisecond) // the client knows by then
			io.WriteString(w, "answered")
		})}
		h := inBubble(t, server)
		x, s := asks("/", "b", Limits{Total: 20 * time.Second})
		h.Send(x)
		<-s.done
		if x.End != EndClean || s.body.String() != "answered" {
			t.Errorf("ended %d: %v, %q", x.End, x.Err, s.body.String())
		}
		x, s = asks("/", "b", Limits{Total: 20 * time.Second})
		h.Send(x)
		<-s.done
		if x.End != EndRefused {
			t.Errorf("after the server has stopped: ended %d: %v", x.End, x.Err)
		}
	})
}

// TestHTTP2Words: the same breakage has the same words.
func TestHTTP2Words(t *testing.T) {
	for text, want := range map[string]string{
		`stream error: stream ID 7; REFUSED_STREAM; received from peer`:                                              "the server reset the stream (RST_STREAM REFUSED_STREAM)",
		`http2: server sent GOAWAY and closed the connection; LastStreamID=3, ErrCode=ENHANCE_YOUR_CALM, debug="go"`: "the server closed the connection (GOAWAY ENHANCE_YOUR_CALM)",
		`http2: Transport received Server's graceful shutdown GOAWAY`:                                                "the server closed the connection (GOAWAY) before it took the request",
		`stream error: stream ID 9; PROTOCOL_ERROR`:                                                                  "HTTP/2 stream error PROTOCOL_ERROR",
		`http2: client connection lost`:                                                                              "connection broke: http2: client connection lost",
	} {
		if _, err := broken(errors.New(text)); err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
