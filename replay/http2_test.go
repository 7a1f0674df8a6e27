package replay

import (
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock"
	"reprise/trace"
	"reprise/trace/results"
)

// TestHTTP2IsOnTimeAndExact: the same account as by HTTP/1.1, request for
// request, probe included.
func TestHTTP2IsOnTimeAndExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mock.New(exact())
		rows := traceOf(trace.ClockTrace, at(0, 100, 5), at(0, 100, 1), at(250, 50, 3), at(1000, 20, 4))
		got, run, err := replayProbed(t, t.Context(), server, Config{source: rows, HTTP2: true})
		if err != nil {
			t.Fatal(err)
		}
		if run.HTTP != results.HTTP2 || run.Ended.Client.ConnsOpened != 1 || run.Ended.Client.ReceiveDelay != nil || !strings.Contains(strings.Join(run.Warnings, "\n"), "share a connection") {
			t.Errorf("HTTP/%s, %+v, %q", run.HTTP, run.Ended.Client, run.Warnings)
		}
		for id, r := range got {
			if late, _ := results.Lateness(&r); late != 0 || r.Sent.Value != r.Due.Value || r.Outcome != results.OutcomeOK {
				t.Errorf("id %d: due %v, sent %v, %v late, %s %v", id, r.Due.Value, r.Sent.Value, late, r.Outcome, r.Cause)
			}
			if r.PlannedInputTokens != r.CountedInputTokens || r.PlannedOutputTokens != r.OutputTokens || r.LedgerDifference.Value != 0 {
				t.Errorf("id %d: planned %v/%v tokens, counted %v/%v, difference %v", id, r.PlannedInputTokens, r.PlannedOutputTokens, r.CountedInputTokens, r.OutputTokens, r.LedgerDifference)
			}
		}
	})
}

// TestHTTP2Faults: each is the outcome that it is by HTTP/1.1.
func TestHTTP2Faults(t *testing.T) {
	for fault, outcome := range map[string]string{
		"status,code=500": results.OutcomeFailed, "reset": results.OutcomeReset, "cut,after=2": results.OutcomeReset, "truncate,after=2": results.OutcomeTruncated,
		"error,after=2": results.OutcomeFailed, "stall,after=2,delay=5m": results.OutcomeTimeout,
	} {
		synctest.Test(t, func(t *testing.T) {
			m := exact()
			f, err := mock.ParseFault(fault + ",every=2")
			if err != nil {
				t.Fatal(err)
			}
			m.Faults = []mock.Fault{f}
			rows := traceOf(trace.ClockTrace, at(0, 10, 5), at(500, 10, 5), at(1000, 10, 5), at(1500, 10, 5))
			got, _, err := replayTo(t, t.Context(), mock.New(m), Config{source: rows, BytesTimeout: time.Second, HTTP2: true})
			if err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for id, r := range got {
				count[r.Outcome]++
				if late, _ := results.Lateness(&r); late != 0 {
					t.Errorf("%s: id %d is %v late", fault, id, late)
				}
			}
			if count[results.OutcomeOK] != 2 || count[outcome] != 2 {
				t.Errorf("%s: %v, want 2 %s", fault, count, outcome)
			}
		})
	}
}

// counting wraps answer to tell how many requests came by HTTP/2.
func counting(n *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			n.Add(1)
		}
		answer(w, r)
	})
}

// TestHTTP2OverTLS goes by ALPN: with an authority of our own, a client
// certificate, through a proxy, and not at all to a server without it.
func TestHTTP2OverTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, pool := selfSigned(t, dir)
	var n atomic.Int64
	server := httptest.NewUnstartedServer(counting(&n))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(dir, "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy, through := forwarding(t, "")
	for name, c := range map[string]Config{
		"insecure": {TLS: TLS{Insecure: true}}, "own authority": {TLS: TLS{CAFile: ca}}, "certificate": {TLS: TLS{Insecure: true, CertFile: certFile, KeyFile: keyFile}},
		"proxy": {TLS: TLS{Insecure: true}, Proxy: proxy.URL},
	} {
		c.URLs, c.HTTP2 = []string{server.URL}, true
		if r := send(t, c); r.Outcome != results.OutcomeOK {
			t.Errorf("%s: %s: %v", name, r.Outcome, r.Cause)
		}
	}
	if n.Load() != 4 || through.Load() != 1 {
		t.Errorf("%d requests by HTTP/2, %d through the proxy", n.Load(), through.Load())
	}
	old := httptest.NewTLSServer(answer)
	defer old.Close()
	if r := send(t, Config{URLs: []string{old.URL}, HTTP2: true, TLS: TLS{Insecure: true}}); r.Outcome != results.OutcomeRefused || !strings.Contains(r.Cause.Value, "HTTP/2") && !strings.Contains(r.Cause.Value, "no application protocol") {
		t.Errorf("a server without it: %s: %v", r.Outcome, r.Cause)
	}
}

// TestHTTP2Refusals: what cannot be is refused with the reason.
func TestHTTP2Refusals(t *testing.T) {
	proxy := Config{URLs: []string{"http://h"}, HTTP2: true, Proxy: "http://p:1"}
	if err := proxy.check(); err == nil || !strings.Contains(err.Error(), "http://h goes through a proxy") {
		t.Error(err)
	}
	conns := Config{URLs: []string{"http://h"}, H2Conns: 2}
	if err := conns.check(); err == nil || trace.Fix(err) != "use it with --http2" {
		t.Error(err)
	}
	conns = Config{URLs: []string{"http://h"}, HTTP2: true, H2Conns: -1}
	if err := conns.check(); err == nil {
		t.Error("--h2-conns -1 is taken")
	}
}

// TestHTTP2UnixSocket: no TLS, no address.
func TestHTTP2UnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skipf("no Unix sockets here: %v", err)
	}
	var n atomic.Int64
	server := &http.Server{Handler: counting(&n), Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	go server.Serve(l)
	defer server.Close()
	c := Config{URLs: []string{"http://anywhere"}, UnixSocket: path, HTTP2: true}
	if r := send(t, c); r.Outcome != results.OutcomeOK || n.Load() != 1 {
		t.Errorf("%s: %v", r.Outcome, r.Cause)
	}
	u, _ := url.Parse("http://elsewhere")
	if c.speaksHTTP2(u) {
		t.Error("a server that is not of the run is asked by HTTP/2")
	}
}
