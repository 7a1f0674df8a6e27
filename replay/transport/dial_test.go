package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// answering serves any number of requests on each connection, each after a pause.
func answering(pause time.Duration) script {
	return func(s net.Conn) {
		for readRequest(s) != "" {
			time.Sleep(pause)
			io.WriteString(s, reply("abc"))
		}
	}
}

// A request that waits for a slow dial takes a connection that comes back before.
func TestWaitingTakesWhatComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, accepted := serve(t, answering(100*time.Millisecond), answering(100*time.Millisecond))
		quick := c.dial
		var dials atomic.Int32
		c.dial = func(ctx context.Context) (net.Conn, error) {
			if dials.Add(1) > 1 {
				time.Sleep(time.Second)
			}
			return quick(ctx)
		}
		first, second := &Exchange{}, &Exchange{}
		go do(c, first)
		synctest.Wait()
		do(c, second)
		if second.Connected != 100*time.Millisecond || second.Ended != 200*time.Millisecond || !second.Reused {
			t.Errorf("connected at %v, reused %v, ended at %v", second.Connected, second.Reused, second.Ended)
		}
		time.Sleep(time.Second)
		if third, _ := do(c, &Exchange{}); !third.Reused || accepted() != 2 {
			t.Errorf("reused %v, %d connections", third.Reused, accepted())
		}
	})
}

// A connection that comes when the client is being closed, for a request that was served
// by another meanwhile, is closed too: else the client would wait for its reader for good.
func TestConnectionComesAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, accepted := serve(t, answering(100*time.Millisecond), answering(100*time.Millisecond))
		quick := c.dial
		slow := make(chan bool)
		var dials atomic.Int32
		c.dial = func(ctx context.Context) (net.Conn, error) {
			if dials.Add(1) > 1 {
				<-slow
			}
			return quick(context.WithoutCancel(ctx)) // it was there when the context ended
		}
		go do(c, &Exchange{})
		synctest.Wait()
		if second, _ := do(c, &Exchange{}); !second.Reused || second.End != EndClean {
			t.Errorf("reused %v, ended with %d", second.Reused, second.End)
		}
		go c.Close()
		synctest.Wait()
		close(slow)
		c.Close()
		synctest.Wait()
		if accepted() != 2 || len(c.conns) != 0 {
			t.Errorf("%d connections, %d are there", accepted(), len(c.conns))
		}
	})
}

// A dial that fails ends the wait of the request that it began for, and of no other.
func TestRefusedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := serve(t, answering(100*time.Millisecond))
		quick, refuse := c.dial, errors.New("connection refused")
		var dials atomic.Int32
		c.dial = func(ctx context.Context) (net.Conn, error) {
			switch dials.Add(1) {
			case 1:
				return quick(ctx)
			case 2:
				time.Sleep(time.Second) // by then its request has long been served
				return nil, refuse
			}
			time.Sleep(10 * time.Millisecond)
			return nil, refuse
		}
		first, second, third := &Exchange{}, &Exchange{}, &Exchange{}
		go do(c, first)
		synctest.Wait()
		served := make(chan bool)
		go func() { do(c, second); close(served) }()
		synctest.Wait()
		do(c, third)
		if third.End != EndRefused || third.Ended != 10*time.Millisecond {
			t.Errorf("the third ended at %v with %d: %v", third.Ended, third.End, third.Err)
		}
		<-served
		time.Sleep(2 * time.Second)
		if second.End != EndClean || second.Ended != 200*time.Millisecond {
			t.Errorf("the second ended at %v with %d: %v", second.Ended, second.End, second.Err)
		}
	})
}

// Whatever dials take and become, each exchange ends once, within its limit, and
// nobody dials or waits at the end.
func TestDialsAndExchanges(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			scripts := make([]script, 200)
			for i := range scripts {
				scripts[i] = answering(time.Duration(r.IntN(30)) * time.Millisecond)
			}
			c, _ := serve(t, scripts...)
			quick := c.dial
			plans := make([]int, 1000)
			for i := range plans {
				plans[i] = r.IntN(100)
			}
			var dials atomic.Int32
			c.dial = func(ctx context.Context) (net.Conn, error) {
				n := plans[dials.Add(1)%1000]
				select {
				case <-time.After(time.Duration(n) * time.Millisecond):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				if n%7 == 0 {
					return nil, fmt.Errorf("refused")
				}
				return quick(ctx)
			}
			const n = 100
			var xs [n]Exchange
			var began [n]time.Duration
			ended := make(chan int, n)
			for i := range xs {
				time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
				xs[i].Limits.Total = 60 * time.Millisecond
				began[i] = c.now()
				go func() { do(c, &xs[i]); ended <- i }()
				synctest.Wait()
			}
			if seed%10 == 0 {
				c.Cut(errors.New("the grace is over"))
			}
			for range n {
				i := <-ended
				x := &xs[i]
				if _, ok := x.Sent(); !ok && x.Ended > began[i]+x.Limits.Total {
					t.Fatalf("seed %d: exchange %d waited for a connection from %v to %v", seed, i, began[i], x.Ended)
				}
			}
			time.Sleep(time.Second)
			c.mu.Lock()
			defer c.mu.Unlock()
			if w := &c.waiting; w.n.Load() != 0 || w.dials != 0 || w.first != nil || w.last != nil || w.undialed != nil {
				t.Errorf("seed %d: %+v", seed, w)
			}
		})
	}
}

// A server that closes right behind each answer, against its promise, loses no request:
// each ends, also one that takes a connection at the moment in which it is seen to have
// closed.
func TestCloseBehindTheAnswer(t *testing.T) {
	to := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		readRequest(c)
		io.WriteString(c, reply("abc"))
	})
	start := time.Now()
	c := NewClient(func(ctx context.Context) (net.Conn, error) { return Dial(ctx, to) }, func() time.Duration { return time.Since(start) })
	defer c.Close()
	const n = 3000
	ended := make(chan bool, n)
	for range n {
		go func() { do(c, &Exchange{Limits: Limits{Total: time.Second}}); ended <- true }()
		time.Sleep(20 * time.Microsecond)
	}
	for i := range n {
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("%d of %d requests have no end", n-i, n)
		}
	}
}
