package pipe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestBytesArriveInOrder(t *testing.T) {
	a, b := New()
	sent := make([]byte, 3*BufferBytes+17)
	for i := range sent {
		sent[i] = byte(i * i >> 3)
	}
	go func() {
		defer a.Close()
		for part := sent; len(part) > 0; {
			n := min(len(part), 7001)
			if _, err := a.Write(part[:n]); err != nil {
				t.Error(err)
				return
			}
			part = part[n:]
		}
	}()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("read %d bytes of %d, equal %v, error %v", len(got), len(sent), bytes.Equal(got, sent), err)
	}
}

func TestWriteWaitsWhenTheBufferIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := New()
		if err := a.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := a.Write(make([]byte, BufferBytes+1))
		if n != BufferBytes || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d, error %v; want %d and a deadline", n, err, BufferBytes)
		}
		b.Close()
	})
}

func TestReadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := New()
		defer a.Close()
		start := time.Now()
		buf := make([]byte, 1)
		read := func(after, want time.Duration) {
			t.Helper()
			if err := b.SetReadDeadline(start.Add(after)); err != nil {
				t.Fatal(err)
			}
			_, err := b.Read(buf)
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(start) != want {
				t.Errorf("error %v after %v, want a timeout after %v", err, time.Since(start), want)
			}
		}
		read(50*time.Millisecond, 50*time.Millisecond)
		read(10*time.Millisecond, 50*time.Millisecond) // already past
		read(80*time.Millisecond, 80*time.Millisecond)

		// A deadline set meanwhile ends a read that waits (net/http does that).
		time.AfterFunc(20*time.Millisecond, func() { b.SetReadDeadline(time.Unix(1, 0)) })
		b.SetReadDeadline(time.Time{})
		if _, err := b.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 100*time.Millisecond {
			t.Errorf("error %v after %v", err, time.Since(start))
		}

		// Taken back, the connection goes on.
		b.SetReadDeadline(time.Time{})
		a.Write([]byte("x"))
		if n, err := b.Read(buf); n != 1 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		b.Close()
	})
}

func TestEnds(t *testing.T) {
	buf := make([]byte, 8)
	t.Run("close", func(t *testing.T) {
		a, b := New()
		a.Write([]byte("last"))
		a.Close()
		if n, err := b.Read(buf); string(buf[:n]) != "last" || err != nil {
			t.Errorf("read %q, %v", buf[:n], err)
		}
		if _, err := b.Read(buf); err != io.EOF {
			t.Errorf("read after close: %v, want EOF", err)
		}
		if _, err := b.Write(buf); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after close: %v, want EPIPE", err)
		}
		if _, err := a.Read(buf); !errors.Is(err, net.ErrClosed) {
			t.Errorf("own read after close: %v", err)
		}
		if _, err := a.Write(buf); !errors.Is(err, net.ErrClosed) {
			t.Errorf("own write after close: %v", err)
		}
	})
	t.Run("close write", func(t *testing.T) {
		a, b := New()
		a.CloseWrite()
		if _, err := b.Read(buf); err != io.EOF {
			t.Errorf("read: %v, want EOF", err)
		}
		b.Write([]byte("answer"))
		if n, err := a.Read(buf); string(buf[:n]) != "answer" || err != nil {
			t.Errorf("read %q, %v", buf[:n], err)
		}
	})
	t.Run("linger 0", func(t *testing.T) {
		a, b := New()
		a.Write([]byte("lost"))
		a.SetLinger(0)
		a.Close()
		if _, err := b.Read(buf); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v, want ECONNRESET", err)
		}
		if _, err := b.Write(buf); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("write: %v, want ECONNRESET", err)
		}
	})
}

func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		client, err := l.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		client.Write([]byte("hello"))
		buf := make([]byte, 8)
		if n, _ := server.Read(buf); string(buf[:n]) != "hello" {
			t.Errorf("read %q", buf[:n])
		}
		pending, err := l.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, err := pending.Read(buf); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("never accepted: %v, want ECONNRESET", err)
		}
		if _, err := l.Dial(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial after close: %v, want ECONNREFUSED", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v, want net.ErrClosed", err)
		}
	})
}

func TestDialGivesUpWithItsContext(t *testing.T) {
	l := Listen()
	for range backlog {
		if _, err := l.Dial(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}
