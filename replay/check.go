package replay

import (
	"fmt"
	"net/url"

	"reprise/replay/protocol"
	"reprise/trace"
)

// Check refuses a Config that no trace and no server could satisfy. Its errors
// name the flag, and are about how the command was called. A plan that sends
// nothing needs no URL.
func (c *Config) Check() error {
	with := *c
	if len(with.URLs) == 0 {
		with.URLs = []string{"http://localhost"}
	}
	if err := with.check(); err != nil {
		return err
	}
	clock := trace.ClockTrace
	if c.Selection.SessionArrivals.Kind != "" {
		clock = trace.ClockSession
	}
	if err := c.Selection.check(clock, c.paced()); err != nil {
		return err
	}
	if c.Output == "" || c.Output == OutputExact {
		one := trace.Some(int64(1))
		ask := protocol.Request{Model: "m", Stream: c.Stream != StreamOff, Prompt: [][]byte{[]byte("x")}, MaxTokens: one, MinTokens: one, IgnoreEOS: true}
		if _, err := c.protocol().AppendBody(nil, &ask); err != nil {
			return fmt.Errorf("--output-length exact: %w", err)
		}
	}
	if _, err := tlsConfig(&url.URL{}, c.TLS); err != nil {
		return err
	}
	for _, base := range c.URLs {
		u, err := endpoint(base, c.protocol().Path())
		if err != nil {
			return err
		}
		if _, err := requestHead(u, c); err != nil {
			return err
		}
	}
	return nil
}
