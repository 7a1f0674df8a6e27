// Package otlp sends a run to an OpenTelemetry collector: its summary as metrics and
// each request as a span, by OTLP over HTTP in JSON (opentelemetry-proto 1.x,
// docs/specification.md, "OTLP/HTTP"). Attributes follow the GenAI semantic
// conventions where they have a name, and are called reprise.* where they have none.
package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"reprise/trace"
)

// Bounds of sending.
const (
	batchSpans  = 512 // spans of a request
	tries       = 4   // of a request that the collector may take later
	leastPause  = 500 * time.Millisecond
	mostPause   = 10 * time.Second
	answerLimit = 64 << 10
	timeout     = 30 * time.Second
)

// A Client posts to a collector.
type Client struct {
	base    *url.URL
	headers http.Header
	http    *http.Client
	sleep   func(context.Context, time.Duration) error
}

// New returns a client for a collector's base URL, such as http://collector:4318.
// headers are as in OTEL_EXPORTER_OTLP_HEADERS: name=value, separated by commas,
// percent-encoded; they may hold a secret, and are in no error.
func New(base, headers string, carrier http.RoundTripper) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, trace.WithFix(errors.New("--otlp: not a URL with a host (not shown, it may hold a password)"), "write it like http://collector:4318; /v1/metrics and /v1/traces are added")
	}
	c := &Client{base: u, headers: http.Header{}, http: &http.Client{Transport: carrier, Timeout: timeout}, sleep: sleep}
	for pair := range strings.SplitSeq(headers, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || strings.TrimSpace(name) == "" {
			return nil, trace.WithFix(errors.New("OTEL_EXPORTER_OTLP_HEADERS: not a list of name=value (not shown, it may be a secret)"), "write it like authorization=Bearer%20KEY")
		}
		c.headers.Set(strings.TrimSpace(name), text)
	}
	return c, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// post sends one request, again where the collector asks for that.
func (c *Client) post(ctx context.Context, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		wait, err := c.once(ctx, path, text)
		if err == nil || wait < 0 || try == tries {
			if err != nil {
				return trace.WithFix(fmt.Errorf("--otlp %s/%s: %w", c.base.Host, strings.TrimPrefix(c.base.JoinPath(path).Path, "/"), err), "check that a collector takes OTLP over HTTP there, on port 4318 by default")
			}
			return nil
		}
		if err := c.sleep(ctx, min(max(wait, leastPause<<(try-1)), mostPause)); err != nil {
			return err
		}
	}
}

// once returns how long to wait before another try; below 0, there is no use in one.
func (c *Client) once(ctx context.Context, path string, text []byte) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath(path).String(), bytes.NewReader(text))
	if err != nil {
		return -1, errors.New("not a URL that can be asked")
	}
	for name, values := range c.headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL, which may hold a password
		}
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	switch {
	case err != nil:
		return 0, err
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 502 && resp.StatusCode <= 504:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second, fmt.Errorf("HTTP %s", resp.Status)
	case resp.StatusCode/100 != 2:
		return -1, fmt.Errorf("HTTP %s: %.200s", resp.Status, strings.Join(strings.Fields(string(answer)), " "))
	}
	return -1, refused(answer)
}

// refused is what a collector did not take of a request that it answered with 200.
func refused(answer []byte) error {
	var a struct {
		Partial struct {
			Spans   json.Number `json:"rejectedSpans"`
			Points  json.Number `json:"rejectedDataPoints"`
			Message string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return nil // an answer in another encoding says nothing here
	}
	for what, n := range map[string]json.Number{"spans": a.Partial.Spans, "data points": a.Partial.Points} {
		if v, err := n.Int64(); err == nil && v > 0 {
			return fmt.Errorf("the collector refused %d %s: %s", v, what, a.Partial.Message)
		}
	}
	return nil
}

// An attribute is a KeyValue.
type attribute struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

func text(key, v string) attribute {
	return attribute{key, map[string]string{"stringValue": v}}
}

func number(key string, v int64) attribute {
	return attribute{key, map[string]string{"intValue": strconv.FormatInt(v, 10)}}
}

func seconds(key string, d time.Duration) attribute {
	return attribute{key, map[string]float64{"doubleValue": d.Seconds()}}
}

func truth(key string, v bool) attribute {
	return attribute{key, map[string]bool{"boolValue": v}}
}

func texts(key string, list ...string) attribute {
	values := []map[string]string{}
	for _, v := range list {
		values = append(values, map[string]string{"stringValue": v})
	}
	return attribute{key, map[string]any{"arrayValue": map[string]any{"values": values}}}
}

// nano writes a time as OTLP's JSON does: a number in a string.
func nano(t int64) string { return strconv.FormatInt(t, 10) }

// A scope names what made the data.
type scope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}
