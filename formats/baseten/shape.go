package baseten

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// A shape is the least type that holds the values seen of a column. The zero
// value has seen none.
type shape struct {
	kind   shapeKind
	below0 bool // integers below 0
	above  bool // integers above the largest int64
	elem   *shape
	fields map[string]shape
}

type shapeKind int

const (
	noShape shapeKind = iota
	boolShape
	intShape
	floatShape
	timeShape // nanoseconds that no number of milliseconds holds
	textShape
	listShape
	structShape
	mixedShape // written as JSON text
)

func shapeOf(v any) shape {
	switch v := v.(type) {
	case nil:
		return shape{}
	case bool:
		return shape{kind: boolShape}
	case string:
		return shape{kind: textShape}
	case json.Number:
		return numberShape(string(v))
	case hashList:
		return hashShape(v)
	case unixNS:
		switch {
		case v%1e6 == 0:
			return shape{kind: intShape}
		case fromMS(float64(v)/1e6) == int64(v):
			return shape{kind: floatShape}
		}
		return shape{kind: timeShape}
	case []any:
		elem := shape{}
		for _, e := range v {
			elem = merge(elem, shapeOf(e))
		}
		return shape{kind: listShape, elem: &elem}
	case map[string]any:
		s := shape{kind: structShape, fields: map[string]shape{}}
		for k, f := range v {
			s.fields[k] = shapeOf(f)
		}
		return s
	}
	return shape{kind: mixedShape}
}

func numberShape(n string) shape {
	if v, err := strconv.ParseInt(n, 10, 64); err == nil {
		return shape{kind: intShape, below0: v < 0}
	}
	if _, err := strconv.ParseUint(n, 10, 64); err == nil {
		return shape{kind: intShape, above: true}
	}
	return shape{kind: floatShape}
}

// hashShape takes ids as they were signed; of unsigned ones, a value above the
// largest int64 asks for uint64.
func hashShape(h hashList) shape {
	elem := shape{kind: intShape, below0: h.signed}
	for _, id := range h.ids {
		elem.above = elem.above || !h.signed && id > math.MaxInt64
	}
	return shape{kind: listShape, elem: &elem}
}

func merge(a, b shape) shape {
	switch {
	case a.kind == noShape:
		return b
	case b.kind == noShape:
		return a
	case a.kind == intShape && b.kind == floatShape, a.kind == floatShape && b.kind == intShape:
		return shape{kind: floatShape}
	case a.kind == timeShape, b.kind == timeShape:
		return shape{kind: timeShape}
	case a.kind != b.kind:
		return shape{kind: mixedShape}
	}
	switch a.kind {
	case intShape:
		a.below0, a.above = a.below0 || b.below0, a.above || b.above
	case listShape:
		elem := merge(*a.elem, *b.elem)
		a.elem = &elem
	case structShape:
		fields := maps.Clone(a.fields)
		for k, f := range b.fields {
			fields[k] = merge(fields[k], f)
		}
		a.fields = fields
	}
	return a
}

// arrowType returns the type that holds the shape; def if it has seen nothing.
func (s shape) arrowType(def arrow.DataType) arrow.DataType {
	switch s.kind {
	case noShape:
		return def
	case boolShape:
		return arrow.FixedWidthTypes.Boolean
	case intShape:
		switch {
		case s.above && s.below0:
			return arrow.BinaryTypes.String
		case s.above:
			return arrow.PrimitiveTypes.Uint64
		}
		return arrow.PrimitiveTypes.Int64
	case floatShape:
		return arrow.PrimitiveTypes.Float64
	case timeShape:
		return arrow.FixedWidthTypes.Timestamp_ns
	case listShape:
		return arrow.ListOf(s.elem.arrowType(arrow.PrimitiveTypes.Int64))
	case structShape:
		var fields []arrow.Field
		for _, k := range slices.Sorted(maps.Keys(s.fields)) {
			fields = append(fields, arrow.Field{Name: k, Type: s.fields[k].arrowType(arrow.BinaryTypes.String), Nullable: true})
		}
		if len(fields) > 0 {
			return arrow.StructOf(fields...)
		}
	}
	return arrow.BinaryTypes.String
}

// mixed tells that values of several types are there.
func (s shape) mixed() bool {
	return s.kind == mixedShape || s.kind == intShape && s.above && s.below0 || s.kind == listShape && s.elem.mixed()
}

// settle decides the type of a column.
func (c *outColumn) settle() {
	if c.name == colHashes && c.shape.kind == listShape && c.shape.elem.above {
		c.typ = arrow.ListOf(arrow.PrimitiveTypes.Uint64)
		return
	}
	c.typ = c.shape.arrowType(c.def)
}

// put appends a value to the builder of its column's type.
func put(b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		switch v := v.(type) {
		case string:
			b.Append(v)
		case json.Number:
			b.Append(string(v)) // an id, or a number among texts
		default:
			b.Append(jsonText(v))
		}
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int64Builder:
		if at, ok := v.(unixNS); ok {
			b.Append(int64(at) / 1e6)
			return
		}
		n, _ := strconv.ParseInt(string(v.(json.Number)), 10, 64)
		b.Append(n)
	case *array.TimestampBuilder:
		if at, ok := v.(unixNS); ok {
			b.Append(arrow.Timestamp(at))
			return
		}
		f, _ := strconv.ParseFloat(string(v.(json.Number)), 64)
		b.Append(arrow.Timestamp(fromMS(f)))
	case *array.Uint64Builder:
		n, _ := strconv.ParseUint(string(v.(json.Number)), 10, 64)
		b.Append(n)
	case *array.Float64Builder:
		if at, ok := v.(unixNS); ok {
			b.Append(float64(at) / 1e6)
			return
		}
		f, _ := strconv.ParseFloat(string(v.(json.Number)), 64)
		b.Append(f)
	case *array.ListBuilder:
		b.Append(true)
		putElements(b.ValueBuilder(), v)
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range b.Type().(*arrow.StructType).Fields() {
			put(b.FieldBuilder(i), v.(map[string]any)[f.Name])
		}
	}
}

func putElements(b array.Builder, v any) {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			put(b, e)
		}
		return
	}
	for _, id := range v.(hashList).ids {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(id))
		case *array.Uint64Builder:
			b.Append(id)
		}
	}
}
