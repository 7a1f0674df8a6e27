package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// errEnded is how a process ended that said nothing.
var errEnded = errors.New("it ended without a word")

func splitSubject(s string) []string { return strings.Split(s, ".") }

// onRows takes a piece of a file.
func (c *Coordinator) onRows(msg *nats.Msg) {
	answer := c.piece(msg)
	if text, err := json.Marshal(answer); err == nil {
		msg.Respond(text)
	}
}

// fileForm is what files of a worker are called, and nothing else is written.
var fileForm = regexp.MustCompile(`^(worker\.json|[0-9]{1,4}/(run\.json|requests\.parquet|parts/[0-9]{8}\.parquet))$`)

// hears notes that a worker lives, whose piece has come: while it hands over a large
// file it sends no beats.
func (c *Coordinator) hears(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.members, func(m *member) bool { return m.name == name })
	if at < 0 {
		return false
	}
	m := c.members[at]
	m.silence, m.seen = max(m.silence, time.Since(m.seen)), time.Now()
	return true
}

func (c *Coordinator) piece(msg *nats.Msg) piece {
	name, file := workerOf(msg.Subject), msg.Header.Get(headerFile)
	known := c.hears(name)
	at, err := strconv.ParseInt(msg.Header.Get(headerOffset), 10, 64)
	if !known || err != nil || !fileForm.MatchString(file) || !filepath.IsLocal(name) {
		return piece{Error: fmt.Sprintf("%q is not a file of a worker of this run", file)}
	}
	path := filepath.Join(c.Config.Dir, receivedDir, name, filepath.FromSlash(file))
	next, err := writePiece(path, at, msg.Data, msg.Header.Get(headerSum))
	if err != nil {
		return piece{Error: err.Error()}
	}
	return piece{Next: next}
}

// arriving is what is added to the name of a file that is not whole yet.
const arriving = ".part"

// writePiece writes data at an offset, which is the end of what is there or before
// it, and returns where the next piece begins. With a sum, it is the last: the file then
// appears, whole, in place of an earlier one.
func writePiece(path string, at int64, data []byte, sum string) (next int64, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(path+arriving, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if at > info.Size() {
		return info.Size(), nil // what comes before has not come
	}
	if _, err := f.WriteAt(data, at); err != nil {
		return 0, err
	}
	if next = at + int64(len(data)); sum == "" {
		return next, nil
	}
	if err := f.Truncate(next); err != nil {
		return 0, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, next)); err != nil {
		return 0, err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return 0, fmt.Errorf("SHA-256 %.12s arrived, %.12s was sent", got, sum)
	}
	return next, os.Rename(path+arriving, path)
}
