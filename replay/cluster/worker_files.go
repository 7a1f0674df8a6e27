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
)

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
			if err := w.upload(ctx, name, name); err != nil {
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
		case <-time.After(max(beatEvery, w.plan.Every)):
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

// All workers may send a piece at once. What a server holds for the coordinator is then
// half of the 64 MiB above which it drops a client that does not keep up.
const (
	allPieces  = 32 << 20
	leastPiece = 16 << 10
)

// pieceSize is how large the pieces of a worker are.
func (w *Worker) pieceSize() int64 {
	return min(pieceBytes, w.nc.MaxPayload()/2, max(leastPiece, allPieces/int64(max(1, w.plan.Of))))
}

// upload sends a file in pieces, each again until it is acknowledged; name is what it
// is called there.
func (w *Worker) upload(ctx context.Context, file, name string) error {
	f, err := os.Open(filepath.Join(w.Dir, file))
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
	buf := make([]byte, w.pieceSize())
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
		case err != nil && (ctx.Err() != nil || time.Since(lastHeard) > orphanAfter):
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
