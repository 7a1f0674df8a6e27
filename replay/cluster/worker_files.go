package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"reprise/trace"
)

// traceObject is the name of the trace in the object store.
const traceObject = "trace"

// findTrace returns where the trace of the plan is: at its path, if that holds the
// same bytes, or fetched from the object store.
func (w *Worker) findTrace(ctx context.Context) (string, error) {
	want := w.plan.Base.Trace
	if in, err := trace.Identify(w.plan.Path); !w.Fetch && err == nil && in.SHA256 == want.SHA256 {
		return w.plan.Path, nil
	}
	w.mu.Lock()
	w.want = true
	w.mu.Unlock()
	select {
	case <-w.stored:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	path := filepath.Join(w.Dir, "trace.parquet")
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		return "", err
	}
	if err := w.fetch(ctx, path); err != nil {
		return "", fmt.Errorf("fetch the trace from the object store: %w", err)
	}
	in, err := trace.Identify(path)
	if err != nil {
		return "", err
	}
	if in.SHA256 != want.SHA256 {
		return "", fmt.Errorf("the trace from the object store has SHA-256 %.12s, and not %.12s as the coordinator's", in.SHA256, want.SHA256)
	}
	return path, nil
}

func (w *Worker) fetch(ctx context.Context, path string) error {
	js, err := jetstream.New(w.nc)
	if err != nil {
		return err
	}
	store, err := js.ObjectStore(ctx, w.store)
	if err != nil {
		return err
	}
	return store.GetFile(ctx, traceObject, path)
}

// putTrace puts a trace into an object store of its own.
func putTrace(ctx context.Context, nc *nats.Conn, bucket, path string) (remove func(), err error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	store, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucket, TTL: 24 * time.Hour})
	if err != nil {
		return nil, trace.WithFix(fmt.Errorf("no object store for the trace: %w", err), "switch JetStream on in the server, or have the trace at the same path on all workers")
	}
	remove = func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		js.DeleteObjectStore(ctx, bucket) // else it goes with its TTL
	}
	f, err := os.Open(path)
	if err != nil {
		return remove, err
	}
	defer f.Close()
	_, err = store.Put(ctx, jetstream.ObjectMeta{Name: traceObject}, f)
	return remove, err
}

// deliver hands the results over and waits until they have been taken.
func (w *Worker) deliver(ctx context.Context, o *orders) error {
	w.mu.Lock()
	w.clock.close()
	w.mu.Unlock()
	for range clockBurst {
		w.beat(ctx, false)
	}
	if err := w.keep(); err != nil {
		return err
	}
	if o.Upload {
		files, err := w.files()
		if err != nil {
			return err
		}
		for _, name := range files {
			if err := w.upload(ctx, name); err != nil {
				return fmt.Errorf("hand over %s: %w", name, err)
			}
		}
	}
	for begin := time.Now(); time.Since(begin) < orphanAfter; {
		o, err := w.beat(ctx, true)
		if err == nil && o.Bye {
			return nil
		}
		select {
		case <-time.After(beatEvery):
		case <-w.Parent:
			return errors.New("the coordinator is gone")
		}
	}
	return errors.New("the coordinator is silent")
}

// files lists what makes this worker's results, worker.json last.
func (w *Worker) files() ([]string, error) {
	var out []string
	for n := range len(w.legs) {
		leg := strconv.Itoa(n)
		err := fs.WalkDir(os.DirFS(w.Dir), leg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				out = append(out, path)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return append(out, keptFile), nil
}

// pieceBytes is the size of a piece of a file; a server takes no messages above 1
// MiB unless it is told to.
const pieceBytes = 512 << 10

// upload sends a file in pieces, each again until it is acknowledged.
func (w *Worker) upload(ctx context.Context, name string) error {
	f, err := os.Open(filepath.Join(w.Dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	whole := sha256.New()
	size, err := io.Copy(whole, f)
	if err != nil {
		return err
	}
	sum := hex.EncodeToString(whole.Sum(nil))
	buf := make([]byte, min(pieceBytes, w.nc.MaxPayload()/2))
	lastHeard := time.Now()
	for at := int64(0); ; {
		n, err := f.ReadAt(buf, at)
		if err != nil && err != io.EOF {
			return err
		}
		m := &nats.Msg{Subject: w.Bus.subject(w.Name, "rows"), Data: bytes.Clone(buf[:n]), Header: nats.Header{headerFile: {name}, headerOffset: {strconv.FormatInt(at, 10)}}}
		if at+int64(n) == size {
			m.Header[headerSum] = []string{sum}
		}
		answer, err := w.sendPiece(ctx, m)
		switch {
		case err != nil && time.Since(lastHeard) > orphanAfter:
			return err
		case err != nil:
			time.Sleep(beatEvery)
			continue
		case answer.Error != "":
			return errors.New(answer.Error)
		}
		lastHeard = time.Now()
		if at = answer.Next; at == size {
			return nil
		}
	}
}

func (w *Worker) sendPiece(ctx context.Context, m *nats.Msg) (piece, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var out piece
	answer, err := w.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(answer.Data, &out)
}
