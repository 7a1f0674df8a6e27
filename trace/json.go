package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// jsonRow has the canonical column names; literal JSON is nested, or is a string of
// it where nesting would change its blanks.
type jsonRow struct {
	ID               int64                      `json:"id"`
	OriginID         *int64                     `json:"origin_id,omitempty"`
	Copy             *int32                     `json:"copy,omitempty"`
	SourceID         *string                    `json:"source_id,omitempty"`
	Operation        string                     `json:"operation"`
	ArrivalNS        *time.Duration             `json:"arrival_ns,omitempty"`
	SessionID        *string                    `json:"session_id,omitempty"`
	Turn             *int32                     `json:"turn,omitempty"`
	After            []jsonAfter                `json:"after,omitzero"`
	DelayNS          *time.Duration             `json:"delay_ns,omitempty"`
	Agent            *string                    `json:"agent,omitempty"`
	ClientID         *string                    `json:"client_id,omitempty"`
	Model            *string                    `json:"model,omitempty"`
	Streaming        *bool                      `json:"streaming,omitempty"`
	Choices          *int32                     `json:"choices,omitempty"`
	InputTokens      *int64                     `json:"input_tokens,omitempty"`
	NewInputTokens   *int64                     `json:"new_input_tokens,omitempty"`
	OutputTokens     *int64                     `json:"output_tokens,omitempty"`
	ReasoningTokens  *int64                     `json:"reasoning_tokens,omitempty"`
	MaxOutputTokens  *int64                     `json:"max_output_tokens,omitempty"`
	CachedTokens     *int64                     `json:"cached_tokens,omitempty"`
	CacheWriteTokens *int64                     `json:"cache_write_tokens,omitempty"`
	BlockIDs         []uint64                   `json:"block_ids,omitzero"`
	BlockTokens      *int32                     `json:"block_tokens,omitempty"`
	BlockTail        *string                    `json:"block_tail,omitempty"`
	Prompt           *string                    `json:"prompt,omitempty"`
	Messages         json.RawMessage            `json:"messages,omitempty"`
	MessagesMode     *string                    `json:"messages_mode,omitempty"`
	Tools            json.RawMessage            `json:"tools,omitempty"`
	Body             json.RawMessage            `json:"body,omitempty"`
	Extra            json.RawMessage            `json:"extra,omitempty"`
	Media            []jsonMedia                `json:"media,omitzero"`
	OutputText       *string                    `json:"output_text,omitempty"`
	OutputMessage    json.RawMessage            `json:"output_message,omitempty"`
	RecordedTTFTNS   *time.Duration             `json:"recorded_ttft_ns,omitempty"`
	RecordedE2ENS    *time.Duration             `json:"recorded_e2e_ns,omitempty"`
	CancelNS         *time.Duration             `json:"cancel_ns,omitempty"`
	Status           *string                    `json:"status,omitempty"`
	FinishReason     *string                    `json:"finish_reason,omitempty"`
	SourceFile       *string                    `json:"source_file,omitempty"`
	SourceRow        *int64                     `json:"source_row,omitempty"`
	Attributes       map[string]json.RawMessage `json:"attributes,omitzero"`
	AttributeTexts   map[string]string          `json:"attribute_texts,omitempty"` // those that are no JSON without blanks
}

type jsonAfter struct {
	ID   int64  `json:"id"`
	Kind string `json:"kind"`
}

type jsonMedia struct {
	Kind   string `json:"kind"`
	Count  *int32 `json:"count,omitempty"`
	Tokens *int64 `json:"tokens,omitempty"`
}

// AppendJSON appends r to dst as one JSON object with the canonical column names.
// What is unknown is left out; literal JSON columns are nested. [ParseJSON] gives back
// an equal row.
func AppendJSON(dst []byte, r *Request) ([]byte, error) {
	row := jsonRow{
		ID: r.ID, OriginID: ptr(r.OriginID), Copy: ptr(r.Copy), SourceID: ptr(r.SourceID),
		Operation: r.Operation, ArrivalNS: ptr(r.Arrival), SessionID: ptr(r.Session), Turn: ptr(r.Turn), DelayNS: ptr(r.Delay),
		Agent: ptr(r.Agent), ClientID: ptr(r.ClientID), Model: ptr(r.Model), Streaming: ptr(r.Streaming), Choices: ptr(r.Choices),
		InputTokens: ptr(r.InputTokens), NewInputTokens: ptr(r.NewInputTokens), OutputTokens: ptr(r.OutputTokens),
		ReasoningTokens: ptr(r.ReasoningTokens), MaxOutputTokens: ptr(r.MaxOutputTokens),
		CachedTokens: ptr(r.CachedTokens), CacheWriteTokens: ptr(r.CacheWriteTokens),
		BlockIDs: r.Blocks, BlockTokens: ptr(r.BlockTokens), BlockTail: ptr(r.BlockTail),
		Prompt: ptr(r.Prompt), Messages: raw(r.Messages), MessagesMode: ptr(r.MessagesMode), Tools: raw(r.Tools), Body: raw(r.Body), Extra: raw(r.Extra),
		OutputText: ptr(r.OutputText), OutputMessage: raw(r.OutputMessage),
		RecordedTTFTNS: ptr(r.RecordedTTFT), RecordedE2ENS: ptr(r.RecordedE2E), CancelNS: ptr(r.Cancel),
		Status: ptr(r.Status), FinishReason: ptr(r.FinishReason), SourceFile: ptr(r.SourceFile), SourceRow: ptr(r.SourceRow),
	}
	if r.After != nil {
		row.After = []jsonAfter{}
		for _, d := range r.After {
			row.After = append(row.After, jsonAfter(d))
		}
	}
	if r.Media != nil {
		row.Media = []jsonMedia{}
		for _, m := range r.Media {
			row.Media = append(row.Media, jsonMedia{m.Kind, ptr(m.Count), ptr(m.Tokens)})
		}
	}
	if r.Attributes != nil {
		row.Attributes = map[string]json.RawMessage{}
		for k, v := range r.Attributes {
			if isCompact(v) {
				row.Attributes[k] = json.RawMessage(v)
				continue
			}
			if row.AttributeTexts == nil {
				row.AttributeTexts = map[string]string{}
			}
			row.AttributeTexts[k] = v
		}
	}
	text := bytes.NewBuffer(dst)
	e := json.NewEncoder(text)
	e.SetEscapeHTML(false)
	if err := e.Encode(row); err != nil {
		return dst, fmt.Errorf("row %d: %w", r.ID, err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// isCompact tells JSON that stays as it is when it is nested.
func isCompact(v string) bool {
	var b bytes.Buffer
	return json.Compact(&b, []byte(v)) == nil && b.String() == v
}

func ptr[T any](o Optional[T]) *T {
	if !o.Known {
		return nil
	}
	return &o.Value
}

func raw(o Optional[string]) json.RawMessage {
	if !o.Known {
		return nil
	}
	if isCompact(o.Value) {
		return json.RawMessage(o.Value)
	}
	text, _ := json.Marshal(o.Value) // a string always encodes
	return text
}
