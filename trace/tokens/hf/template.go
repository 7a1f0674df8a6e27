package hf

import (
	"encoding/json"
	"fmt"
)

// readTemplate returns the ids that the post-processor puts around one text.
func readTemplate(raw json.RawMessage) (before, after []int32, err error) {
	kind, err := component(raw)
	if err != nil {
		return nil, nil, err
	}
	var c struct {
		Processors []json.RawMessage
		Single     []struct {
			SpecialToken *struct{ ID string }
			Sequence     *struct{ ID string }
		}
		SpecialTokens map[string]struct{ IDs []int32 } `json:"special_tokens"`
	}
	switch kind {
	case "", "ByteLevel": // ByteLevel moves offsets, which are not kept here
		return nil, nil, nil
	case "Sequence", "TemplateProcessing":
	default:
		return nil, nil, unknown(kind)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind, err)
	}
	for _, p := range c.Processors { // each wraps what the ones before it made
		b, a, err := readTemplate(p)
		if err != nil {
			return nil, nil, err
		}
		before, after = append(b, before...), append(after, a...)
	}
	ids := &before
	for _, part := range c.Single {
		if part.Sequence != nil {
			ids = &after
			continue
		}
		if part.SpecialToken == nil {
			return nil, nil, unknown("TemplateProcessing with a part that is neither text nor token")
		}
		token, ok := c.SpecialTokens[part.SpecialToken.ID]
		if !ok {
			return nil, nil, fmt.Errorf("TemplateProcessing: token %q is not among special_tokens", part.SpecialToken.ID)
		}
		*ids = append(*ids, token.IDs...)
	}
	return before, after, nil
}
