package replay

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"reprise/replay/transport"
	"reprise/trace"
)

// plainDialer returns a function that opens a connection without TLS: to the
// host, to a Unix socket, or through a proxy.
func (c *Config) plainDialer(u *url.URL, addr string) (func(ctx context.Context) (net.Conn, error), error) {
	var d net.Dialer
	if c.UnixSocket != "" {
		return func(ctx context.Context) (net.Conn, error) {
			nc, err := d.DialContext(ctx, "unix", c.UnixSocket)
			if err != nil {
				return nil, explainDial(err, c.UnixSocket)
			}
			return nc, nil
		}, nil
	}
	proxy, err := c.proxy(u)
	if err != nil {
		return nil, err
	}
	to := addr
	if proxy != nil {
		to = proxy.Host
		if proxy.Port() == "" {
			to = net.JoinHostPort(proxy.Hostname(), "80")
		}
	}
	literal, perr := netip.ParseAddrPort(to)
	return func(ctx context.Context) (nc net.Conn, err error) {
		if perr == nil {
			nc, err = transport.Dial(ctx, literal)
		} else {
			nc, err = d.DialContext(ctx, "tcp", to)
		}
		if err != nil {
			return nil, explainDial(err, to)
		}
		if proxy != nil && u.Scheme == "https" {
			if err := tunnel(ctx, nc, addr, proxyAuth(proxy)); err != nil {
				nc.Close()
				return nil, fmt.Errorf("proxy %s: %w", to, err)
			}
		}
		return nc, nil
	}, nil
}

// proxy returns the proxy for u; nil for none.
func (c *Config) proxy(u *url.URL) (*url.URL, error) {
	switch {
	case c.Proxy == ProxyNone, c.UnixSocket != "", c.Dial != nil:
		return nil, nil
	case c.Proxy == "":
		proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
		if err != nil || proxy == nil || proxy.Scheme == "http" {
			return proxy, err
		}
		return nil, trace.WithFix(fmt.Errorf("proxy %s of the environment: only HTTP proxies are used", publicURL(proxy)), "use --proxy none, or name another with --proxy")
	}
	proxy, err := url.Parse(c.Proxy)
	if err != nil || proxy.Scheme != "http" || proxy.Host == "" {
		return nil, trace.WithFix(fmt.Errorf("--proxy: not the URL of an HTTP proxy"), "write it like http://proxy:3128, or none")
	}
	return proxy, nil
}

// proxyAuth is what a proxy's user and password are sent as; "" without.
func proxyAuth(proxy *url.URL) string {
	if proxy.User == nil {
		return ""
	}
	password, _ := proxy.User.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password))
}

// tunnel asks a proxy for a way to addr.
func tunnel(ctx context.Context, nc net.Conn, addr, auth string) error {
	if deadline, ok := ctx.Deadline(); ok {
		nc.SetDeadline(deadline)
		defer nc.SetDeadline(time.Time{})
	}
	request := "CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n"
	if auth != "" {
		request += "Proxy-Authorization: " + auth + "\r\n"
	}
	if _, err := io.WriteString(nc, request+"\r\n"); err != nil {
		return err
	}
	// One byte at a time: what follows the answer belongs to TLS.
	response, err := http.ReadResponse(bufio.NewReaderSize(oneByte{nc}, 16), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it refused the way to %s: %s", addr, response.Status)
	}
	return nil
}

// oneByte reads no more than it is asked to.
type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }
