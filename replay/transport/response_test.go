package transport

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// parse feeds wire in pieces of the given size and closes.
func parse(wire string, size int) (head Head, body string, used int, err error) {
	var p Parser
	var b bytes.Buffer
	for used < len(wire) && !p.Done() {
		n, err := p.Feed([]byte(wire[used:min(len(wire), used+size)]), func(x []byte) error { b.Write(x); return nil })
		used += n
		if err != nil {
			return p.head, b.String(), used, err
		}
	}
	if !p.Done() {
		err = p.CloseRead()
	}
	got, _ := p.Head()
	head = *got
	return head, b.String(), used, err
}

func TestResponses(t *testing.T) {
	for name, c := range map[string]struct {
		wire string
		head Head
		body string
		rest string // bytes of the next response
		err  string
	}{
		"length":       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: Application/JSON; charset=utf-8\r\n\r\nhelloHTTP", Head{Status: 200, Reason: "OK", Type: "application/json"}, "hello", "HTTP", ""},
		"chunked":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;note=x\r\nhello\r\n1\r\n!\r\n0\r\nX-Usage: 7\r\n\r\nrest", Head{Status: 200, Reason: "OK"}, "hello!", "rest", ""},
		"until close":  {"HTTP/1.0 200 OK\n\nabc", Head{Status: 200, Reason: "OK", Close: true}, "abc", "", ""},
		"interim":      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", Head{Status: 204, Reason: "No Content"}, "", "", ""},
		"retry":        {"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", Head{Status: 429, Reason: "Too Many Requests", RetryAfter: "3", Close: true}, "", "", ""},
		"cut body":     {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", Head{Status: 200, Reason: "OK"}, "hello", "", ErrTruncated.Error()},
		"cut chunk":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", Head{Status: 200, Reason: "OK"}, "hel", "", ErrTruncated.Error()},
		"cut head":     {"HTTP/1.1 200 OK\r\nContent-Le", Head{Status: 200, Reason: "OK"}, "", "", ErrTruncated.Error()},
		"nothing":      {"", Head{}, "", "", "closed before the response"},
		"no http":      {"SSH-2.0-x\r\n", Head{}, "", "", `begins with "SSH-2.0-x"`},
		"bad size":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Head{Status: 200, Reason: "OK"}, "", "", `chunk size "zz"`},
		"bad length":   {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Head{Status: 200, Reason: "OK"}, "", "", `Content-Length: "-1"`},
		"two lengths":  {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Head{Status: 200, Reason: "OK"}, "", "", `Content-Length: "2"`},
		"other coding": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Head{Status: 200, Reason: "OK"}, "", "", `"gzip" is not supported`},
		"no line end":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", Head{Status: 200, Reason: "OK"}, "a", "", "want a line end"},
		"long header":  {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", MaxHeader) + "\r\n\r\n", Head{Status: 200, Reason: "OK"}, "", "", "longer than"},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			head, body, used, err := parse(c.wire, size)
			switch {
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%s by %d: error %v, want %q", name, size, err, c.err)
			case head.Status != c.head.Status || body != c.body || (c.err == "" && head != c.head):
				t.Errorf("%s by %d: %+v %q, want %+v %q", name, size, head, body, c.head, c.body)
			case c.err == "" && !strings.HasPrefix(c.wire[used:], c.rest):
				t.Errorf("%s by %d: rest %q, want %q", name, size, c.wire[used:], c.rest)
			}
		}
	}
}

// What this parser accepts, net/http reads as the same response.
func FuzzParser(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 3)
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n", 1)
	f.Add("HTTP/1.0 200 OK\r\n\r\nabc", 2)
	f.Add("HTTP/1.1 100 C\r\n\r\nHTTP/1.1 204 N\r\n\r\n", 9)
	f.Fuzz(func(t *testing.T, wire string, size int) {
		size = 1 + (size&0xff+256)%256
		head, body, _, err := parse(wire, size)
		whole, wholeBody, _, wholeErr := parse(wire, max(1, len(wire)))
		if head != whole || body != wholeBody || (err == nil) != (wholeErr == nil) {
			t.Fatalf("by %d: %+v %q %v; whole: %+v %q %v", size, head, body, err, whole, wholeBody, wholeErr)
		}
		if err != nil {
			return
		}
		br := bufio.NewReader(strings.NewReader(wire))
		resp, herr := http.ReadResponse(br, nil)
		for herr == nil && resp.StatusCode < 200 && resp.StatusCode != 101 {
			resp, herr = http.ReadResponse(br, nil)
		}
		if herr != nil {
			return // net/http is stricter in places that cannot change the body
		}
		want, herr := io.ReadAll(resp.Body)
		if herr == nil && (resp.StatusCode != head.Status || string(want) != body) {
			t.Fatalf("%d %q, net/http reads %d %q", head.Status, body, resp.StatusCode, want)
		}
	})
}
