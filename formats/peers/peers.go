// Package peers is what the exporters for other load generators share: the account
// of what a format has no place for, and block ids that each stand for one length.
package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"reprise/trace"
)

// A Part is a part of a row that a format carries or loses.
type Part string

// Parts, in the words that losses are told in.
const (
	Sessions  Part = "sessions and turns"
	Delays    Part = "delays"
	Blocks    Part = "prefix blocks"
	Text      Part = "literal content"
	Tools     Part = "tools"
	Extra     Part = "extra body fields"
	Latencies Part = "recorded latencies"
)

// A Losses counts rows by what of them had no place.
type Losses map[string]int64

// Add counts one row.
func (l Losses) Add(what string) { l[what]++ }

// Row counts what r has beside its times and lengths, but for what is carried.
func (l Losses) Row(r *trace.Request, carried ...Part) {
	for what, has := range map[Part]bool{
		Sessions: r.Session.Known, Delays: r.Delay.Known, Blocks: len(r.Blocks) > 0,
		Text:  r.Prompt.Known || r.Messages.Known || r.Body.Known,
		Tools: r.Tools.Known, Extra: r.Extra.Known, Latencies: r.RecordedTTFT.Known || r.RecordedE2E.Known,
		"spawn and join edges": slices.ContainsFunc(r.After, func(d trace.Dependency) bool { return d.Kind != trace.AfterTurn }),
		"model":                r.Model.Known, "client_id": r.ClientID.Known, "agent": r.Agent.Known, "streaming": r.Streaming.Known, "choices": r.Choices.Known,
		"status": r.Status.Known && r.Status.Value != trace.StatusOK, "finish_reason": r.FinishReason.Known, "cancellation times": r.Cancel.Known,
		"recorded answer": r.OutputText.Known || r.OutputMessage.Known, "cached tokens": r.CachedTokens.Known || r.CacheWriteTokens.Known,
		"reasoning tokens": r.ReasoningTokens.Known, "max_output_tokens": r.MaxOutputTokens.Known && r.OutputTokens.Known,
		"media": len(r.Media) > 0, "attributes": len(r.Attributes) > 0,
	} {
		if has && !slices.Contains(carried, what) {
			l[string(what)]++
		}
	}
}

// List returns the losses in words, in a fixed order.
func (l Losses) List() (lost []string) {
	for _, what := range slices.Sorted(maps.Keys(l)) {
		lost = append(lost, fmt.Sprintf("%s of %d rows", what, l[what]))
	}
	return lost
}

// Lines writes what line makes of each row as a JSON line; line returns nil for a
// row that is not written.
func Lines(ctx context.Context, rows iter.Seq2[trace.Request, error], w io.Writer, line func(*trace.Request) any) (written int64, err error) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for r, err := range rows {
		if err != nil {
			return written, err
		}
		if ctx.Err() != nil {
			return written, ctx.Err()
		}
		v := line(&r)
		if v == nil {
			continue
		}
		written++
		if err := e.Encode(v); err != nil {
			return written, fmt.Errorf("row %d: %w", r.ID, err)
		}
	}
	return written, nil
}

// UserText returns the text of messages that are one text of a user.
func UserText(r *trace.Request) (string, bool) {
	if !r.Messages.Known || r.Tools.Known {
		return "", false
	}
	var messages []struct {
		Role    string
		Content json.RawMessage
	}
	var text string
	if json.Unmarshal([]byte(r.Messages.Value), &messages) != nil || len(messages) != 1 || messages[0].Role != "user" || json.Unmarshal(messages[0].Content, &text) != nil {
		return "", false
	}
	return text, true
}

// Decimal writes a time in a unit of 10^-digits seconds exactly: all nanoseconds, no
// digit more.
func Decimal(d time.Duration, digits int) json.Number {
	unit := int64(time.Second)
	for range digits {
		unit /= 10
	}
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	whole, part := int64(d)/unit, int64(d)%unit
	text := sign + strconv.FormatInt(whole, 10)
	if part == 0 {
		return json.Number(text)
	}
	fraction := fmt.Sprintf("%0*d", 9-digits, part)
	for fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	return json.Number(text + "." + fraction)
}

// A Renamer gives block ids anew, from 0 on in the order in which they come, so that
// each stands for one length: peers refuse an id that is a whole block in one row and
// a short one in another. Its memory grows with the number of different blocks. The
// zero value is ready to use.
type Renamer struct {
	Size  int64 // tokens of a block, of the first row that has any
	Split int64 // ids that came with a second length, so that what they share is lost

	names map[block]uint64
	sizes map[uint64]int64
	next  uint64
}

type block struct {
	id     uint64
	tokens int64
}

// Row returns the ids of a row of in prompt tokens; ok is false if they are of
// another block size, or more than the prompt has room for.
func (n *Renamer) Row(r *trace.Request, in int64) (ids []uint64, ok bool) {
	size := int64(r.BlockTokens.Value)
	if len(r.Blocks) == 0 || size < 1 || in < 1 {
		return nil, false
	}
	if n.names == nil {
		n.Size, n.names, n.sizes = size, map[block]uint64{}, map[uint64]int64{}
	}
	last := in - int64(len(r.Blocks)-1)*size
	if size != n.Size || last < 1 {
		return nil, false
	}
	for i, id := range r.Blocks {
		tokens := size
		if i == len(r.Blocks)-1 {
			tokens = min(size, last)
		}
		ids = append(ids, n.name(block{id, tokens}))
	}
	return ids, true
}

func (n *Renamer) name(b block) uint64 {
	if name, ok := n.names[b]; ok {
		return name
	}
	if tokens, ok := n.sizes[b.id]; ok && tokens != b.tokens {
		n.Split++
	}
	n.sizes[b.id] = b.tokens
	n.names[b] = n.Fresh()
	return n.names[b]
}

// Fresh returns an id that no block has.
func (n *Renamer) Fresh() uint64 {
	n.next++
	return n.next - 1
}
