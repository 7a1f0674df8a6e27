package replay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"reprise/trace"
)

// flush posts to c.Flush, which empties the server's prefix cache, before the
// run. Anything but a 2xx answer is an error: a warm cache would be measured.
func (c *Config) flush(ctx context.Context) error {
	if c.Flush == "" {
		return nil
	}
	u, err := url.Parse(c.Flush)
	if err != nil || u.Host == "" {
		return fmt.Errorf("--flush %q: not a URL", c.Flush)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Flush, nil)
	if err != nil {
		return fmt.Errorf("--flush: %w", err)
	}
	resp, err := c.ask(req, u)
	if err != nil {
		return fmt.Errorf("--flush: %w", unreachable(publicURL(u), err))
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
	if resp.StatusCode/100 != 2 {
		return trace.WithFix(fmt.Errorf("--flush %s: %s %s", publicURL(u), resp.Status, text), "name the server's call that empties its prefix cache, such as http://host:8000/reset_prefix_cache (vLLM) or /flush_cache (SGLang)")
	}
	return nil
}

// ask sends a request of its own, outside the run, with the run's credentials.
func (c *Config) ask(req *http.Request, u *url.URL) (*http.Response, error) {
	if c.APIKey != "" {
		name, prefix := c.protocol().Auth()
		req.Header.Set(name, prefix+c.APIKey)
	}
	for _, h := range c.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	config, err := c.tlsConfig(u)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: config, Proxy: func(r *http.Request) (*url.URL, error) { return c.proxy(r.URL) }}
	if c.speaksHTTP2(u) {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP2(true)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	if c.UnixSocket != "" {
		var d net.Dialer
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", c.UnixSocket)
		}
	}
	if c.Dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx, u.String()) }
	}
	return (&http.Client{Transport: transport}).Do(req)
}
