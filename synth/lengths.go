package synth

import (
	"math"

	"reprise/synth/model"
	"reprise/trace"
)

// lengths scales token counts. A prompt with block ids keeps its blocks, and
// each block grows: reuse between prompts stays what it was.
type lengths struct {
	input, output float64
	design        *model.Design
	before, after [2]int64 // tokens of input and output
}

func newLengths(s *Scaling, d *model.Design) lengths {
	return lengths{input: orOne(s.InputScale), output: orOne(s.OutputScale), design: d}
}

// apply scales the rows of b and notes the scale that is reached.
func (l *lengths) apply(b *trace.Batch) {
	if l.input == 1 && l.output == 1 {
		return
	}
	for i := range b.Len() {
		if l.input != 1 {
			l.scaleInput(b, i)
		}
		if l.output != 1 {
			l.scaleOutput(b, i)
		}
	}
	if l.before[0] > 0 {
		l.design.InputScale = float64(l.after[0]) / float64(l.before[0])
	}
	if l.before[1] > 0 {
		l.design.OutputScale = float64(l.after[1]) / float64(l.before[1])
	}
}

func (l *lengths) scaleInput(b *trace.Batch, i int) {
	scale := l.input
	size, blocked := b.BlockTokens.Get(i)
	if blocked && size > 0 {
		grown := int32(min(math.MaxInt32, max(1, math.Round(float64(size)*scale))))
		scale = float64(grown) / float64(size)
		b.BlockTokens.Values[i] = grown
	}
	if n, ok := b.InputTokens.Get(i); ok {
		ids, _ := b.Blocks(i)
		tail, _ := b.BlockTail.Get(i)
		v := scaled(n, scale)
		if len(ids) > 0 {
			v = scaledBlocks(n, int64(size), int64(b.BlockTokens.Values[i]), tail)
		}
		b.InputTokens.Values[i] = v
		l.before[0] += n
		l.after[0] += v
	}
	for _, c := range []struct {
		values []int64
		null   []bool
	}{{b.NewInputTokens.Values, b.NewInputTokens.Null}, {b.CachedTokens.Values, b.CachedTokens.Null}, {b.CacheWriteTokens.Values, b.CacheWriteTokens.Null}} {
		if !c.null[i] {
			c.values[i] = scaled(c.values[i], scale)
			if in, ok := b.InputTokens.Get(i); ok {
				c.values[i] = min(c.values[i], in)
			}
		}
	}
}

// scaledBlocks scales n tokens in blocks of from tokens to blocks of to tokens,
// so that as many blocks are full, and the last one is short, or has no id, as
// before.
func scaledBlocks(n, from, to int64, tail string) int64 {
	full, rest := n/from, n%from
	if rest == 0 {
		return full * to
	}
	short := scaled(rest, float64(to)/float64(from))
	if tail == trace.TailDropped {
		return full*to + min(short, to-1)
	}
	return full*to + min(short, to)
}

func (l *lengths) scaleOutput(b *trace.Batch, i int) {
	if n, ok := b.OutputTokens.Get(i); ok {
		v := scaled(n, l.output)
		b.OutputTokens.Values[i] = v
		l.before[1] += n
		l.after[1] += v
	}
	for _, c := range []struct {
		values []int64
		null   []bool
	}{{b.ReasoningTokens.Values, b.ReasoningTokens.Null}, {b.MaxOutputTokens.Values, b.MaxOutputTokens.Null}} {
		if !c.null[i] {
			c.values[i] = scaled(c.values[i], l.output)
		}
	}
	if n, ok := b.ReasoningTokens.Get(i); ok && !b.OutputTokens.Null[i] {
		b.ReasoningTokens.Values[i] = min(n, b.OutputTokens.Values[i])
	}
}

// scaled keeps 0, and anything else at least 1.
func scaled(n int64, scale float64) int64 {
	if n <= 0 {
		return n
	}
	return max(1, int64(math.Round(min(model.MaxTokens, float64(n)*scale))))
}
