package rows

import (
	"fmt"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// SetBlocks sets what the columns beside the block ids of r say, for ids of size
// tokens that cover the prompt from its start; field is the source's name for them.
// More ids than the prompt has room for are an error. A row whose number of ids
// follows no rule keeps them, with TailOther.
func SetBlocks(r *trace.Request, field string, size int64) error {
	if r.Blocks == nil {
		return nil
	}
	r.BlockTokens, r.BlockTail = trace.Some(int32(size)), trace.Some(trace.TailOther)
	in, known := r.InputTokens.Get()
	if !known {
		return nil
	}
	switch ids, need := int64(len(r.Blocks)), (in+size-1)/size; {
	case ids > need:
		return &jsonx.FieldError{Field: field, Err: fmt.Errorf("%d ids of %d tokens, but the prompt has %d, which is room for %d", ids, size, in, need),
			Fix: "pass --block-tokens if the trace was made with another block size"}
	case ids == need:
		r.BlockTail = trace.Some(trace.TailPartial)
	case ids == in/size:
		r.BlockTail = trace.Some(trace.TailDropped)
	}
	return nil
}
