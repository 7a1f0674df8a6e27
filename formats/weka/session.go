package weka

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/source"
	"reprise/trace"
)

// A session is one object being imported.
type session struct {
	*state
	object
	fields jsonx.Row // without requests
	basis  string
	name   string // unique over the import
	block  int
	sized  bool // block is the session's own
	scope  string

	parent []*row
	subs   []*subagent
	start  time.Duration // the session's own time of arrival 0
	about  imported
}

// imported is what export needs to know to undo what import did to a session.
type imported struct {
	Ordinal  uint64        `json:"ordinal,omitempty"`  // of its local ids; 0 = ids are as they were
	Permuted bool          `json:"permuted,omitempty"` // see spaced
	Start    time.Duration `json:"start_ns,omitempty"` // recorded time of arrival 0
	Nested   string        `json:"nested,omitempty"`   // Absolute, or "" for Relative
	NoID     bool          `json:"no_id,omitempty"`    // it had none
}

// session imports one object. ids are those of the file so far.
func (s *state) session(o object, basis string, ids map[string]bool) error {
	ses := &session{state: s, object: o, basis: basis}
	entries, err := ses.open(ids)
	if err != nil {
		s.counts.Read++
		return ses.bad("", o.raw, err)
	}
	if err := ses.read(entries); err != nil {
		return err
	}
	if !s.im.KeepPairs {
		if err := ses.merge(); err != nil {
			return err
		}
	}
	if err := ses.place(); err != nil {
		return err
	}
	rows := ses.rows()
	if len(rows) == 0 {
		return nil
	}
	ses.ids(rows)
	for i, r := range rows {
		r.req.ID = s.next + int64(i)
	}
	s.next += int64(len(rows))
	ses.link()
	ses.cutGaps(rows)
	if err := ses.describe(rows); err != nil {
		return err
	}
	ses.duplicates(entries)
	return ses.emitRows(rows)
}

// open reads the session's own fields.
func (ses *session) open(ids map[string]bool) ([]json.RawMessage, error) {
	f, entries, err := ses.object.fields()
	if err != nil {
		return nil, err
	}
	ses.fields = f
	if len(entries) == 0 {
		return nil, jsonx.Bad("requests", "empty")
	}
	size, err := peek(f, "block_size").Int("block_size")
	if err != nil {
		return nil, err
	}
	if size.Known && (size.Value == 0 || size.Value > 1<<30) {
		return nil, jsonx.Bad("block_size", "%d is no block size", size.Value)
	}
	if ses.block, ses.sized = int(size.Value), size.Known; !size.Known {
		if ses.block = ses.im.BlockTokens; ses.block == 0 {
			ses.block = DefaultBlockTokens
		}
	}
	scope, err := peek(f, "hash_id_scope").String("hash_id_scope")
	if err != nil {
		return nil, err
	}
	switch ses.scope = scope.Value; {
	case !scope.Known:
		ses.scope = "absent"
	case ses.scope != "local" && ses.scope != "global":
		return nil, jsonx.Bad("hash_id_scope", "%q is neither local nor global", ses.scope)
	}
	id, err := peek(f, "id").String("id")
	if err != nil {
		return nil, err
	}
	return entries, ses.identify(id, ids)
}

// identify makes the id unique over the import: a repeated one is told apart by
// its file, and is an error within one file.
func (ses *session) identify(id trace.Optional[string], ids map[string]bool) error {
	if !id.Known {
		ses.about.NoID = true
		id.Value = fmt.Sprintf("%s#%d", stem(ses.file.Base()), ses.line)
	}
	if ids[id.Value] {
		return &jsonx.FieldError{Field: "id", Err: fmt.Errorf("%q occurs twice in the file", id.Value), Fix: "give each session an id of its own"}
	}
	ids[id.Value] = true
	base := ses.file.Base()
	for i, name := range []string{id.Value, id.Value + "@" + base, id.Value + "@" + within(ses.file)} {
		if ses.names[name] {
			continue
		}
		if i > 0 {
			ses.note("session ids that occur in several files, told apart by the file's name", 1)
		}
		ses.name = name
		ses.names[name] = true
		return nil
	}
	return &jsonx.FieldError{Field: "id", Err: fmt.Errorf("%q occurs in several files of this name", id.Value), Fix: "give each session an id of its own, or each file another name"}
}

func stem(base string) string {
	name, _, _ := strings.Cut(base, ".")
	return name
}

// within returns the file's name with the directory it lies in.
func within(f *source.Source) string {
	return path.Join(filepath.Base(filepath.Dir(f.Name)), f.Base())
}

// bad rejects what is at path, "" for the whole session.
func (ses *session) bad(path string, raw []byte, err error) error {
	e := &trace.RowError{File: ses.file.Name, Line: ses.line, Err: err, Raw: string(raw), Field: path}
	if f, ok := errors.AsType[*jsonx.FieldError](err); ok {
		e.Err, e.Fix, e.Reason = f.Err, f.Fix, f.Field
		e.Field = strings.TrimPrefix(path+"."+f.Field, ".")
	}
	if e.Reason == "" {
		e.Reason = "not JSON"
	}
	return ses.reject(e)
}

// read sorts the entries into rows and sub-agents.
func (ses *session) read(entries []json.RawMessage) error {
	for i, raw := range entries {
		at := fmt.Sprintf("requests[%d]", i)
		f, err := ses.entry(raw)
		if err == nil && isMarker(f) {
			if err := ses.subagent(f, raw, at, i); err != nil {
				return err
			}
			continue
		}
		r, err := ses.request(f, raw, at, err)
		if err != nil {
			return err
		}
		if r != nil {
			r.pos = i
			ses.parent = append(ses.parent, r)
		}
	}
	return nil
}

// request returns a row, or nil if it was rejected.
func (ses *session) request(f jsonx.Row, raw json.RawMessage, path string, err error) (*row, error) {
	ses.counts.Read++
	var r *row
	if err == nil {
		if r, err = parse(f); err == nil {
			err = ses.fits(r)
		}
	}
	if err != nil {
		return nil, ses.bad(path, raw, err)
	}
	r.raw, r.path = raw, path
	return r, nil
}

// fits checks that the input has room for the row's blocks.
func (ses *session) fits(r *row) error {
	need := (r.req.InputTokens.Value + int64(ses.block) - 1) / int64(ses.block)
	if n := int64(len(r.req.Blocks)); n > need {
		return &jsonx.FieldError{Field: "hash_ids", Err: fmt.Errorf("%d ids of %d tokens, but in is %d, which has room for %d", n, ses.block, r.req.InputTokens.Value, need),
			Fix: "correct the session's block_size; where it has none, pass --block-tokens"}
	}
	return nil
}

func (ses *session) subagent(f jsonx.Row, raw json.RawMessage, path string, pos int) error {
	nested, err := takeRequests(f)
	if _, has := f["requests"]; err != nil && !has {
		nested, err = nil, nil // a marker that stands for itself
	}
	var sub *subagent
	if err == nil {
		sub, err = parseMarker(f)
	}
	if err != nil {
		ses.counts.Read++ // it and what it holds are one row
		return ses.bad(path, raw, err)
	}
	sub.path, sub.pos = path, pos
	sub.name = ses.agentName(sub.name)
	ses.subs = append(ses.subs, sub)
	for i, raw := range nested {
		at := fmt.Sprintf("%s.requests[%d]", path, i)
		f, err := ses.entry(raw)
		if err == nil && isMarker(f) {
			err = jsonx.Bad("type", "a sub-agent within a sub-agent is not read")
		}
		r, err := ses.request(f, raw, at, err)
		if err != nil {
			return err
		}
		if r != nil {
			r.sub, r.pos = sub, pos
			r.req.Agent = trace.Some(sub.name)
			sub.rows = append(sub.rows, r)
		}
	}
	return nil
}

// agentName makes names unique within the session.
func (ses *session) agentName(name string) string {
	if name == "" {
		name = fmt.Sprintf("subagent-%d", len(ses.subs)+1)
	}
	unique := name
	for n := 2; slices.ContainsFunc(ses.subs, func(o *subagent) bool { return o.name == unique }); n++ {
		unique = fmt.Sprintf("%s#%d", name, n)
	}
	return unique
}

// rows returns all rows in source order.
func (ses *session) rows() []*row {
	var all []*row
	subs := ses.subs
	for _, r := range ses.parent {
		for len(subs) > 0 && subs[0].pos < r.pos {
			all = append(all, subs[0].rows...)
			subs = subs[1:]
		}
		all = append(all, r)
	}
	for _, sub := range subs {
		all = append(all, sub.rows...)
	}
	return all
}

// ids sets the block columns. A row whose input is a whole number of blocks
// follows both rules; it is counted with the others of its session.
func (ses *session) ids(rows []*row) {
	ses.scopes[ses.scope]++
	if !ses.sized {
		ses.sizes++
	}
	size := int64(ses.block)
	tail := trace.TailDropped
	var lists [][]uint64
	for _, r := range rows {
		in, n := r.req.InputTokens.Value, int64(len(r.req.Blocks))
		if n > in/size {
			tail = trace.TailPartial
		}
		lists = append(lists, r.req.Blocks)
	}
	for _, r := range rows {
		if r.req.Blocks == nil {
			continue
		}
		in, n := r.req.InputTokens.Value, int64(len(r.req.Blocks))
		r.req.BlockTokens = trace.Some(int32(size))
		switch {
		case n < in/size:
			r.req.BlockTail = trace.Some(trace.TailOther)
		case n > in/size:
			r.req.BlockTail = trace.Some(trace.TailPartial)
		case in%size != 0:
			r.req.BlockTail = trace.Some(trace.TailDropped)
		default:
			r.req.BlockTail = trace.Some(tail)
		}
	}
	if ses.scope != "global" {
		ses.about.Ordinal, ses.about.Permuted = ses.spaces.place(lists)
	}
}

// duplicates counts what is told twice: sub-agents of one session, and whole
// sessions. They are kept.
func (ses *session) duplicates(entries []json.RawMessage) {
	all := sha256.New()
	for _, raw := range entries {
		all.Write(raw)
		all.Write([]byte{0})
	}
	sum := [32]byte(all.Sum(nil))
	if ses.seen[sum] {
		ses.note("sessions whose requests equal those of an earlier session", 1)
	}
	ses.seen[sum] = true
	lists := map[string]bool{}
	for _, sub := range ses.subs {
		var list strings.Builder
		for _, r := range sub.rows {
			list.Write(r.raw)
		}
		if list.Len() > 0 && lists[list.String()] {
			ses.note("sub-agents whose requests equal those of another in the session", 1)
		}
		lists[list.String()] = true
	}
}

func (ses *session) emitRows(rows []*row) error {
	for _, r := range rows {
		ses.batch.Append(&r.req)
		if ses.batch.Len() >= trace.BatchRows {
			if err := ses.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
