package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"reprise/replay"
	"reprise/trace"
)

// gatherShares is how long the coordinator waits for more workers that want shares, since
// one way through the trace makes them all; two beats.
const gatherShares = 2 * beatEvery

// A share says where in the object store the rows of one of a worker's legs are, and when
// they are sent; see replay.Deal.
type share struct {
	Leg   int    `json:"leg"`
	Rows  object `json:"rows"`
	Times object `json:"times"`
	Error string `json:"error,omitempty"` // it could not be made
	Fix   string `json:"fix,omitempty"`
}

// An object is one in the store, and the SHA-256 of what it holds.
type object struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// A wish is a share that a member wants.
type wish struct {
	of  *member
	leg int
}

// wishFor notes which shares a member wants, and returns those that are there. The caller
// holds mu.
func (c *Coordinator) wishFor(m *member, legs []int) (there []share) {
	for _, leg := range legs {
		at := slices.IndexFunc(m.shares, func(s share) bool { return s.Leg == leg })
		if at >= 0 {
			there = append(there, m.shares[at])
			continue
		}
		if w := (wish{m, leg}); leg >= 0 && leg <= len(m.takeover) && !slices.Contains(c.wishes, w) {
			c.wishes = append(c.wishes, w)
		}
	}
	if len(c.wishes) > 0 && !c.dealing && !c.closed {
		c.dealing = true
		c.making.Go(c.deal)
	}
	return there
}

// deal makes shares until none is wanted. Those that are wanted at about the same time
// are made together.
func (c *Coordinator) deal() {
	for {
		time.Sleep(gatherShares)
		c.mu.Lock()
		wishes := c.wishes
		if c.dealing = len(wishes) > 0 && !c.closed; !c.dealing {
			c.mu.Unlock()
			return
		}
		var shards []replay.Shard
		for _, w := range wishes {
			shards = append(shards, c.shardOf(w))
		}
		c.mu.Unlock()
		c.Log("puts %s of the trace into the object store, for workers that do not have it", trace.Plural(len(wishes), "share"))
		made := make([]share, len(wishes))
		err := c.dealShares(wishes, shards, made)
		c.mu.Lock()
		for i, w := range wishes {
			if err != nil {
				made[i] = share{Error: err.Error(), Fix: trace.Fix(err)}
			}
			made[i].Leg = w.leg
			w.of.shares = append(w.of.shares, made[i])
		}
		c.wishes = slices.Clone(c.wishes[len(wishes):]) // what came meanwhile is behind them
		c.mu.Unlock()
	}
}

// shardOf is the shard of a member's leg. The caller holds mu.
func (c *Coordinator) shardOf(w wish) replay.Shard {
	if w.leg == 0 {
		return replay.Shard{Owns: w.of.slots.has, Sessions: c.keep}
	}
	return w.of.takeover[w.leg-1].shard(c.keep)
}

// dealShares makes shares and puts them into the object store, until the run is over.
func (c *Coordinator) dealShares(wishes []wish, shards []replay.Shard, made []share) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-c.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	store, err := c.objects(ctx)
	if err != nil {
		return err
	}
	return replay.Deal(ctx, c.Config, c.survey, shards, func(i int, times []byte) (io.WriteCloser, error) {
		name := fmt.Sprintf("%s-%d", wishes[i].of.name, wishes[i].leg)
		sum := sha256.Sum256(times)
		made[i].Times = object{Name: name + ".times", SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(times))}
		if _, err := store.PutBytes(ctx, made[i].Times.Name, times); err != nil {
			return nil, err
		}
		made[i].Rows.Name = name + ".parquet"
		f, err := os.CreateTemp("", "reprise-share-*")
		if err != nil {
			return nil, err
		}
		os.Remove(f.Name()) // it lives as long as it is open
		return &stored{ctx: ctx, store: store, f: f, sum: sha256.New(), is: &made[i].Rows}, nil
	})
}

// objects is the run's object store, which is made when it is first wanted.
func (c *Coordinator) objects(ctx context.Context) (jetstream.ObjectStore, error) {
	if c.store != nil {
		return c.store, nil
	}
	js, err := jetstream.New(c.nc)
	if err != nil {
		return nil, err
	}
	store, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: c.run, TTL: 24 * time.Hour})
	if err != nil {
		return nil, trace.WithFix(fmt.Errorf("no object store for the trace: %w", err), "switch JetStream on in the server, or have the trace at the same path on all workers")
	}
	c.store = store
	return store, nil
}

// dropShares ends the making of shares, and takes the object store away.
func (c *Coordinator) dropShares() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	close(c.closing)
	c.making.Wait()
	if c.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if js, err := jetstream.New(c.nc); err == nil {
		js.DeleteObjectStore(ctx, c.run) // else it goes with its TTL
	}
}

// stored is a file that goes into the object store when it is closed.
type stored struct {
	ctx   context.Context
	store jetstream.ObjectStore
	f     *os.File
	sum   hash.Hash
	is    *object
}

func (s *stored) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	s.sum.Write(p[:n])
	s.is.Bytes += int64(n)
	return n, err
}

func (s *stored) Close() error {
	s.is.SHA256 = hex.EncodeToString(s.sum.Sum(nil))
	_, err := s.f.Seek(0, io.SeekStart)
	if err == nil {
		_, err = s.store.Put(s.ctx, jetstream.ObjectMeta{Name: s.is.Name}, s.f)
	}
	return errors.Join(err, s.f.Close())
}
