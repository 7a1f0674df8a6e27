// Package bailian reads the traces of Alibaba's Bailian service with Qwen models
// (alibaba-edu/qwen-bailian-usagetraces-anon): JSON lines with arrival, lengths,
// links to the parent chat and the ids of 16-token prefix blocks.
//
// The source leaves out: models, users, latencies, texts.
package bailian

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// DefaultBlockTokens is the block size of the published traces.
const DefaultBlockTokens = 16

// Detect tells a Bailian trace by the keys of its first row.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" || !h.Has("chat_id", "input_length", "timestamp") || !h.Has("parent_chat_id") && !h.Has("turn") {
		return "", false
	}
	return "first record has chat_id and input_length", true
}

// An Importer reads Bailian traces.
type Importer struct {
	BlockTokens int // tokens per block; 0 = as the file's name says (blksz_16), or DefaultBlockTokens
}

// Import implements formats.Importer. It reads the sources twice: a conversation
// is known when all its rows are. Its memory grows with the number of rows.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := &state{Sink: rows.New(emit, reject), im: im, several: len(src) > 1}
	for i, f := range src {
		s.ordinal, s.nodes = uint64(i), map[int64]*node{}
		size, why := im.blockTokens(f)
		s.size = size
		s.Guess("block size", fmt.Sprint(size), "--block-tokens", "%s", why)
		if err := s.links(ctx, f); err != nil {
			return trace.Meta{}, err
		}
		if err := s.Objects(ctx, []*source.Source{f}, s.visit); err != nil {
			return trace.Meta{}, err
		}
	}
	if s.several {
		s.Guess("scope of chat_id and hash_ids", "file", "", "%d files, and the format counts both from 0 in each", len(src))
	}
	return s.Meta("bailian", "")
}

var namedSize = regexp.MustCompile(`blksz_(\d{1,6})`)

// blockTokens returns the block size of a file and how it is known.
func (im *Importer) blockTokens(f *source.Source) (size int64, why string) {
	if im.BlockTokens > 0 {
		return int64(im.BlockTokens), "given"
	}
	if m := namedSize.FindStringSubmatch(f.Base()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			return int64(n), "the file's name says so"
		}
	}
	return DefaultBlockTokens, "that of the published traces"
}

// state is one import.
type state struct {
	*rows.Sink
	im      *Importer
	several bool   // files, whose ids are kept apart
	ordinal uint64 // of the file
	size    int64
	nodes   map[int64]*node
	seen    int64 // rows of the file that were kept
}

// A row is one parsed line.
type row struct {
	req          trace.Request
	chat, parent int64
	turn         int64
}

func (s *state) parse(r *rows.Record) (row, error) {
	p := row{req: r.Place(trace.OpChat), parent: none, turn: 1}
	chat, err := integer(r.Row, "chat_id")
	if err != nil {
		return p, err
	}
	if !chat.Known {
		return p, jsonx.Bad("chat_id", "missing")
	}
	p.chat = chat.Value
	parent, err := integer(r.Row, "parent_chat_id")
	if err != nil {
		return p, err
	}
	p.parent = parent.Or(none)
	if p.req.Arrival, err = rows.TakeUnits(r.Row, time.Second, "timestamp"); err != nil {
		return p, err
	}
	if !p.req.Arrival.Known {
		return p, jsonx.Bad("timestamp", "missing")
	}
	if p.req.InputTokens, err = r.Row.Int("input_length"); err != nil {
		return p, err
	}
	if !p.req.InputTokens.Known {
		return p, jsonx.Bad("input_length", "missing")
	}
	if p.req.OutputTokens, err = r.Row.Int("output_length"); err != nil {
		return p, err
	}
	turn, err := r.Row.Int("turn")
	if err != nil {
		return p, err
	}
	if p.turn = turn.Or(1); p.turn < 1 || p.turn > math.MaxInt32 {
		return p, jsonx.Bad("turn", "%d is no turn: they count from 1", p.turn)
	}
	return p, s.blocks(r.Row, &p)
}

// integer takes an integer that may be below 0.
func integer(r jsonx.Row, name string) (trace.Optional[int64], error) {
	_, raw, ok := r.Take(name)
	if !ok {
		return trace.Optional[int64]{}, nil
	}
	n, err := jsonx.Int(raw)
	if err != nil {
		return trace.Optional[int64]{}, &jsonx.FieldError{Field: name, Err: err}
	}
	return trace.Some(n), nil
}

// ordinalBits is how far the file's ordinal is put above ids of several files.
const ordinalBits = 48

func (s *state) blocks(f jsonx.Row, p *row) (err error) {
	if p.req.Blocks, err = f.IDs("hash_ids"); err != nil {
		return err
	}
	for i := range p.req.Blocks {
		if s.several {
			if p.req.Blocks[i] >= 1<<ordinalBits {
				return jsonx.Bad("hash_ids", "%d at position %d is above 2^48, too much to keep several files apart", p.req.Blocks[i], i)
			}
			p.req.Blocks[i] |= s.ordinal << ordinalBits
		}
	}
	if err := rows.SetBlocks(&p.req, "hash_ids", s.size); err != nil {
		return err
	}
	if raw, ok := f["type"]; ok && string(raw) == `"image"` {
		p.req.Media = []trace.Media{{Kind: "image"}}
	}
	return nil
}

// visit emits a row whose links are known.
func (s *state) visit(r *rows.Record) error {
	p, err := s.parse(r)
	if err != nil {
		return err
	}
	if s.seen == 0 {
		s.Guess("unit of timestamp", "s", "", "the format says so")
	}
	s.seen++
	s.session(&p)
	if tail := p.req.BlockTail.Value; tail != trace.TailPartial && p.req.Blocks != nil {
		s.Note("rows with fewer hash_ids than ceil(input_length / block size)", 1)
	}
	s.Attributes(&p.req, "", r.Row, "type")
	return s.Add(&p.req)
}
