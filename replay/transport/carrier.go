package transport

import (
	"context"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Carrier takes exchanges to one address: a [Client] by HTTP/1.1, or an [HTTP2].
type Carrier interface {
	Send(x *Exchange)                   // starts x and returns at once; no exchange waits for another
	Open(ctx context.Context, n int)    // opens n connections ahead, where each exchange needs one
	Cut(cause error)                    // ends all exchanges in flight, and those to come
	Close()                             // cuts, closes the connections and waits for all goroutines
	Connections() (opened, found int64) // and exchanges that found an open one
	Receive() *hdrhistogram.Histogram   // see Delays; nil where the kernel's stamps are not to be had
}

// Connections implements Carrier.
func (c *Client) Connections() (opened, found int64) { return c.Opened.Load(), c.Reuses.Load() }

// Receive implements Carrier.
func (c *Client) Receive() *hdrhistogram.Histogram { return c.Delays.Histogram() }
