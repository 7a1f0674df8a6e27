package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"reprise/replay/transport"
	"reprise/trace"
	"reprise/trace/results"
)

// sharedConnections is what a run by HTTP/2 says of its numbers.
const sharedConnections = "--http2: chunks of many answers share a connection and its one reader, so time stamps are less exact than by HTTP/1.1, and the kernel's stamps are not to be had; bytes in and out are those of the bodies"

// alpnHTTP2 is the name of HTTP/2 in TLS (RFC 9113 section 3.2).
const alpnHTTP2 = "h2"

func (c *Config) httpVersion() string {
	if c.HTTP2 {
		return results.HTTP2
	}
	return results.HTTP1
}

// carrier returns what makes clients for u.
func (c *Config) carrier(u *url.URL, dial func(context.Context) (net.Conn, error)) func(now func() time.Duration) transport.Carrier {
	return func(now func() time.Duration) transport.Carrier {
		if c.HTTP2 {
			return transport.NewHTTP2(u.Scheme == "https", cmp.Or(c.H2Conns, DefaultH2Conns), dial, now)
		}
		return transport.NewClient(dial, now)
	}
}

// speaksHTTP2 tells whether u is on a server of the run, and the run speaks
// HTTP/2.
func (c *Config) speaksHTTP2(u *url.URL) bool {
	for _, base := range c.URLs {
		if b, err := url.Parse(base); err == nil && c.HTTP2 && b.Host == u.Host {
			return true
		}
	}
	return false
}

// checkHTTP2 refuses what HTTP/2 cannot do.
func (c *Config) checkHTTP2() error {
	switch {
	case c.H2Conns < 0:
		return fmt.Errorf("--h2-conns %d: must not be below 0", c.H2Conns)
	case c.H2Conns > 0 && !c.HTTP2:
		return trace.WithFix(errors.New("--h2-conns: HTTP/1.1 opens a connection for each request in flight"), "use it with --http2")
	case !c.HTTP2:
		return nil
	}
	for _, base := range c.URLs {
		u, err := url.Parse(base)
		if err != nil || u.Scheme != "http" {
			continue
		}
		proxy, err := c.proxy(u)
		if err != nil {
			return err
		}
		if proxy != nil {
			return trace.WithFix(fmt.Errorf("--http2: %s goes through a proxy, which takes requests for http URLs by HTTP/1.1 only", publicURL(u)), "use --proxy none, an https URL, or HTTP/1.1")
		}
	}
	return nil
}

func notHTTP2(addr string) error {
	return trace.WithFix(fmt.Errorf("TLS with %s: the server does not speak HTTP/2", addr), "leave --http2 out")
}
