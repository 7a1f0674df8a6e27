package synth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"reprise/analysis/stats"
	"reprise/trace"
	"reprise/trace/column"
)

// An Anonymizing takes from a trace what says whose it is: names and block ids
// become keyed hashes, content becomes counts, and dates, files and attributes
// go. Equal names stay equal, so that sessions, clients and prefix reuse stay;
// without the key nobody can test a guess of a name.
type Anonymizing struct {
	Key    []byte                // of the hashes; at least MinKey bytes
	Models bool                  // model names too
	Jitter time.Duration         // arrivals move by up to this, the order within a session stays; 0 = none
	Seed   uint64                // of the jitter
	Count  func(text string) int // tokens of a text, for content without counts; nil = such rows are an error
	Memory int64                 // bytes that putting rows in order may hold, for Jitter
}

// MinKey is the least length of a key, in bytes.
const MinKey = 16

// Anonymized is what was done, and what may still identify.
type Anonymized struct {
	Rows    int64            `json:"rows"`
	Removed map[string]int64 `json:"removed"` // rows by what was taken from them
	Leaks   []Leak           `json:"leaks"`   // what is left that somebody may recognise
}

// A Leak is something that is still there.
type Leak struct {
	What string `json:"what"`
	N    int64  `json:"n"`
	Why  string `json:"why"`
}

type anonymizer struct {
	*Anonymizing
	Anonymized
	blocks  map[uint64]uint64
	names   map[string]string
	pairs   map[[2]int64]int64 // rows by lengths
	models  map[string]int64
	clients map[string]int64
	last    map[uint64]int64 // moved arrival of the session before
	base    base
}

// maxNames bounds what is remembered of hashes that were made; they are made
// anew beyond.
const maxNames = 1 << 20

// Run hands the rows to emit in canonical order.
func (a *Anonymizing) Run(ctx context.Context, open Open, emit func(*trace.Batch) error) (trace.Meta, Anonymized, error) {
	if len(a.Key) < MinKey {
		return trace.Meta{}, Anonymized{}, trace.WithFix(fmt.Errorf("the key has %d bytes, at least %d are needed", len(a.Key), MinKey), "make one with: openssl rand -hex 32")
	}
	if a.Jitter < 0 {
		return trace.Meta{}, Anonymized{}, fmt.Errorf("--time-jitter %v: must not be below 0", a.Jitter)
	}
	w := &anonymizer{Anonymizing: a, Anonymized: Anonymized{Removed: map[string]int64{}}, blocks: map[uint64]uint64{}, names: map[string]string{},
		pairs: map[[2]int64]int64{}, models: map[string]int64{}, clients: map[string]int64{}, last: map[uint64]int64{}}
	r, err := open()
	if err != nil {
		return trace.Meta{}, w.Anonymized, err
	}
	meta := r.Meta()
	r.Close()
	var sorter *trace.Sorter
	if a.Jitter > 0 {
		if meta.Clock != trace.ClockTrace {
			return meta, w.Anonymized, trace.WithFix(errors.New("--time-jitter: the trace has no clock over all rows"), "leave it out")
		}
		sorter = &trace.Sorter{Memory: a.Memory}
		defer sorter.Close()
	}
	if err := w.all(ctx, open, sorter, emit); err != nil {
		return meta, w.Anonymized, err
	}
	w.leaks(meta)
	out := trace.Meta{Clock: meta.Clock, Format: meta.Format, TickNS: meta.TickNS, Counts: trace.Counts{Read: w.Rows, Kept: w.Rows}}
	if a.Jitter > 0 {
		out.TickNS = trace.Optional[int64]{}
	}
	for _, s := range meta.History { // the commands, without names of files and without flags
		out.History = append(out.History, trace.Step{Command: s.Command, Version: s.Version})
	}
	return out, w.Anonymized, nil
}

func (w *anonymizer) all(ctx context.Context, open Open, sorter *trace.Sorter, emit func(*trace.Batch) error) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	last := int64(0)
	err = trace.EachBatch(ctx, r, func(b *trace.Batch) error {
		for i := range b.Len() {
			if err := w.row(b, i); err != nil {
				return err
			}
			if sorter != nil {
				w.move(b, i)
				if at, ok := b.ArrivalNS.Get(i); ok {
					last = at
				}
				if err := sorter.Add(b, i, trace.Key{Major: last}); err != nil {
					return err
				}
			}
		}
		if sorter == nil {
			return emit(b)
		}
		return nil
	})
	if err != nil || sorter == nil {
		return err
	}
	return sorter.Sorted(func(b *trace.Batch) error {
		w.base.apply(b, false)
		return emit(b)
	})
}

// row anonymizes row i in place.
func (w *anonymizer) row(b *trace.Batch, i int) error {
	w.Rows++
	if err := w.content(b, i); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		of   *column.Flat[string]
	}{{"session", &b.SessionID}, {"client", &b.ClientID}, {"agent", &b.Agent}, {"source id", &b.SourceID}} {
		if v, ok := c.of.Get(i); ok {
			c.of.Values[i] = w.hash(c.name, v)
			w.Removed[c.name+" names, hashed"]++
		}
	}
	if v, ok := b.Model.Get(i); ok {
		if w.Models {
			b.Model.Values[i] = w.hash("model", v)
			w.Removed["model names, hashed"]++
		}
		w.models[b.Model.Values[i]]++
	}
	if v, ok := b.ClientID.Get(i); ok && len(w.clients) < maxNames {
		w.clients[v]++
	}
	ids, _ := b.Blocks(i)
	for k, id := range ids {
		ids[k] = w.block(id)
	}
	if len(ids) > 0 {
		w.Removed["block ids, hashed"]++
	}
	w.drop("source files", b.SourceFile.Null, i)
	w.drop("source rows", b.SourceRow.Null, i)
	b.SourceFile.Values[i] = ""
	in, _ := b.InputTokens.Get(i)
	out, _ := b.OutputTokens.Get(i)
	if len(w.pairs) < maxNames {
		w.pairs[[2]int64{in, out}]++
	}
	return nil
}

// drop makes a value unknown.
func (w *anonymizer) drop(what string, null []bool, i int) {
	if !null[i] {
		null[i] = true
		w.Removed[what]++
	}
}

// content takes texts away; lengths that nobody counted are counted first.
func (w *anonymizer) content(b *trace.Batch, i int) error {
	texts := []*column.Flat[string]{&b.Prompt, &b.Messages, &b.Body}
	for _, c := range texts {
		text, ok := c.Get(i)
		if !ok {
			continue
		}
		if b.InputTokens.Null[i] {
			if w.Count == nil {
				return trace.WithFix(fmt.Errorf("id %d has content without a count of tokens: without the text nothing would be left of it", b.ID.Values[i]), "count it with --tokenizer tokenizer.json")
			}
			if !b.MessagesMode.Null[i] && b.MessagesMode.Values[i] == trace.MessagesDelta {
				return trace.WithFix(fmt.Errorf("id %d has only what its turn adds: the whole prompt is not counted", b.ID.Values[i]), "import the source again with --tokenizer")
			}
			set(&b.InputTokens, i, int64(w.Count(text)))
		}
	}
	if text, ok := b.OutputText.Get(i); ok && b.OutputTokens.Null[i] && w.Count != nil {
		set(&b.OutputTokens, i, int64(w.Count(text)))
	}
	had := false
	for _, c := range append(texts, &b.MessagesMode, &b.Tools, &b.Extra, &b.OutputText, &b.OutputMessage) {
		had = had || !c.Null[i]
		c.Null[i], c.Values[i] = true, ""
	}
	if had {
		w.Removed["content"]++
	}
	if from, to, known := b.Attributes.Range(i); known && from < to {
		w.Removed["attributes"]++
		b.ClearAttributes(i)
	}
	return nil
}

func (w *anonymizer) sum(kind string, text []byte) []byte {
	h := hmac.New(sha256.New, w.Key)
	io.WriteString(h, kind)
	h.Write([]byte{0})
	h.Write(text)
	return h.Sum(nil)
}

// hash names a name: 64 bits of HMAC-SHA256, as text.
func (w *anonymizer) hash(kind, name string) string {
	key := kind + "\x00" + name
	if v, ok := w.names[key]; ok {
		return v
	}
	v := hex.EncodeToString(w.sum(kind, []byte(name))[:8])
	if len(w.names) < maxNames {
		w.names[key] = v
	}
	return v
}

func (w *anonymizer) block(id uint64) uint64 {
	if v, ok := w.blocks[id]; ok {
		return v
	}
	v := binary.BigEndian.Uint64(w.sum("block", binary.BigEndian.AppendUint64(nil, id))) >> 1 // so that readers with signed integers take it
	if len(w.blocks) < maxNames {
		w.blocks[id] = v
	}
	return v
}

// move shifts an arrival by chance, never before the session's row before.
func (w *anonymizer) move(b *trace.Batch, i int) {
	at, ok := b.ArrivalNS.Get(i)
	if !ok {
		return
	}
	u := 2*stats.Draw(w.Seed, drawSpread, uint64(b.ID.Values[i])) - 1
	at = max(0, at+int64(u*float64(w.Jitter)))
	if id, named := b.SessionID.Get(i); named {
		key := textKey(id)
		at = max(at, w.last[key])
		w.last[key] = at
	}
	b.ArrivalNS.Values[i] = at
}

// leaks lists what is left that somebody may recognise.
func (w *anonymizer) leaks(meta trace.Meta) {
	add := func(what string, n int64, why string) {
		if n > 0 {
			w.Leaks = append(w.Leaks, Leak{what, n, why})
		}
	}
	var unique int64
	for _, n := range w.pairs {
		if n == 1 {
			unique++
		}
	}
	add("rows with a pair of input and output lengths of their own", unique, "who knows the lengths of a request finds its row")
	if !w.Models {
		names := slices.Sorted(maps.Keys(w.models))
		if len(names) > 5 {
			names = append(names[:5], "...")
		}
		add("model names", int64(len(w.models)), fmt.Sprintf("kept as they are: %v; hash them with --models", names))
	}
	var rare int64
	for _, n := range w.clients {
		if n < 5 {
			rare++
		}
	}
	add("clients with fewer than 5 requests", rare, "a rare client stands out, whatever its name")
	if meta.Clock == trace.ClockTrace && w.Jitter == 0 {
		add("rows with their exact time since the first", w.Rows, "who knows when requests came can line them up; --time-jitter blurs that")
	}
	if w.Removed["block ids, hashed"] > 0 {
		add("rows with block ids", w.Removed["block ids, hashed"], "which prompts share a beginning, and how long it is, is kept on purpose")
	}
}
