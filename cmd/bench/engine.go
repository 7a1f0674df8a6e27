package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"reprise/replay"
	"reprise/replay/ledger"
	"reprise/replay/protocol"
	"reprise/replay/transport"
	"reprise/trace/results"
)

// An asker is the client of a replay without its schedule and its files: one
// request after the other on a connection, parsed and booked.
type asker struct {
	client   *transport.Client
	x        transport.Exchange
	response *protocol.Response
	request  []byte
	slab     []results.Entry
	left     func() bool // takes one of what is still to be asked
	failed   func(error)
	over     func()
	chunks   int
}

func (a *asker) send() {
	a.x.Reset()
	a.x.Request, a.x.Sink = a.request, a
	a.response.Start(a.slab)
	a.client.Send(&a.x)
}

// OnSent implements transport.Sink.
func (a *asker) OnSent() {}

// OnHead implements transport.Sink.
func (a *asker) OnHead(h *transport.Head, _ time.Duration) { a.response.Head(h.Status, h.Type) }

// OnBody implements transport.Sink.
func (a *asker) OnBody(p []byte, at time.Duration) error {
	sent, _ := a.x.Sent()
	return a.response.Feed(p, at-sent)
}

// Done implements transport.Sink.
func (a *asker) Done(x *transport.Exchange) {
	var s ledger.Summary
	a.response.End(&ledger.Ending{At: x.Ended}, &s)
	if s.Outcome != results.OutcomeOK || x.End != transport.EndClean {
		a.failed(fmt.Errorf("%s %s: %v", s.Outcome, s.Cause.Value, x.Err))
	}
	a.slab = s.Ledger
	a.chunks += len(s.Ledger)
	if a.left() {
		a.send()
	} else {
		a.over()
	}
}

func rawRequest(host, body string) []byte {
	return []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// runEngine keeps the streams of l in flight until all are done.
func runEngine(w *work, l load) error {
	start := time.Now()
	client := transport.NewClient(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", w.address)
	}, func() time.Duration { return time.Since(start) })
	defer client.Close()
	var mu sync.Mutex
	var failure error
	begun := l.streams
	var running sync.WaitGroup
	askers := make([]*asker, l.streams)
	for i := range askers {
		askers[i] = &asker{
			client: client, response: protocol.NewResponse(protocol.Chat{}, true, 0), request: rawRequest(w.address, l.body()),
			left: func() bool {
				mu.Lock()
				defer mu.Unlock()
				begun++
				return begun <= l.total() && failure == nil
			},
			failed: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				failure = err
			},
			over: running.Done,
		}
	}
	w.begin()
	before := mallocs()
	running.Add(l.streams)
	for _, a := range askers {
		a.send()
	}
	running.Wait()
	chunks := 0
	for _, a := range askers {
		chunks += a.chunks
	}
	w.end(float64(chunks))
	w.extra("requests", float64(l.total()))
	w.extra("allocs", float64(mallocs()-before))
	return failure
}

// runAllocations finds what a request, and a chunk, costs in allocations in the
// run phase of a whole replay: the slopes between runs of unequal size.
func runAllocations(w *work) error {
	count := func(l load) (float64, error) {
		dir := filepath.Join(w.dir, fmt.Sprintf("run-%d-%d-%d", os.Getpid(), l.rounds, l.tokens))
		if err := writeLoad(dir+".parquet", l); err != nil {
			return 0, err
		}
		before := mallocs()
		run, err := replay.Run(context.Background(), benchConfig(w.address, dir, l.iv, l.k))
		made := float64(mallocs() - before)
		if err == nil && run.Ended.Sent != int64(l.total()) {
			err = fmt.Errorf("%d of %d requests sent", run.Ended.Sent, l.total())
		}
		return made, err
	}
	few := load{streams: 100, rounds: 30, tokens: 20, k: 20, every: 100 * time.Millisecond}
	many, long := few, few
	many.rounds, many.every = 5*many.rounds, many.every/5 // in the same time, so that as many files are written
	long.tokens *= 20
	if _, err := count(few); err != nil { // what is made once
		return err
	}
	w.begin()
	var made [3]float64
	for i, l := range []load{few, many, long} {
		n, err := count(l)
		if err != nil {
			return err
		}
		made[i] = n
	}
	w.end(float64(long.total() * long.tokens))
	w.extra("request", max(0, (made[1]-made[0])/float64(many.total()-few.total())))
	w.extra("chunk", max(0, (made[2]-made[0])/float64(few.total()*(long.tokens-few.tokens))))
	return nil
}
