package baseten

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// resolve looks through dictionaries, run ends and extensions; known is false
// for null.
func resolve(a arrow.Array, i int) (_ arrow.Array, _ int, known bool) {
	for {
		if a == nil {
			return nil, 0, false
		}
		switch w := a.(type) {
		case *array.RunEndEncoded:
			a, i = w.Values(), w.GetPhysicalIndex(i)
			continue
		case array.ExtensionArray:
			a = w.Storage()
			continue
		}
		if a.IsNull(i) {
			return nil, 0, false
		}
		d, ok := a.(*array.Dictionary)
		if !ok {
			_, null := a.(*array.Null)
			return a, i, !null
		}
		a, i = d.Dictionary(), d.GetValueIndex(i)
	}
}

// cellInt reads a resolved integer cell; big is set instead of an error if it
// is above the largest int64.
func cellInt(a arrow.Array, i int) (v int64, big uint64, ok bool) {
	switch a := a.(type) {
	case *array.Int64:
		return a.Value(i), 0, true
	case *array.Int32:
		return int64(a.Value(i)), 0, true
	case *array.Int16:
		return int64(a.Value(i)), 0, true
	case *array.Int8:
		return int64(a.Value(i)), 0, true
	case *array.Uint64:
		if v := a.Value(i); v > math.MaxInt64 {
			return 0, v, true
		}
		return int64(a.Value(i)), 0, true
	case *array.Uint32:
		return int64(a.Value(i)), 0, true
	case *array.Uint16:
		return int64(a.Value(i)), 0, true
	case *array.Uint8:
		return int64(a.Value(i)), 0, true
	}
	return 0, 0, false
}

// cellFloat reads a resolved float cell; known is false for NaN, which stands
// for null where a table of nullable integers went through pandas.
func cellFloat(a arrow.Array, i int) (v float64, ok, known bool) {
	switch a := a.(type) {
	case *array.Float64:
		v = a.Value(i)
	case *array.Float32:
		v = float64(a.Value(i))
	case *array.Float16:
		v = float64(a.Value(i).Float32())
	default:
		return 0, false, false
	}
	return v, true, !math.IsNaN(v)
}

// count reads an integer, also one stored as a float or, for a flag, a bool.
func count(col arrow.Array, i int) (v int64, known bool, err error) {
	a, i, known := resolve(col, i)
	if !known {
		return 0, false, nil
	}
	if v, big, ok := cellInt(a, i); ok {
		if big > 0 {
			return 0, false, fmt.Errorf("%d is out of range", big)
		}
		return v, true, nil
	}
	if b, ok := a.(*array.Boolean); ok {
		if b.Value(i) {
			return 1, true, nil
		}
		return 0, true, nil
	}
	f, _, known := cellFloat(a, i)
	if known && (f != math.Trunc(f) || math.Abs(f) >= 1<<62) {
		return 0, false, fmt.Errorf("%v is no integer", f)
	}
	return int64(f), known, nil
}

// maxMS is the largest time in milliseconds that fits nanoseconds in 64 bits.
const maxMS = math.MaxInt64 / 1_000_000

// millis reads milliseconds, or a timestamp of any unit, as nanoseconds. exact
// is false if the cell is finer than that.
func millis(col arrow.Array, i int) (ns int64, known, exact bool, err error) {
	a, i, known := resolve(col, i)
	if !known {
		return 0, false, true, nil
	}
	if t, ok := a.(*array.Timestamp); ok {
		per := int64(t.DataType().(*arrow.TimestampType).Unit.Multiplier())
		v := int64(t.Value(i))
		if v > math.MaxInt64/per || v < math.MinInt64/per {
			return 0, false, true, fmt.Errorf("%d %s is out of range", v, t.DataType())
		}
		return v * per, true, true, nil
	}
	if v, big, ok := cellInt(a, i); ok {
		if big > 0 {
			return 0, false, true, fmt.Errorf("%d ms is out of range", big)
		}
		if v > maxMS || v < -maxMS {
			return 0, false, true, fmt.Errorf("%d ms is out of range", v)
		}
		return v * 1e6, true, true, nil
	}
	f, _, known := cellFloat(a, i)
	if !known {
		return 0, false, true, nil
	}
	if math.Abs(f) >= maxMS {
		return 0, false, true, fmt.Errorf("%v ms is out of range", f)
	}
	ns = fromMS(f)
	return ns, true, float64(ns)/1e6 == f, nil
}

// fromMS rounds milliseconds to nanoseconds without loss in the whole part.
func fromMS(f float64) int64 {
	whole, part := math.Modf(f)
	return int64(whole)*1e6 + int64(math.Round(part*1e6))
}

// text reads a string or bytes, which must be UTF-8; the result shares no
// memory with the batch.
func text(col arrow.Array, i int) (s string, known bool, err error) {
	a, i, known := resolve(col, i)
	if !known {
		return "", false, nil
	}
	switch a := a.(type) {
	case array.StringLike:
		s = a.Value(i)
	case interface{ ValueString(int) string }: // binary
		s = a.ValueString(i)
	case *array.FixedSizeBinary:
		s = string(a.Value(i))
	}
	if !utf8.ValidString(s) {
		return "", false, fmt.Errorf("%d bytes that are not valid UTF-8", len(s))
	}
	return strings.Clone(s), true, nil
}

// ident reads an id, text or number, as text: 7, 7.0 and "7" are equal. Bytes
// that are no text read as hexadecimal.
func ident(col arrow.Array, i int) (s string, known bool) {
	a, i, known := resolve(col, i)
	if !known {
		return "", false
	}
	if v, big, ok := cellInt(a, i); ok {
		if big > 0 {
			return strconv.FormatUint(big, 10), true
		}
		return strconv.FormatInt(v, 10), true
	}
	if f, ok, known := cellFloat(a, i); ok {
		return strconv.FormatFloat(f, 'f', -1, 64), known
	}
	s, known, err := text(a, i)
	if err != nil {
		return hex.EncodeToString(raw(a, i)), true
	}
	return s, known
}

func raw(a arrow.Array, i int) []byte {
	switch a := a.(type) {
	case array.StringLike:
		return []byte(a.Value(i))
	case interface{ Value(int) []byte }:
		return a.Value(i)
	}
	return nil
}

// hashes reads a list of 64-bit patterns; nil if the list is null, never if it
// is empty. signed tells that an id below 0 was among them.
func hashes(col arrow.Array, i int) (ids []uint64, signed bool, err error) {
	a, i, known := resolve(col, i)
	if !known {
		return nil, false, nil
	}
	list := a.(array.ListLike)
	from, to := list.ValueOffsets(i)
	values := list.ListValues()
	ids = make([]uint64, 0, to-from)
	for e := from; e < to; e++ {
		v, at, known := resolve(values, int(e))
		if !known {
			return nil, false, fmt.Errorf("null at position %d of %d", e-from, to-from)
		}
		n, big, _ := cellInt(v, at)
		signed = signed || n < 0
		ids = append(ids, max(big, uint64(n)))
	}
	return ids, signed, nil
}
