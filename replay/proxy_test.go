package replay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// answer is a server that gives one token to every request.
var answer = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
})

// send replays one request in life and returns its result.
func send(t *testing.T, c Config) results.Result {
	t.Helper()
	dir := t.TempDir()
	c.Dir, c.Model, c.NoProbe = dir, "m", true
	c.source = traceOf(trace.ClockTrace, at(0, 10, 1))
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	run, err := results.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range run.Results() {
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatal("nothing is recorded")
	return results.Result{}
}

// forwarding is an HTTP proxy that counts what goes through it.
func forwarding(t *testing.T, auth string) (*httptest.Server, *atomic.Int64) {
	var through atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if auth != "" && r.Header.Get("Proxy-Authorization") != auth {
			http.Error(w, "who are you?", http.StatusProxyAuthRequired)
			return
		}
		through.Add(1)
		if r.Method != http.MethodConnect {
			r.RequestURI = ""
			response, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			defer response.Body.Close()
			w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
			io.Copy(w, response.Body)
			return
		}
		far, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		near, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			far.Close()
			return
		}
		io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { io.Copy(far, near); far.Close() }()
		io.Copy(near, far)
		near.Close()
	}))
	t.Cleanup(proxy.Close)
	return proxy, &through
}

// TestProxy goes through one, for plain and for encrypted servers, with and
// without a password; none goes past it.
func TestProxy(t *testing.T) {
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	for _, server := range []*httptest.Server{plain, secure} {
		proxy, through := forwarding(t, "Basic dTpw") // u:p
		u, _ := url.Parse(proxy.URL)
		u.User = url.UserPassword("u", "p")
		if r := send(t, Config{URLs: []string{server.URL}, Proxy: u.String(), TLS: TLS{Insecure: true}}); r.Outcome != results.OutcomeOK || through.Load() == 0 {
			t.Errorf("%s: %s (%v), %d requests through the proxy", server.URL, r.Outcome, r.Cause, through.Load())
		}
		through.Store(0)
		if r := send(t, Config{URLs: []string{server.URL}, Proxy: ProxyNone, TLS: TLS{Insecure: true}}); r.Outcome != results.OutcomeOK || through.Load() != 0 {
			t.Errorf("%s: %s, %d requests through the proxy that was not to be used", server.URL, r.Outcome, through.Load())
		}
		if r := send(t, Config{URLs: []string{server.URL}, Proxy: proxy.URL, TLS: TLS{Insecure: true}}); r.Outcome == results.OutcomeOK {
			t.Errorf("%s: ok without the password", server.URL)
		}
	}
	if _, err := (&Config{Proxy: "ftp://x"}).proxy(&url.URL{Scheme: "http", Host: "h"}); err == nil || strings.Contains(err.Error(), "ftp") {
		t.Errorf("error %v", err)
	}
}

// TestUnixSocket reaches a server that has no address.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skipf("no Unix sockets here: %v", err)
	}
	server := &http.Server{Handler: answer}
	go server.Serve(l)
	defer server.Close()
	if r := send(t, Config{URLs: []string{"http://anywhere"}, UnixSocket: path}); r.Outcome != results.OutcomeOK {
		t.Errorf("%s: %v", r.Outcome, r.Cause)
	}
}

// TestClientCertificate is asked for by the server, and sent.
func TestClientCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, pool := selfSigned(t, dir)
	server := httptest.NewUnstartedServer(answer)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	if r := send(t, Config{URLs: []string{server.URL}, TLS: TLS{Insecure: true, CertFile: certFile, KeyFile: keyFile}}); r.Outcome != results.OutcomeOK {
		t.Errorf("%s: %v", r.Outcome, r.Cause)
	}
	if _, err := tlsConfig(&url.URL{Host: "h"}, TLS{CertFile: certFile, KeyFile: certFile}); err == nil || !strings.Contains(err.Error(), "--cert and --key") {
		t.Errorf("error %v", err)
	}
}

func selfSigned(t *testing.T, dir string) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(cert)
	return certFile, keyFile, pool
}
