package mock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"reprise/replay/mock/batch"
)

// instant is an engine that takes no time.
var instant = batch.Config{PrefillRate: math.Inf(1), StepBase: -1, StepPerSequence: -1, KVTokens: 1 << 40}

// overTCP serves on loopback until the test ends, and returns the base URL.
func overTCP(t testing.TB, c Config) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback here: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- New(c).Serve(ctx, ln) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return "http://" + ln.Addr().String()
}

func TestResetIsARealOne(t *testing.T) {
	url := overTCP(t, Config{Engine: instant})
	for _, fault := range []string{"reset", "cut"} {
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(chat("a", 3, `,"mock_fault":"`+fault+`"`)))
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v, want ECONNRESET", fault, err)
		}
	}
}

// BenchmarkChunks measures one chunk from engine to socket, and its reading.
func BenchmarkChunks(b *testing.B) {
	url := overTCP(b, Config{Engine: instant, AccountChunks: 1})
	b.ReportAllocs()
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(chat("a", max(b.N, 1), "")))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n / int64(b.N))
}

// BenchmarkLongPrompts measures a request of 8,000 words, half of them shared.
func BenchmarkLongPrompts(b *testing.B) {
	url := overTCP(b, Config{Engine: instant})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		body := fmt.Sprintf(`{"max_tokens":1,"prompt":"%s`, strings.Repeat("word ", 4000)) + strings.Repeat(fmt.Sprint("x", i, " "), 4000) + `"}`
		resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
