package baseten

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"reprise/formats/source"
	"reprise/trace"
)

// Columns of the format.
const (
	colTime       = "timestamp_start_unix_ms"
	colPrompt     = "prompt"
	colInput      = "input_tokens"
	colOutput     = "output_tokens"
	colHashes     = "total_hashes"
	colBlock      = "block_size"
	colProvided   = "provided_session_id"
	colPoor       = "poor_man_session_id"
	colE2E        = "duration_e2e_ms"
	colTTFT       = "duration_ttft_ms"
	colCanceled   = "request_canceled"
	colCached     = "cached_tokens_reference"
	colModel      = "model_name"
	colOrg        = "org_id"
	colFeatures   = "features"
	colRatio      = "speculation_ratio"
	colOutputText = "output_text"
	colHashesLen  = "total_hashes_len"
	colVersion    = "__version__"
	colVersion2   = "dataset_version" // an alias of colVersion
)

// required columns must be in the table, and known in every row.
var required = []string{colTime, colPrompt, colInput, colOutput}

// A rule says which types a column may have.
type rule struct {
	what string // in words
	ok   func(arrow.DataType) bool
}

var (
	asCount = rule{"a count", isNumber}
	asTime  = rule{"a time in milliseconds", func(t arrow.DataType) bool { return isNumber(t) || t.ID() == arrow.TIMESTAMP }}
	asText  = rule{"text", isText}
	asID    = rule{"an id", func(t arrow.DataType) bool { return isText(t) || isNumber(t) }}
	asFlag  = rule{"0 or 1", func(t arrow.DataType) bool { return isNumber(t) || t.ID() == arrow.BOOL }}
	asList  = rule{"a list of 64-bit integers", isHashList}
)

// typed are the columns that fill canonical ones; all others become attributes.
var typed = map[string]rule{
	colTime: asTime, colPrompt: asText, colInput: asCount, colOutput: asCount,
	colHashes: asList, colBlock: asCount, colProvided: asID, colPoor: asID,
	colE2E: asCount, colTTFT: asCount, colCanceled: asFlag, colCached: asCount,
	colModel: asID, colOrg: asID, colOutputText: asText,
}

// documented columns that have no canonical one of their own.
var documented = []string{colFeatures, colRatio, colHashesLen, colVersion, colVersion2}

// base looks through what only changes how values are stored.
func base(t arrow.DataType) arrow.DataType {
	for {
		switch u := t.(type) {
		case *arrow.DictionaryType:
			t = u.ValueType
		case *arrow.RunEndEncodedType:
			t = u.Encoded()
		case arrow.ExtensionType:
			t = u.StorageType()
		default:
			return t
		}
	}
}

func isNumber(t arrow.DataType) bool {
	return arrow.IsInteger(t.ID()) || t.ID() == arrow.NULL || t.ID() == arrow.FLOAT16 || t.ID() == arrow.FLOAT32 || t.ID() == arrow.FLOAT64
}

func isText(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY, arrow.NULL:
		return true
	}
	return false
}

// isHashList refuses lists of floats, which cannot hold 64-bit hashes.
func isHashList(t arrow.DataType) bool {
	if t.ID() == arrow.NULL {
		return true
	}
	list, ok := t.(arrow.ListLikeType)
	if !ok || t.ID() == arrow.MAP {
		return false
	}
	elem := base(list.Elem())
	return arrow.IsInteger(elem.ID()) || elem.ID() == arrow.NULL
}

// A layout says where the columns of one table are.
type layout struct {
	sc      *arrow.Schema
	at      map[string]int // position of the columns in typed
	cols    []arrow.Array  // of the bound batch
	session string         // the column that names the session; "" = none
	extra   []int          // columns kept as attributes
	unit    string         // of the arrival, in words
}

// layout checks the columns of a table.
func (s *state) layout(f *source.Source, sc *arrow.Schema) (*layout, error) {
	l := &layout{sc: sc, at: map[string]int{}, unit: "ms"}
	var names []string
	for i, field := range sc.Fields() {
		if slices.Contains(names, field.Name) {
			return nil, fmt.Errorf("%s: column %s is there twice", f.Name, field.Name)
		}
		names = append(names, field.Name)
		r, ok := typed[field.Name]
		if !ok {
			l.extra = append(l.extra, i)
			continue
		}
		if !r.ok(base(field.Type)) {
			return nil, trace.WithFix(fmt.Errorf("%s: column %s: type %s is not %s", f.Name, field.Name, field.Type, r.what), "cast the column, or rename it to keep it as an attribute")
		}
		l.at[field.Name] = i
	}
	var missing []string
	for _, name := range required {
		if _, ok := l.at[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, trace.WithFix(fmt.Errorf("%s: no column %s; the table has %s", f.Name, quoteAll(missing), quoteAll(names)), "a Baseten trace needs the columns "+quoteAll(required)+"; name another format with --format")
	}
	if t, ok := base(sc.Field(l.at[colTime]).Type).(*arrow.TimestampType); ok {
		l.unit = t.String()
	}
	return l, l.chooseSession(f, s.im.SessionColumn, names)
}

// chooseSession follows the current rule of the format: provided_session_id,
// or the other column where the table lacks it.
func (l *layout) chooseSession(f *source.Source, want string, names []string) error {
	switch {
	case want == SessionNone:
		return nil
	case want != "":
		i := slices.Index(names, want)
		if i < 0 {
			return trace.WithFix(fmt.Errorf("%s: no column %s, which --session-column names; the table has %s", f.Name, want, quoteAll(names)), "name one of them, or none")
		}
		if t := l.sc.Field(i).Type; !asID.ok(base(t)) {
			return trace.WithFix(fmt.Errorf("%s: column %s: type %s is not %s", f.Name, want, t, asID.what), "name another column with --session-column, or none")
		}
		l.session, l.at[want] = want, i
		return nil
	}
	for _, name := range []string{colProvided, colPoor} {
		if _, ok := l.at[name]; ok {
			l.session = name
			return nil
		}
	}
	return nil
}

// bind sets the record batch that cells are read from.
func (l *layout) bind(cols []arrow.Array) { l.cols = cols }

// col returns a column of typed; nil if the table lacks it.
func (l *layout) col(name string) arrow.Array {
	if i, ok := l.at[name]; ok {
		return l.cols[i]
	}
	return nil
}

// cellJSON returns a cell as JSON text; "" if it is null.
func cellJSON(col arrow.Array, i int) string {
	a, at, known := resolve(col, i)
	if !known {
		return ""
	}
	v := a.GetOneForMarshal(at)
	if _, ok := col.(array.ExtensionArray); ok {
		v = col.GetOneForMarshal(i) // such as a UUID as text
	}
	switch f := v.(type) {
	case nil:
		return ""
	case string:
		if _, isFloat, _ := cellFloat(a, at); isFloat && f == "NaN" {
			return ""
		}
	case interface{ Float32() float32 }: // float16
		v = f.Float32()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		text, _ := json.Marshal(a.ValueStr(at))
		return string(text)
	}
	var out bytes.Buffer
	if json.Compact(&out, b.Bytes()) != nil {
		return ""
	}
	return out.String()
}

// textJSON is cellJSON but for bytes, which are text where they are UTF-8: some
// writers do not mark text as such.
func textJSON(col arrow.Array, i int) string {
	if col != nil && isText(base(col.DataType())) {
		if s, known, err := text(col, i); err == nil && known {
			return jsonText(s)
		}
	}
	return cellJSON(col, i)
}

// rowJSON returns the row as it was read; null cells are left out.
func (l *layout) rowJSON(i int) string {
	b := []byte{'{'}
	for c, field := range l.sc.Fields() {
		text := textJSON(l.cols[c], i)
		if text == "" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',', ' ')
		}
		name, _ := json.Marshal(field.Name)
		b = append(append(append(b, name...), ':', ' '), text...)
	}
	return string(append(b, '}'))
}
