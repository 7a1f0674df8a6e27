package column

import (
	"bytes"
	"encoding/binary"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// A rowGroup is what is kept of a row group that has been written until the file
// ends, encoded as it goes to the file: a long trace has tens of thousands of
// chunks, most of them of columns that are unknown throughout.
type rowGroup struct {
	meta           []byte  // but where the indexes are
	bounds, places []byte  // of the pages, chunk by chunk
	lengths        []int32 // of the bounds and of the places of each chunk; 0 = none
}

// keep notes a row group that has been written.
func (w *Writer) keep(group *format.RowGroup, index []*chunkIndex) (err error) {
	var g rowGroup
	meta, err := w.thrift.compact(group)
	if err != nil {
		return err
	}
	g.meta = bytes.Clone(meta)
	for _, i := range index {
		var bounds []byte
		if i.bounded {
			if !i.settled {
				i.bounds.BoundaryOrder = i.order()
			}
			if bounds, err = w.thrift.compact(&i.bounds); err != nil {
				return err
			}
			g.bounds = append(g.bounds, bounds...)
		}
		places, err := w.thrift.compact(&i.places)
		if err != nil {
			return err
		}
		g.places = append(g.places, places...)
		g.lengths = append(g.lengths, int32(len(bounds)), int32(len(places)))
	}
	w.groups = append(w.groups, g)
	w.meta.NumRows += group.NumRows
	return nil
}

// A compactor encodes in Thrift's compact protocol. The zero value is ready.
type compactor struct {
	buf bytes.Buffer
	enc *thrift.Encoder
}

// compact returns v encoded, until the next call.
func (c *compactor) compact(v any) ([]byte, error) {
	if c.enc == nil {
		c.enc = thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(&c.buf))
	}
	c.buf.Reset()
	err := c.enc.Encode(v)
	return c.buf.Bytes(), err
}

// What the footer says before and after the row groups.
type (
	footerHead struct {
		Version int32                              `thrift:"1,required"`
		Schema  thrift.Slice[format.SchemaElement] `thrift:"2,required"`
		NumRows int64                              `thrift:"3,required"`
	}
	footerTail struct {
		KeyValueMetadata thrift.Slice[format.KeyValue]    `thrift:"5,optional"`
		CreatedBy        string                           `thrift:"6,optional"`
		ColumnOrders     thrift.Slice[format.ColumnOrder] `thrift:"7,optional"`
	}
)

// putFooter writes the bounds of all pages, the places of all pages, and the metadata
// of the file, in Thrift's compact protocol, and its length.
func (w *Writer) putFooter() error {
	bounds := w.offset
	for i := range w.groups {
		if err := w.put(w.groups[i].bounds); err != nil {
			return err
		}
	}
	places := w.offset
	for i := range w.groups {
		if err := w.put(w.groups[i].places); err != nil {
			return err
		}
	}
	begin := w.offset
	head, err := w.thrift.compact(&footerHead{w.meta.Version, w.meta.Schema, w.meta.NumRows})
	if err != nil {
		return err
	}
	if err := w.put(appendListHeader(head[:len(head)-1], len(w.groups))); err != nil {
		return err
	}
	for i := range w.groups {
		group, err := w.groups[i].placed(&bounds, &places, &w.thrift)
		if err != nil {
			return err
		}
		if err := w.put(group); err != nil {
			return err
		}
	}
	tail, err := w.thrift.compact(&footerTail{w.meta.KeyValueMetadata, w.meta.CreatedBy, w.meta.ColumnOrders})
	if err != nil {
		return err
	}
	if tail[0] != 0 {
		tail[0] -= groupsField << 4 // a field's number is told from that of the one before
	}
	if err := w.put(tail); err != nil {
		return err
	}
	return w.put(append(binary.LittleEndian.AppendUint32(nil, uint32(w.offset-begin)), magic...))
}

// groupsField is the number of the metadata's field of row groups.
const groupsField = 4

// appendListHeader begins the field behind that of NumRows, a list of n structs.
func appendListHeader(dst []byte, n int) []byte {
	const list, structs = 9, 12
	dst = append(dst, 1<<4|list)
	if n < 15 {
		return append(dst, byte(n)<<4|structs)
	}
	return binary.AppendUvarint(append(dst, 15<<4|structs), uint64(n))
}

// placed returns the metadata with the places of the indexes, which begin at bounds
// and places, and moves these behind them.
func (g *rowGroup) placed(bounds, places *int64, out *compactor) ([]byte, error) {
	var group format.RowGroup
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), g.meta, &group); err != nil {
		return nil, err
	}
	for i := range group.Columns {
		c := &group.Columns[i]
		if n := g.lengths[2*i]; n > 0 {
			c.ColumnIndexOffset, c.ColumnIndexLength = *bounds, n
			*bounds += int64(n)
		}
		n := g.lengths[2*i+1]
		c.OffsetIndexOffset, c.OffsetIndexLength = *places, n
		*places += int64(n)
	}
	return out.compact(&group)
}
