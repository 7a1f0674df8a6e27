package mooncake

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// Attributes under which fields without a column are kept, values as JSON.
const (
	attrTimestamp = "timestamp"    // where the column cannot hold it exactly
	attrContext   = "context_mode" // AIPerf
	attrRequest   = "request_id"   // Dynamo; also in source_id
	attrMode      = "message_mode"
)

// parse reads the fields of one line. Exactly one of the four input modes of
// AIPerf's dialect must be there.
func (s *state) parse(f jsonx.Row) (*row, error) {
	r := &row{mode: trace.MessagesFull}
	if err := s.parseTimes(f, r); err != nil {
		return nil, err
	}
	if err := parseLengths(f, r); err != nil {
		return nil, err
	}
	if err := parseContent(f, r); err != nil {
		return nil, err
	}
	if err := parseSession(f, r); err != nil {
		return nil, err
	}
	if err := oneMode(r); err != nil {
		return nil, err
	}
	if kind, ok := f["type"]; ok && string(kind) == `"mooncake_trace"` {
		delete(f, "type")
	}
	attributes := f.Attributes()
	for k, v := range attributes {
		if r.req.Attributes == nil {
			r.req.Attributes = map[string]string{}
		}
		r.req.Attributes[k] = v
		s.unknown[k]++
	}
	return r, nil
}

func (r *row) attribute(key, value string) {
	if r.req.Attributes == nil {
		r.req.Attributes = map[string]string{}
	}
	r.req.Attributes[key] = value
}

func (s *state) parseTimes(f jsonx.Row, r *row) (err error) {
	raw := f["timestamp"]
	var v float64
	if r.req.Arrival, v, err = f.Time(s.unit, "timestamp", "created_time"); err != nil {
		return err
	}
	if at, ok := r.req.Arrival.Get(); ok && float64(at)/float64(s.unit) != v && raw != nil {
		r.attribute(attrTimestamp, string(raw))
	}
	if r.req.Delay, v, err = f.Time(s.unit, "delay", "delay_ms"); err != nil {
		return err
	}
	if r.req.Delay.Known && v < 0 {
		return jsonx.Bad("delay", "%v is below 0", v)
	}
	return nil
}

func parseLengths(f jsonx.Row, r *row) (err error) {
	if r.req.InputTokens, err = f.Int("input_length", "input_tokens"); err != nil {
		return err
	}
	if r.req.OutputTokens, err = f.Int("output_length", "output_tokens"); err != nil {
		return err
	}
	if r.req.Blocks, err = f.IDs("hash_ids"); err != nil {
		return err
	}
	size, err := f.Int("block_size")
	if err != nil {
		return err
	}
	if v, ok := size.Get(); ok {
		if v == 0 || v > math.MaxInt32 {
			return jsonx.Bad("block_size", "%d is no block size", v)
		}
		r.ownBlock = int(v)
	}
	if r.req.Blocks != nil && !r.req.InputTokens.Known {
		return &jsonx.FieldError{Field: "hash_ids", Err: fmt.Errorf("%d ids without input_length", len(r.req.Blocks)), Fix: "add the prompt's length as input_length"}
	}
	return nil
}

func parseContent(f jsonx.Row, r *row) (err error) {
	r.req.Operation = trace.OpCompletion
	if r.req.Prompt, err = f.String("text_input"); err != nil {
		return err
	}
	if r.req.Messages, err = f.Array("messages"); err != nil {
		return err
	}
	if r.req.Messages.Known {
		r.req.Operation = trace.OpChat
		if err := checkMessages(r.req.Messages.Value); err != nil {
			return err
		}
	}
	if r.req.Tools, err = f.Array("tools"); err != nil {
		return err
	}
	if r.req.Tools.Known && !r.req.Messages.Known {
		return jsonx.Bad("tools", "without messages")
	}
	if r.req.Body, err = f.Object("payload"); err != nil {
		return err
	}
	if r.req.Body.Known && strings.Contains(r.req.Body.Value, `"messages"`) {
		r.req.Operation = trace.OpChat
	}
	if r.req.Extra, err = f.Object("extra"); err != nil {
		return err
	}
	return parseModes(f, r)
}

func parseModes(f jsonx.Row, r *row) error {
	mode, err := f.String("message_mode")
	if err != nil {
		return err
	}
	switch v := mode.Or("history"); v {
	case "history":
	case "delta":
		if !r.req.Messages.Known {
			return jsonx.Bad("message_mode", "delta without messages")
		}
		if strings.Contains(r.req.Extra.Value, `"messages"`) {
			return jsonx.Bad("extra", "messages in extra, but message_mode is delta")
		}
		r.mode = trace.MessagesDelta
	default:
		return jsonx.Bad("message_mode", "%q is neither history nor delta", v)
	}
	if mode.Known {
		r.attribute(attrMode, quote(mode.Value))
	}
	if r.req.Messages.Known {
		r.req.MessagesMode = trace.Some(r.mode)
	}
	ctx, err := f.String("context_mode")
	if err != nil {
		return err
	}
	if v, ok := ctx.Get(); ok {
		r.attribute(attrContext, quote(v))
		r.complete = strings.HasPrefix(v, "message_array")
	}
	return nil
}

func checkMessages(text string) error {
	var list []struct {
		Role *string `json:"role"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return jsonx.Bad("messages", "not a list of objects with a role")
	}
	if len(list) == 0 {
		return jsonx.Bad("messages", "empty")
	}
	for i, m := range list {
		if m.Role == nil || *m.Role == "" {
			return jsonx.Bad("messages", "message %d has no role", i)
		}
	}
	return nil
}

func parseSession(f jsonx.Row, r *row) (err error) {
	if r.req.Session, err = f.String("session_id"); err != nil {
		return err
	}
	r.hasSession = r.req.Session.Known
	if r.req.Model, err = f.String("model"); err != nil {
		return err
	}
	id, err := f.String("request_id")
	if err != nil {
		return err
	}
	if id.Known {
		r.requestID = id.Value
		r.req.SourceID = id
		r.attribute(attrRequest, quote(id.Value))
	}
	for key, to := range map[string]*[]string{"wait_for": &r.waitFor, "branches": &r.branches} {
		raw, ok := f[key]
		if !ok || string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return jsonx.Bad(key, "not a list of request ids")
		}
		r.attribute(key, string(raw))
		delete(f, key)
	}
	if r.req.Delay.Known {
		return nil
	}
	// A tool's time before the turn is its delay; the field itself stays beside.
	raw, ok := f["tool_wait_ms"]
	if !ok {
		return nil
	}
	wait, _, err := jsonx.Row{"tool_wait_ms": raw}.Time(time.Millisecond, "tool_wait_ms")
	if err == nil && wait.Known && wait.Value >= 0 {
		r.req.Delay = wait
	}
	return err
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

func oneMode(r *row) error {
	var modes []string
	for _, m := range []struct {
		name string
		has  bool
	}{{"input_length", r.req.InputTokens.Known}, {"text_input", r.req.Prompt.Known}, {"messages", r.req.Messages.Known}, {"payload", r.req.Body.Known}} {
		if m.has {
			modes = append(modes, m.name)
		}
	}
	switch len(modes) {
	case 1:
		return nil
	case 0:
		return &jsonx.FieldError{Field: "input_length", Err: fmt.Errorf("missing, and no text_input, messages or payload instead"), Fix: "each row needs exactly one of input_length, text_input, messages, payload"}
	}
	return &jsonx.FieldError{Field: modes[1], Err: fmt.Errorf("beside %s", modes[0]), Fix: "each row needs exactly one of input_length, text_input, messages, payload"}
}

// seen notes which parts of the dialects a row uses.
func (s *state) seen(r *row) {
	d := &s.dialect
	d.session = d.session || r.hasSession
	d.text = d.text || r.req.Prompt.Known
	d.messages = d.messages || r.req.Messages.Known
	d.payload = d.payload || r.req.Body.Known
	d.lengths = d.lengths || r.req.InputTokens.Known || r.req.NewInputTokens.Known
	d.agent = d.agent || r.requestID != ""
}

// meta says what was found.
func (s *state) meta() trace.Meta {
	m := trace.Meta{Clock: trace.ClockTrace, Format: "mooncake", Dialect: s.dialect.String(), TickNS: s.tick.NS(), Counts: s.counts}
	if s.times == 0 {
		m.Clock = trace.ClockNone
	}
	guess := func(what, value, flag, evidence string, args ...any) {
		m.Guesses = append(m.Guesses, trace.Guess{What: what, Value: value, Evidence: fmt.Sprintf(evidence, args...), Flag: flag})
	}
	if s.sampled > 0 {
		if s.forced {
			guess("block size", fmt.Sprint(s.block), "--block-tokens", "given")
		} else {
			guess("block size", fmt.Sprint(s.block), "--block-tokens", "ceil(input_length/%d) ids in %d of the first %d rows with ids", s.block, s.fits[indexOf(s.block)], s.sampled)
		}
	}
	if s.times > 0 {
		unit := map[time.Duration]string{time.Second: "s", time.Millisecond: "ms", time.Microsecond: "us", time.Nanosecond: "ns"}[s.unit]
		why := "the format says so"
		if s.im.TimeUnit != 0 {
			why = "given"
		}
		guess("unit of timestamp", unit, "--time-unit", "%s", why)
		// Since 1973 in any unit, and not a length of time that a trace has.
		if s.first >= 1e17 {
			m.EpochNS = trace.Some(int64(0))
			m.Zone = "Unix time"
			guess("timestamps", "Unix time", "", "the first is %d %s", int64(s.first/s.unit), unit)
		}
	}
	if s.incremental+s.cumulative > 0 {
		value, flag := Cumulative, "--input-lengths"
		if s.incremental > 0 {
			value = Incremental
			if s.cumulative > 0 {
				value = "mixed"
			}
		}
		guess("input_length of later turns", value, flag, "%d rows whole (ids or context_mode cover them), %d rows new tokens only", s.cumulative, s.incremental)
	}
	if s.twoSizes > 0 {
		s.note("ids that are a full block in one row and a shorter tail in another", s.twoSizes)
		guess("ids of two lengths", "the shorter text is a prefix of the longer", "", "%s", s.twoExample)
	}
	if s.unresolved > 0 {
		s.note("wait_for names a request that has not come before", s.unresolved)
	}
	for k, n := range s.unknown {
		s.note("unknown field "+k+" kept in attributes", n)
	}
	m.Counts = s.counts
	return m
}

func indexOf(size int) int {
	for i, b := range BlockSizes {
		if b == size {
			return i
		}
	}
	return 0
}

func (d dialect) String() string {
	var parts []string
	add := func(has bool, name string) {
		if has {
			parts = append(parts, name)
		}
	}
	add(d.lengths, "lengths")
	add(d.text, "text_input")
	add(d.messages, "messages")
	add(d.payload, "payload")
	add(d.session, "sessions")
	add(d.agent, "agent rows")
	return strings.Join(parts, " and ")
}
