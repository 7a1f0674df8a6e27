package column

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// A leafWriter gathers the pages of one Parquet leaf in one row group. Each is
// a *leaf of the type that its column holds.
type leafWriter interface {
	endChunk(offset int64) (dict []byte, data [][]byte, chunk format.ColumnChunk, index *chunkIndex)
	reset()
}

// codecs, made when the first page needs them; they are safe to share.
var (
	fastCodec = sync.OnceValue(func() *zstd.Encoder { return newCodec(zstd.SpeedFastest, zstd.WithNoEntropyCompression(true)) }) // of numbers
	textCodec = sync.OnceValue(func() *zstd.Encoder { return newCodec(zstd.SpeedDefault) })
)

func newCodec(level zstd.EncoderLevel, more ...zstd.EOption) *zstd.Encoder {
	// The window comes first: the fastest level would make blocks of 64 KB of its own,
	// where a page in one block needs no history.
	e, err := zstd.NewWriter(nil, append(more, zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))...)
	if err != nil {
		panic(fmt.Sprintf("column: %v", err))
	}
	return e
}

// layout is what the schema says of a leaf.
type layout struct {
	path           []string
	kind           parquet.Kind
	maxRep, maxDef uint32
	optional       bool // what is in the innermost list, if it is in one
	delta, dict    bool
	codec          *zstd.Encoder // nil = none
	bounded        bool
}

func newLeafWriter(path []string, node parquet.LeafColumn, bounded bool) leafWriter {
	l := layout{path: path, kind: node.Node.Type().Kind(), maxRep: uint32(node.MaxRepetitionLevel), maxDef: uint32(node.MaxDefinitionLevel), bounded: bounded, optional: node.Node.Optional()}
	if e := node.Node.Encoding(); e != nil {
		l.delta = e.Encoding() == format.DeltaBinaryPacked
		l.dict = e.Encoding() == format.RLEDictionary
	}
	if c := node.Node.Compression(); c != nil && c.CompressionCodec() == format.Zstd {
		l.codec = fastCodec()
		if l.kind == parquet.ByteArray {
			l.codec = textCodec()
		}
	}
	switch kind := l.kind; {
	case kind == parquet.Int32:
		return newLeaf[int32](l)
	case kind == parquet.Int64 && unsigned(node.Node.Type()):
		return newLeaf[uint64](l)
	case kind == parquet.Int64:
		return newLeaf[int64](l)
	case kind == parquet.Boolean:
		return newLeaf[bool](l)
	case kind == parquet.ByteArray:
		return newLeaf[string](l)
	}
	panic(fmt.Sprintf("column: a leaf of %s", node.Node.Type()))
}

func unsigned(t parquet.Type) bool {
	l := t.LogicalType()
	if l == nil {
		return false
	}
	i, ok := l.Value.(*format.IntType)
	return ok && !i.IsSigned
}

// A page is the open page of a leaf, without its values.
type page struct {
	layout
	rep, def runs
	levels   int // values and nulls
	nulls    int
	rows     int // that begin in it
}

// A leaf is the open page of a leaf and the finished ones of its row group.
type leaf[T Scalar] struct {
	page
	size      int       // of the values of the open page, before encoding
	values    []T       // unless they are in the dictionary
	positions runs      // if they are
	bounds    bounds[T] // of what positions name

	// The row group.
	own      dictionary[T]
	distinct *dictionary[T] // own; nil = none, or too large
	spilled  *dictionary[T] // the one that earlier pages use, once it is too large
	chunk    format.ColumnMetaData
	index    chunkIndex
	span     bounds[T]
	rowsDone int64
	done     pieces // finished pages

	body, packed []byte // scratch
	thrift       compactor
}

func newLeaf[T Scalar](l layout) *leaf[T] {
	n := &leaf[T]{page: page{layout: l}}
	n.reset()
	return n
}

// reset begins a row group.
func (l *leaf[T]) reset() {
	l.chunk = format.ColumnMetaData{Type: format.Type(l.kind), PathInSchema: l.path, Encoding: l.chunk.Encoding[:0]}
	if l.codec != nil {
		l.chunk.Codec = format.Zstd
	}
	l.index.reset(l.bounded)
	l.index.compare = compareBytes[T]
	l.span, l.rowsDone = bounds[T]{}, 0
	l.done.reset()
	l.distinct, l.spilled = nil, nil
	if l.dict {
		l.distinct = &l.own
		l.distinct.reset()
	}
}

// add appends known values to the open page; their levels are told apart.
func (l *leaf[T]) add(values []T) {
	if l.distinct == nil {
		l.values = append(l.values, values...)
		l.size += bytesOf(values)
		return
	}
	for i := 0; i < len(values); {
		v := values[i]
		n := 1
		for i+n < len(values) && values[i+n] == v {
			n++
		}
		l.addSame(v, n)
		i += n
	}
}

// addSame appends n equal values.
func (l *leaf[T]) addSame(v T, n int) {
	if l.distinct == nil {
		for range n {
			l.values = append(l.values, v)
		}
		l.size += n * bytesOf([]T{v})
		return
	}
	l.size += 4 * n
	l.positions.add(l.distinct.position(v), n)
	if l.bounded {
		l.bounds.add(v)
	}
}

// full says whether the open page is to end, and makes room for another way of
// storing values if the dictionary has outgrown its bound.
func (l *leaf[T]) full() bool {
	return l.size >= pageBytes || l.distinct != nil && l.distinct.bytes > dictionaryBytes
}

// endPage encodes the open page.
func (l *leaf[T]) endPage() {
	if l.levels == 0 {
		return
	}
	body := l.body[:0]
	if l.maxRep > 0 {
		body = appendLevels(body, l.rep, l.maxRep)
	}
	if l.maxDef > 0 {
		body = appendLevels(body, l.def, l.maxDef)
	}
	body, encoding := l.appendValues(body)
	l.body = body
	page := format.DataPageHeader{
		NumValues: int32(l.levels), Encoding: encoding,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		Statistics: format.Statistics{NullCount: int64(l.nulls)},
	}
	before := l.done.size
	header, body := l.pack(body, format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(page)})
	l.done.add(header, body)
	l.index.places.PageLocations = append(l.index.places.PageLocations, format.PageLocation{
		Offset: int64(before), CompressedPageSize: int32(l.done.size - before), FirstRowIndex: l.rowsDone,
	})
	l.noteEncoding(encoding)
	l.note()
	l.chunk.NumValues += int64(l.levels)
	l.chunk.Statistics.NullCount += int64(l.nulls)
	l.rowsDone += int64(l.rows)
	if l.kind == parquet.ByteArray {
		clear(l.values) // lets go of strings
	}
	l.values, l.positions, l.bounds = l.values[:0], l.positions[:0], bounds[T]{}
	l.rep, l.def, l.levels, l.nulls, l.size, l.rows = l.rep[:0], l.def[:0], 0, 0, 0, 0
	if l.distinct != nil && l.distinct.bytes > dictionaryBytes {
		l.distinct, l.spilled = nil, l.distinct
	}
}

// note keeps the bounds of the open page.
func (l *leaf[T]) note() {
	if !l.bounded {
		return
	}
	b := l.bounds
	if l.distinct == nil {
		b = boundsOf(l.values)
	}
	l.index.note(b.known, int64(l.nulls), shortest(b.least), longest(b.most))
	if b.known {
		l.span.add(b.least)
		l.span.add(b.most)
	}
}

func (l *leaf[T]) noteEncoding(e format.Encoding) {
	for _, known := range l.chunk.Encoding {
		if known == e {
			return
		}
	}
	l.chunk.Encoding = append(l.chunk.Encoding, e)
}

// appendLevels appends levels with their length before them, as pages of version 1 have them.
func appendLevels(dst []byte, list runs, most uint32) []byte {
	width := 1
	if most > 1 {
		width = 2
	}
	at := len(dst)
	dst = appendHybrid(append(dst, 0, 0, 0, 0), list, width)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// appendValues encodes the values of the open page.
func (l *leaf[T]) appendValues(dst []byte) ([]byte, format.Encoding) {
	if l.distinct != nil {
		width := max(1, l.distinct.width())
		return appendHybrid(append(dst, byte(width)), l.positions, width), format.RLEDictionary
	}
	if !l.delta {
		return appendPlain(dst, l.values), format.Plain
	}
	wide := l.codec != nil
	switch v := any(l.values).(type) {
	case []int32:
		dst = appendDelta(dst, v, wide)
	case []int64:
		dst = appendDelta(dst, v, wide)
	case []uint64:
		dst = appendDelta(dst, v, wide)
	}
	return dst, format.DeltaBinaryPacked
}

// pack returns the header of a page and what goes behind it: body, compressed if
// the leaf is. Both are valid until the next call.
func (l *leaf[T]) pack(body []byte, h format.PageHeader) (header, packed []byte) {
	h.UncompressedPageSize = int32(len(body))
	size := len(body)
	if l.codec != nil {
		l.packed = l.codec.EncodeAll(body, l.packed[:0])
		body = l.packed
	}
	h.CompressedPageSize, h.CRC = int32(len(body)), int32(crc32.ChecksumIEEE(body))
	header, err := l.thrift.compact(&h)
	if err != nil {
		panic(fmt.Sprintf("column: %v", err))
	}
	l.chunk.TotalUncompressedSize += int64(len(header) + size)
	l.chunk.TotalCompressedSize += int64(len(header) + len(body))
	return header, body
}

// endChunk ends the pages of the row group, which is to begin at offset.
func (l *leaf[T]) endChunk(offset int64) (dict []byte, data [][]byte, chunk format.ColumnChunk, index *chunkIndex) {
	l.endPage()
	l.noteEncoding(format.RLE) // of the levels
	if d := l.dictionary(); d != nil {
		header, body := l.pack(appendPlain(nil, d.values), format.PageHeader{Type: format.DictionaryPage,
			DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(len(d.values)), Encoding: format.Plain})})
		dict = slices.Concat(header, body)
		l.chunk.DictionaryPageOffset = offset
		l.noteEncoding(format.Plain)
	}
	l.chunk.DataPageOffset = offset + int64(len(dict))
	for i := range l.index.places.PageLocations {
		l.index.places.PageLocations[i].Offset += l.chunk.DataPageOffset
	}
	if l.span.known {
		l.chunk.Statistics.MinValue, l.chunk.Statistics.MaxValue = shortest(l.span.least), longest(l.span.most)
	}
	return dict, l.done.list, format.ColumnChunk{MetaData: l.chunk}, &l.index
}

func (l *leaf[T]) dictionary() *dictionary[T] {
	if l.spilled != nil {
		return l.spilled
	}
	return l.distinct
}

// appendPlain appends values in the PLAIN encoding.
func appendPlain[T Scalar](dst []byte, values []T) []byte {
	switch values := any(values).(type) {
	case []int32:
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
	case []int64:
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
		}
	case []uint64:
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint64(dst, v)
		}
	case []bool:
		for ; len(values) >= 8; values = values[8:] { // 8 bytes of 0 or 1, whose bits the product gathers in its highest byte
			dst = append(dst, byte(binary.LittleEndian.Uint64(boolBytes(values))*0x0102040810204080>>56))
		}
		if len(values) > 0 {
			var b byte
			for i, v := range values {
				if v {
					b |= 1 << i
				}
			}
			dst = append(dst, b)
		}
	case []string:
		for _, v := range values {
			dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(v))), v...)
		}
	}
	return dst
}

// bytesOf is the rough size of values.
func bytesOf[T Scalar](values []T) int {
	text, ok := any(values).([]string)
	if !ok {
		return 8 * len(values)
	}
	n := 8 * len(text)
	for _, s := range text {
		n += len(s)
	}
	return n
}

// boolBytes is a view of list, for the searches of package bytes.
func boolBytes(list []bool) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list))
}

// allSame says whether all values are equal.
func allSame[T int32 | int64 | uint64 | uint32](values []T) bool {
	if len(values) == 0 || values[0] != values[len(values)-1] {
		return len(values) == 0
	}
	size := int(unsafe.Sizeof(values[0]))
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), size*len(values))
	return bytes.Equal(b[size:], b[:len(b)-size])
}

// sameNull returns how many of null, which is not empty, are as its first.
func sameNull(null []bool) int {
	other := byte(1)
	if null[0] {
		other = 0
	}
	if n := bytes.IndexByte(boolBytes(null), other); n >= 0 {
		return n
	}
	return len(null)
}

// A dictionary numbers the distinct values of a chunk.
type dictionary[T Scalar] struct {
	at     map[T]uint32
	values []T
	bytes  int
	last   T // of the last value asked for
	lastAt uint32
}

// reset forgets the values and keeps the memory.
func (d *dictionary[T]) reset() {
	if d.at == nil {
		d.at = map[T]uint32{}
	}
	clear(d.at)
	clear(d.values) // lets go of strings
	d.values, d.bytes = d.values[:0], 0
}

func (d *dictionary[T]) position(v T) uint32 {
	if v == d.last && len(d.values) > 0 {
		return d.lastAt
	}
	at, ok := d.at[v]
	if !ok {
		if s, text := any(v).(string); text {
			v = any(strings.Clone(s)).(T) // it may be a piece of a large text
		}
		at = uint32(len(d.values))
		d.at[v] = at
		d.values = append(d.values, v)
		d.bytes += bytesOf([]T{v})
	}
	d.last, d.lastAt = v, at
	return at
}

// width is how many bits a position takes.
func (d *dictionary[T]) width() int {
	n := 0
	for most := len(d.values) - 1; most > 0; most >>= 1 {
		n++
	}
	return n
}
