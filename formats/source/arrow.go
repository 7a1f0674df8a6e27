package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Arrow IPC describes its columns in a FlatBuffers table that arrow-go does not
// verify: a damaged count there makes it ask for all memory, which cannot be
// caught. So the counts of columns are held against the size of the table
// first. Slots are those of Arrow's File.fbs, Message.fbs and Schema.fbs.
const (
	slotFooterSchema   = 6
	slotMessageHeader  = 8
	slotSchemaFields   = 6
	slotFieldChildren  = 14
	maxStreamSchema    = 64 << 20 // bytes
	arrowFooterTrailer = 10       // length of the footer, int32, and "ARROW1"
)

var errSchema = errors.New("the description of the columns is damaged")

// VerifyArrowFile checks the schema in the footer of an Arrow IPC file.
func VerifyArrowFile(at io.ReaderAt, size int64) error {
	var end [arrowFooterTrailer]byte
	if size < 2*arrowFooterTrailer {
		return fmt.Errorf("%d bytes are no file", size)
	}
	if _, err := at.ReadAt(end[:], size-arrowFooterTrailer); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	if string(end[4:]) != "ARROW1" || n == 0 || n > size-arrowFooterTrailer {
		return errors.New("the end of the file is missing")
	}
	footer := make([]byte, n)
	if _, err := at.ReadAt(footer, size-arrowFooterTrailer-n); err != nil {
		return err
	}
	return verifySchema(footer, slotFooterSchema)
}

// VerifyArrowStream checks the schema that an Arrow IPC stream begins with, and
// returns the stream from its start.
func VerifyArrowStream(r io.Reader) (io.Reader, error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[4:])
	if n == 0 || n > maxStreamSchema {
		return nil, errSchema
	}
	head = append(head, make([]byte, n)...)
	if _, err := io.ReadFull(r, head[8:]); err != nil {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(head), r), verifySchema(head[8:], slotMessageHeader)
}

// verifySchema checks the schema in a slot of the root table.
func verifySchema(table []byte, slot flatbuffers.VOffsetT) (err error) {
	defer func() { // flatbuffers reads out of range of a damaged table
		if recover() != nil {
			err = errSchema
		}
	}()
	root := flatbuffers.Table{Bytes: table, Pos: flatbuffers.GetUOffsetT(table)}
	o := flatbuffers.UOffsetT(root.Offset(slot))
	if o == 0 {
		return errSchema
	}
	schema := flatbuffers.Table{Bytes: table, Pos: root.Indirect(root.Pos + o)}
	left := len(table) / 4 // each column takes more
	return verifyFields(schema, slotSchemaFields, &left)
}

func verifyFields(t flatbuffers.Table, slot flatbuffers.VOffsetT, left *int) error {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	n, start := t.VectorLen(o), t.Vector(o)
	if n < 0 || n > *left {
		return errSchema
	}
	*left -= n
	for i := range n {
		child := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(start + flatbuffers.UOffsetT(4*i))}
		if err := verifyFields(child, slotFieldChildren, left); err != nil {
			return err
		}
	}
	return nil
}
