package replay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"reprise/replay/protocol"
	"reprise/replay/transport"
	"reprise/trace"
)

// A target is one URL: its connections and the head of its requests.
type target struct {
	name    string // URL without user and password, as results name it
	client  transport.Carrier
	connect func(now func() time.Duration) transport.Carrier // makes another, with a clock of its own
	head    []byte                                           // request line and headers up to the request's own
}

// endpoint returns the URL that requests for p go to: the path of base, with
// that of p behind it unless base ends with it already. "http://h/v1" and
// "http://h" mean the same.
func endpoint(base, path string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, trace.WithFix(fmt.Errorf("--url %q: not an http or https URL", base), "write it like http://localhost:8000")
	}
	have := strings.TrimSuffix(u.Path, "/")
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case strings.HasSuffix(have, path):
	case strings.HasSuffix(have, "/"+first): // .../v1 and /v1/chat/completions
		have = strings.TrimSuffix(have, "/"+first) + path
	default:
		have += path
	}
	u.Path = have
	return u, nil
}

// publicURL drops user and password.
func publicURL(u *url.URL) string {
	clean := *u
	clean.User = nil
	return clean.String()
}

// requestHead returns the head of a request for u, without the headers that
// differ by request and without the empty line.
func requestHead(u *url.URL, c *Config) ([]byte, error) {
	p := c.protocol()
	headers := append([]protocol.Header{
		{Name: "Host", Value: u.Host},
		{Name: "User-Agent", Value: "reprise/" + c.Version},
		{Name: "Content-Type", Value: "application/json"},
		{Name: "Accept", Value: "text/event-stream, application/json"},
		{Name: "Accept-Encoding", Value: "identity"},
	}, p.Headers()...)
	if c.APIKey != "" {
		name, prefix := p.Auth()
		headers = append(headers, protocol.Header{Name: name, Value: prefix + c.APIKey})
	} else if u.User != nil {
		return nil, trace.WithFix(errors.New("--url holds a user or a password, which others can see in the process list"), "put the key in a variable and name it with --api-key-env")
	}
	for _, h := range c.Headers {
		if err := checkHeader(h); err != nil {
			return nil, err
		}
		headers = setHeader(headers, h)
	}
	uri := u.RequestURI()
	if proxy, err := c.proxy(u); err != nil {
		return nil, err
	} else if proxy != nil && u.Scheme == "http" {
		uri = publicURL(u) // a proxy is told the whole URL
		if auth := proxyAuth(proxy); auth != "" {
			headers = append(headers, protocol.Header{Name: "Proxy-Authorization", Value: auth})
		}
	}
	out := []byte("POST " + uri + " HTTP/1.1\r\n")
	for _, h := range headers {
		out = append(out, h.Name+": "+h.Value+"\r\n"...)
	}
	return out, nil
}

func setHeader(list []protocol.Header, h protocol.Header) []protocol.Header {
	for i := range list {
		if strings.EqualFold(list[i].Name, h.Name) {
			list[i] = h
			return list
		}
	}
	return append(list, h)
}

func checkHeader(h protocol.Header) error {
	switch strings.ToLower(h.Name) {
	case "content-length", "transfer-encoding", "connection", "x-request-id":
		return fmt.Errorf("--header %s: set by the client itself", h.Name)
	}
	if h.Name == "" || strings.ContainsAny(h.Name, " \t\r\n:") || strings.ContainsAny(h.Value, "\r\n\x00") || textproto.TrimString(h.Name) != h.Name {
		return fmt.Errorf("--header %q: not a header", h.Name)
	}
	return nil
}

// dialer returns a function that opens a connection for u, TLS included.
func dialer(u *url.URL, c *Config) (func(ctx context.Context) (net.Conn, error), error) {
	if c.Dial != nil {
		return func(ctx context.Context) (net.Conn, error) { return c.Dial(ctx, u.String()) }, nil
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil, fmt.Errorf("--url %q: port %s", publicURL(u), port)
	}
	addr := net.JoinHostPort(u.Hostname(), port)
	plain, err := c.plainDialer(u, addr)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "http" {
		return plain, nil
	}
	config, err := c.tlsConfig(u)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (net.Conn, error) {
		nc, err := plain(ctx)
		if err != nil {
			return nil, err
		}
		tc := tls.Client(nc, config)
		if err := tc.HandshakeContext(ctx); err != nil {
			nc.Close()
			return nil, explainTLS(err, addr)
		}
		if got := tc.ConnectionState().NegotiatedProtocol; c.HTTP2 && got != alpnHTTP2 {
			nc.Close()
			return nil, notHTTP2(addr)
		}
		return tc, nil
	}, nil
}

// tlsConfig is how TLS is spoken with u, HTTP/2 announced if that is wanted there.
func (c *Config) tlsConfig(u *url.URL) (*tls.Config, error) {
	config, err := tlsConfig(u, c.TLS)
	if err == nil && c.speaksHTTP2(u) {
		config.NextProtos = []string{alpnHTTP2}
	}
	return config, err
}

const fixCA = "name the PEM file of the authority that has signed the server's certificate"

func tlsConfig(u *url.URL, t TLS) (*tls.Config, error) {
	config := &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: t.Insecure, NextProtos: []string{"http/1.1"}}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, trace.WithFix(fmt.Errorf("--cert and --key: %w", err), "name two PEM files that belong together")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if t.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, trace.WithFix(fmt.Errorf("--ca-file: %w", err), fixCA)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, trace.WithFix(fmt.Errorf("--ca-file %s: no certificate in PEM is in it", t.CAFile), fixCA)
	}
	config.RootCAs = pool
	return config, nil
}

func explainDial(err error, addr string) error {
	if own := explainShortage(err); own != nil {
		return own
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return trace.WithFix(fmt.Errorf("no address for host %s: %s", dns.Name, dns.Err), "check the host name in --url")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if sys, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			return trace.WithFix(fmt.Errorf("cannot connect to %s: %w", addr, sys.Err), "check that the server runs and that --url has its port")
		}
		return fmt.Errorf("cannot connect to %s: %w", addr, op.Err)
	}
	return fmt.Errorf("cannot connect to %s: %w", addr, err)
}

func explainTLS(err error, addr string) error {
	fix := "name the authority with --ca-file, or use --insecure for a test server"
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		fix = "check that the server speaks TLS on this port; for plain HTTP write http:// in --url"
	}
	return trace.WithFix(fmt.Errorf("TLS with %s: %w", addr, err), fix)
}
