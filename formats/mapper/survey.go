package mapper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"reprise/formats/csvx"
	"reprise/formats/instant"
	"reprise/formats/jsonx"
	"reprise/formats/source"
	"reprise/trace"
)

// surveyRows is how many rows of a source are looked at.
const surveyRows = 10_000

// maxDistinct is how many different values of a column are told apart.
const maxDistinct = 64

// A column is what the beginning of a source shows of one column.
type column struct {
	name     string
	n        int // values that are not empty
	empty    int
	ints     int
	numbers  int
	times    int // calendar times
	unzoned  int // of these, without a zone
	bools    int
	arrays   int
	idLists  int // arrays of ids
	objects  int
	min, max float64
	sum      float64
	sorted   bool
	last     float64
	distinct map[string]int
	example  string
	longest  int // bytes of a value
}

func (c *column) add(v cell) {
	if v.unknown() {
		c.empty++
		return
	}
	t := strings.TrimSpace(string(v.text))
	if c.n++; c.n == 1 {
		c.example, c.sorted, c.min, c.max, c.last = t, true, math.Inf(1), math.Inf(-1), math.Inf(-1)
	}
	c.longest = max(c.longest, len(t))
	if len(t) <= 80 && len(c.distinct) < maxDistinct || c.distinct[t] > 0 {
		c.distinct[t]++
	} else if len(c.distinct) < maxDistinct {
		c.distinct[t[:80]]++
	}
	if at, err := instant.Parse([]byte(t)); err == nil {
		c.times++
		if !at.Zoned {
			c.unzoned++
		}
		c.number(float64(at.NS))
		return
	}
	if f, err := strconv.ParseFloat(t, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		c.numbers++
		if _, err := jsonx.Int([]byte(t)); err == nil {
			c.ints++
		}
		c.number(f)
		return
	}
	switch lower := strings.ToLower(t); {
	case lower == "true" || lower == "false":
		c.bools++
	case t[0] == '[' && json.Valid([]byte(t)):
		c.arrays++
		var ids []uint64
		if json.Unmarshal([]byte(t), &ids) == nil {
			c.idLists++
		}
	case t[0] == '{' && json.Valid([]byte(t)):
		c.objects++
	}
}

func (c *column) number(f float64) {
	c.min, c.max, c.sum = min(c.min, f), max(c.max, f), c.sum+f
	c.sorted = c.sorted && f >= c.last
	c.last = f
}

// all tells whether a count is that of all values, of which there are some; of
// many, 2 % may be broken.
func (c *column) all(count int) bool { return c.n > 0 && count >= c.n-c.n/50 }

// mean is that of numbers.
func (c *column) mean() float64 { return c.sum / float64(max(1, c.numbers)) }

// A survey is what the beginning of a source shows.
type survey struct {
	container string
	rows      int
	columns   []*column
	index     map[string]*column
}

func (s *survey) column(name string) *column {
	c := s.index[name]
	if c == nil {
		c = &column{name: name, distinct: map[string]int{}}
		s.index[name] = c
		s.columns = append(s.columns, c)
	}
	return c
}

var errEnough = errors.New("enough rows")

// look surveys the beginning of a source.
func look(f *source.Source) (*survey, error) {
	h, err := f.Head()
	if err != nil {
		return nil, err
	}
	s := &survey{index: map[string]*column{}}
	switch h.Container {
	case "csv":
		s.container = CSV
		err = s.csv(f)
	case "json", "json array":
		s.container = JSONL
		err = s.json(f, h)
	case "parquet":
		s.container = Parquet
		err = s.parquet(f)
	default:
		return nil, trace.WithFix(fmt.Errorf("%s: %s, and a mapping is for CSV, JSON and Parquet", f.Name, h.Container), "turn it into a table with named columns first")
	}
	if err != nil && err != errEnough {
		return nil, err
	}
	if s.rows == 0 {
		return nil, trace.WithFix(fmt.Errorf("%s: no rows to look at", f.Name), "name a file with rows")
	}
	return s, nil
}

func (s *survey) row() error {
	if s.rows++; s.rows >= surveyRows {
		return errEnough
	}
	return nil
}

func (s *survey) csv(f *source.Source) error {
	t, err := csvx.Open(f)
	if err != nil {
		return err
	}
	defer t.Close()
	for _, name := range t.Header {
		s.column(name)
	}
	for {
		r, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return jsonx.Named(f, err)
		}
		if r.Err != nil {
			continue
		}
		for i, v := range r.Fields {
			s.column(t.Header[i]).add(cell{text: v})
		}
		if err := s.row(); err != nil {
			return err
		}
	}
}

func (s *survey) json(f *source.Source, h *source.Head) error {
	return jsonx.Objects(f, h, func(o jsonx.Object) error {
		if o.Err != nil {
			return nil
		}
		row, err := jsonx.Parse(o.Raw)
		if err != nil {
			return nil
		}
		s.object("", row)
		return s.row()
	})
}

// object looks at the values of an object, and at those of objects in it.
func (s *survey) object(prefix string, row jsonx.Row) {
	for _, k := range slices.Sorted(maps.Keys(row)) {
		v := jsonCell(row[k])
		s.column(prefix + k).add(v)
		var inner jsonx.Row
		if prefix == "" && len(v.text) > 0 && v.text[0] == '{' && json.Unmarshal(v.text, &inner) == nil {
			s.object(k+".", inner)
		}
	}
}

func (s *survey) parquet(f *source.Source) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged(f, fmt.Errorf("%v", p))
		}
	}()
	file, err := openParquet(f)
	if err != nil {
		return err
	}
	rec := newParquetRow(file.Schema())
	for _, name := range rec.names {
		s.column(name)
	}
	return eachParquetRow(file, f, func(row parquet.Row) error {
		rec.set(row)
		for i, name := range rec.names {
			s.column(name).add(rec.cells[i])
		}
		return s.row()
	})
}
