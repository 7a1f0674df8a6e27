package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ParseJSON reads a row as [AppendJSON] writes it. Keys that are no column are an
// error, and so is a row without id or operation.
func ParseJSON(text []byte) (Request, error) {
	row := struct {
		jsonRow
		ID        *int64  `json:"id"` // before those of jsonRow: 0 is not none
		Operation *string `json:"operation"`
	}{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&row); err != nil {
		return Request{}, readable(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Request{}, errors.New("more than one JSON value")
	}
	if row.ID == nil || row.Operation == nil {
		return Request{}, errors.New("no id or no operation, which every canonical row has")
	}
	r := Request{
		ID: *row.ID, OriginID: some(row.OriginID), Copy: some(row.Copy), SourceID: some(row.SourceID),
		Operation: *row.Operation, Arrival: some(row.ArrivalNS), Session: some(row.SessionID), Turn: some(row.Turn), Delay: some(row.DelayNS),
		Agent: some(row.Agent), ClientID: some(row.ClientID), Model: some(row.Model), Streaming: some(row.Streaming), Choices: some(row.Choices),
		InputTokens: some(row.InputTokens), NewInputTokens: some(row.NewInputTokens), OutputTokens: some(row.OutputTokens),
		ReasoningTokens: some(row.ReasoningTokens), MaxOutputTokens: some(row.MaxOutputTokens),
		CachedTokens: some(row.CachedTokens), CacheWriteTokens: some(row.CacheWriteTokens),
		Blocks: row.BlockIDs, BlockTokens: some(row.BlockTokens), BlockTail: some(row.BlockTail),
		Prompt: some(row.Prompt), MessagesMode: some(row.MessagesMode), OutputText: some(row.OutputText),
		RecordedTTFT: some(row.RecordedTTFTNS), RecordedE2E: some(row.RecordedE2ENS), Cancel: some(row.CancelNS),
		Status: some(row.Status), FinishReason: some(row.FinishReason), SourceFile: some(row.SourceFile), SourceRow: some(row.SourceRow),
	}
	if row.After != nil {
		r.After = []Dependency{}
		for _, d := range row.After {
			r.After = append(r.After, Dependency(d))
		}
	}
	if row.Media != nil {
		r.Media = []Media{}
		for _, m := range row.Media {
			r.Media = append(r.Media, Media{m.Kind, some(m.Count), some(m.Tokens)})
		}
	}
	return r, row.literals(&r)
}

// literals sets the columns of literal JSON.
func (row *jsonRow) literals(r *Request) error {
	for _, c := range []struct {
		name string
		raw  json.RawMessage
		to   *Optional[string]
	}{{"messages", row.Messages, &r.Messages}, {"tools", row.Tools, &r.Tools}, {"body", row.Body, &r.Body}, {"extra", row.Extra, &r.Extra}, {"output_message", row.OutputMessage, &r.OutputMessage}} {
		if c.raw == nil || string(c.raw) == "null" {
			continue
		}
		text := string(c.raw)
		if text[0] == '"' {
			if err := json.Unmarshal(c.raw, &text); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		*c.to = Some(text)
	}
	if row.Attributes == nil && row.AttributeTexts == nil {
		return nil
	}
	r.Attributes = make(map[string]string, len(row.Attributes))
	for k, v := range row.Attributes {
		r.Attributes[k] = string(v)
	}
	for k, v := range row.AttributeTexts {
		r.Attributes[k] = v
	}
	return nil
}

func readable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if field := strings.TrimPrefix(wrong.Field, "jsonRow."); field != "" {
			return fmt.Errorf("%s: a JSON %s, which it cannot be", field, wrong.Value)
		}
		return fmt.Errorf("a JSON %s instead of an object", wrong.Value)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not valid JSON at byte %d: %w", syntax.Offset, err)
	}
	return err
}

func some[T any](v *T) Optional[T] {
	if v == nil {
		return Optional[T]{}
	}
	return Some(*v)
}
