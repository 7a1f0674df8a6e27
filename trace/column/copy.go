package column

import (
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// copyBytes is how large a row group is, on average over a file, that is worth
// keeping as it is; smaller ones are better read and written together.
const copyBytes = 256 << 10

// Copy appends the row groups of file, which r holds, byte for byte, if a Writer
// like this one wrote them and they are large enough; copied says so. If not,
// nothing is written, and the rows are to be read and written.
func (w *Writer) Copy(file *parquet.File, r io.ReaderAt) (copied bool, err error) {
	meta := file.Metadata()
	bounds, places := file.ColumnIndexes(), file.OffsetIndexes()
	n := len(meta.RowGroups) * len(w.leaves)
	if n == 0 || len(bounds) != n || len(places) != n || meta.CreatedBy != w.meta.CreatedBy || !reflect.DeepEqual(meta.Schema, w.meta.Schema) {
		return false, nil
	}
	size := int64(0)
	for i := range meta.RowGroups {
		size += meta.RowGroups[i].TotalCompressedSize
	}
	if size < copyBytes*int64(len(meta.RowGroups)) {
		return false, nil
	}
	if err := w.endRowGroup(); err != nil {
		return false, err
	}
	for g := range meta.RowGroups {
		at := g * len(w.leaves)
		if err := w.copyGroup(&meta.RowGroups[g], r, bounds[at:at+len(w.leaves)], places[at:]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// copyGroup copies a row group, whose chunks come one after another.
func (w *Writer) copyGroup(from *format.RowGroup, r io.ReaderAt, bounds []format.ColumnIndex, places []format.OffsetIndex) error {
	if err := w.begin(); err != nil {
		return err
	}
	move := w.offset - from.FileOffset
	group := *from
	group.FileOffset, group.Ordinal = w.offset, int16(len(w.groups))
	group.Columns = append([]format.ColumnChunk(nil), from.Columns...)
	indexes := make([]*chunkIndex, 0, len(group.Columns))
	for i := range group.Columns {
		c := &group.Columns[i]
		index := &chunkIndex{bounded: c.ColumnIndexLength > 0, bounds: bounds[i]}
		for _, p := range places[i].PageLocations {
			p.Offset += move
			index.places.PageLocations = append(index.places.PageLocations, p)
		}
		index.settled = true
		indexes = append(indexes, index)
		c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0
		c.MetaData.DataPageOffset += move
		if c.MetaData.DictionaryPageOffset > 0 {
			c.MetaData.DictionaryPageOffset += move
		}
	}
	n, err := io.Copy(w.w, io.NewSectionReader(r, from.FileOffset, from.TotalCompressedSize))
	w.offset += n
	if err == nil && n < from.TotalCompressedSize {
		err = fmt.Errorf("a row group of %d bytes ends after %d: %w", from.TotalCompressedSize, n, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return err
	}
	return w.keep(&group, indexes)
}
