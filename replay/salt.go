package replay

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"reprise/trace"
	"reprise/trace/tokens"
)

// A Salt says what keeps this run from the prefix caches that earlier ones have
// warmed: a marker of SaltTokens words at the head of every prompt, made from
// the seed. It comes off the length of a made prompt and adds to a literal one.
type Salt string

// Salts. The zero value is SaltNone.
const (
	SaltNone    Salt = ""        // no marker: prompts of an equal seed repeat, in this run and the next
	SaltRun     Salt = "run"     // one marker for all requests: reuse within the run stays
	SaltSession Salt = "session" // one marker a session: reuse between sessions goes too
)

// SaltTokens is the length of the marker; so many words tell any two apart.
const SaltTokens = 6

// marker returns the words for a row, each with its leading blank.
func (r *renderer) marker(row *trace.Request) []byte {
	id := uint64(0)
	if r.c.Salt == SaltSession {
		h := fnv.New64a()
		h.Write([]byte(row.Session.Or(fmt.Sprint("row ", row.ID))))
		id = h.Sum64()
	}
	text := tokens.Text{Seed: r.c.Selection.Seed, Scope: r.c.Scope + "salt"}
	return text.AppendBlock(nil, tokens.Block{ID: id}, SaltTokens)
}

// saltMade puts the marker behind the opening word of a made prompt, which
// begins at from.
func (r *renderer) saltMade(dst []byte, from int, row *trace.Request) []byte {
	if r.c.Salt == SaltNone {
		return dst
	}
	at := from + len(tokens.Opening)
	return slices.Insert(dst, at, r.marker(row)...)
}

// saltLiteral puts the marker before a literal prompt.
func (r *renderer) saltLiteral(row *trace.Request) []byte {
	text := []byte(row.Prompt.Value)
	if r.c.Salt == SaltNone {
		return text
	}
	marker := append([]byte(tokens.Opening), r.marker(row)...)
	return append(append(marker, ' '), text...)
}

// saltMessages puts the marker before the text of the first message.
func (r *renderer) saltMessages(messages []byte, row *trace.Request) ([]byte, error) {
	if r.c.Salt == SaltNone {
		return messages, nil
	}
	marker := tokens.Opening + string(r.marker(row)) + " "
	var list []json.RawMessage
	if err := json.Unmarshal(messages, &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("id %d: messages are no JSON array with a message in it", row.ID)
	}
	var first map[string]json.RawMessage
	if err := json.Unmarshal(list[0], &first); err != nil {
		return nil, fmt.Errorf("id %d: the first message is no object", row.ID)
	}
	var text *string
	var parts []json.RawMessage
	if json.Unmarshal(first["content"], &text) == nil && text != nil {
		first["content"], _ = json.Marshal(marker + *text)
	} else {
		if json.Unmarshal(first["content"], &parts) != nil || parts == nil {
			return nil, fmt.Errorf("id %d: the first message has no text to put the cache salt before", row.ID)
		}
		part, _ := json.Marshal(map[string]string{"type": "text", "text": marker})
		first["content"], _ = json.Marshal(append([]json.RawMessage{part}, parts...))
	}
	list[0], _ = json.Marshal(first)
	return json.Marshal(list)
}
