package baseten

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// attrSigned marks rows whose hashes were signed integers with values below 0;
// block_ids hold the same 64 bits.
const attrSigned = "total_hashes_signed"

// parse reads row i of the bound batch.
func (s *state) parse(l *layout, i int) (*trace.Request, error) {
	r := &trace.Request{Operation: trace.OpCompletion}
	for _, step := range []func(*layout, int, *trace.Request) error{s.parseRequired, s.parseSession, s.parseHashes, s.parseMeasured, s.parseText} {
		if err := step(l, i, r); err != nil {
			return nil, err
		}
	}
	for _, c := range l.extra {
		name, json := l.sc.Field(c).Name, cellJSON
		if isDocumented(name) {
			json = textJSON
		}
		if text := json(l.cols[c], i); text != "" {
			set(r, name, text)
		}
	}
	return r, nil
}

func set(r *trace.Request, key, json string) {
	if r.Attributes == nil {
		r.Attributes = map[string]string{}
	}
	r.Attributes[key] = json
}

// keep sets the attribute of a column whose cell the canonical row does not
// hold as it is.
func keep(l *layout, i int, r *trace.Request, name string) {
	if text := textJSON(l.col(name), i); text != "" {
		set(r, name, text)
	}
}

func (s *state) parseRequired(l *layout, i int, r *trace.Request) error {
	ns, known, exact, err := millis(l.col(colTime), i)
	switch {
	case err != nil:
		return &jsonx.FieldError{Field: colTime, Err: err, Fix: "the column holds Unix time in milliseconds"}
	case !known:
		return jsonx.Bad(colTime, "null")
	case ns < 0:
		return jsonx.Bad(colTime, "%s ms is below 0", strconv.FormatFloat(float64(ns)/1e6, 'f', -1, 64))
	case !exact:
		keep(l, i, r, colTime)
	}
	r.Arrival = trace.Some(time.Duration(ns))
	prompt, known, err := text(l.col(colPrompt), i)
	if err != nil {
		return jsonx.Bad(colPrompt, "%w", err)
	}
	if !known {
		return jsonx.Bad(colPrompt, "null")
	}
	r.Prompt = trace.Some(prompt)
	if r.InputTokens, err = requiredCount(l, i, colInput); err != nil {
		return err
	}
	r.OutputTokens, err = requiredCount(l, i, colOutput)
	return err
}

func requiredCount(l *layout, i int, name string) (trace.Optional[int64], error) {
	v, known, err := count(l.col(name), i)
	switch {
	case err != nil:
		return trace.Optional[int64]{}, jsonx.Bad(name, "%w", err)
	case !known:
		return trace.Optional[int64]{}, jsonx.Bad(name, "null")
	case v < 0:
		return trace.Optional[int64]{}, jsonx.Bad(name, "%d is below 0", v)
	}
	return trace.Some(v), nil
}

func (s *state) parseSession(l *layout, i int, r *trace.Request) error {
	keep(l, i, r, colProvided)
	keep(l, i, r, colPoor)
	if l.session == "" {
		return nil
	}
	id, known := ident(l.col(l.session), i)
	if known && id == "" {
		s.note("rows whose session is an empty text, taken as none", 1)
	}
	if known && id != "" {
		r.Session = trace.Some(id)
	}
	return nil
}

func (s *state) parseHashes(l *layout, i int, r *trace.Request) error {
	ids, signed, err := hashes(l.col(colHashes), i)
	if err != nil {
		return jsonx.Bad(colHashes, "%w", err)
	}
	size, known, err := count(l.col(colBlock), i)
	switch {
	case err != nil:
		return jsonx.Bad(colBlock, "%w", err)
	case known && (size <= 0 || size > math.MaxInt32):
		if len(ids) > 0 {
			return jsonx.Bad(colBlock, "%d is no block size, and there are %d hashes", size, len(ids))
		}
		keep(l, i, r, colBlock)
		known = false
	case !known && len(ids) > 0 && s.im.BlockTokens > 0:
		set(r, colBlock, "null")
		size, known = int64(s.im.BlockTokens), true
		s.givenBlock++
	case !known && len(ids) > 0:
		keep(l, i, r, colHashes)
		ids = nil
		s.note("rows with hashes but no block_size, hashes kept in attributes (--block-tokens sets one)", 1)
	}
	if known {
		r.BlockTokens = trace.Some(int32(size))
	}
	if ids == nil {
		return nil
	}
	if r.Blocks = ids; signed {
		set(r, attrSigned, "true")
	}
	if known {
		r.BlockTail = trace.Some(tail(r.InputTokens.Value, size, int64(len(ids))))
	}
	return s.hashesLen(l, i, len(ids))
}

// tail tells which rule the number of hashes follows; the format fixes none.
func tail(input, size, n int64) string {
	switch n {
	case (input + size - 1) / size:
		return trace.TailPartial
	case input / size:
		return trace.TailDropped
	}
	return trace.TailOther
}

// hashesLen counts lists that the recorded length disagrees with; the list is
// trusted.
func (s *state) hashesLen(l *layout, i, n int) error {
	c := l.sc.FieldIndices(colHashesLen)
	if len(c) == 0 || !isNumber(base(l.sc.Field(c[0]).Type)) {
		return nil
	}
	if v, known, err := count(l.cols[c[0]], i); err == nil && known && v != int64(n) {
		s.note("total_hashes_len disagrees with the list, which is trusted", 1)
	}
	return nil
}

func (s *state) parseMeasured(l *layout, i int, r *trace.Request) (err error) {
	if r.RecordedE2E, err = s.duration(l, i, r, colE2E); err != nil {
		return err
	}
	if r.RecordedTTFT, err = s.duration(l, i, r, colTTFT); err != nil {
		return err
	}
	cached, known, err := count(l.col(colCached), i)
	switch {
	case err != nil:
		return jsonx.Bad(colCached, "%w", err)
	case known && cached < 0:
		s.belowZero(l, i, r, colCached)
	case known:
		r.CachedTokens = trace.Some(cached)
	}
	return s.parseStatus(l, i, r)
}

// duration reads a time that may be unknown; one below 0 is.
func (s *state) duration(l *layout, i int, r *trace.Request, name string) (d trace.Optional[time.Duration], err error) {
	ns, known, exact, err := millis(l.col(name), i)
	switch {
	case err != nil:
		return d, jsonx.Bad(name, "%w", err)
	case !known:
		return d, nil
	case ns < 0:
		s.belowZero(l, i, r, name)
		return d, nil
	case !exact:
		keep(l, i, r, name)
	}
	return trace.Some(time.Duration(ns)), nil
}

func (s *state) belowZero(l *layout, i int, r *trace.Request, name string) {
	keep(l, i, r, name)
	s.note(name+" below 0, taken as unknown and kept in attributes", 1)
}

// parseStatus tells how the request ended. A row without output that was not
// cancelled ended empty.
func (s *state) parseStatus(l *layout, i int, r *trace.Request) error {
	v, known, err := count(l.col(colCanceled), i)
	if err == nil && known && v != 0 && v != 1 {
		err = fmt.Errorf("%d is neither 0 nor 1", v)
	}
	if err != nil {
		return jsonx.Bad(colCanceled, "%w", err)
	}
	keep(l, i, r, colCanceled)
	switch {
	case v == 1:
		r.Status, r.Cancel = trace.Some(trace.StatusCancelled), r.RecordedE2E
	case r.OutputTokens.Value == 0:
		r.Status = trace.Some(trace.StatusEmpty)
	default:
		r.Status = trace.Some(trace.StatusOK)
	}
	return nil
}

func (s *state) parseText(l *layout, i int, r *trace.Request) error {
	out, known, err := text(l.col(colOutputText), i)
	if err != nil {
		return jsonx.Bad(colOutputText, "%w", err)
	}
	if known {
		r.OutputText = trace.Some(out)
	}
	for name, to := range map[string]*trace.Optional[string]{colModel: &r.Model, colOrg: &r.ClientID} {
		id, known := ident(l.col(name), i)
		if !known {
			continue
		}
		*to = trace.Some(id)
		if !isText(base(l.sc.Field(l.at[name]).Type)) {
			keep(l, i, r, name) // a number there is a number again
		}
	}
	return nil
}
