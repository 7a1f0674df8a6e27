package mapper

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/formats/source"
)

// Propose looks at the beginning of a source and writes a first mapping for it,
// with a comment that says why at each guess. container is the format that reads
// it: CSV, JSONL or Parquet.
func Propose(f *source.Source, w io.Writer) (container string, err error) {
	s, err := look(f)
	if err != nil {
		return "", err
	}
	s.columns = slices.DeleteFunc(s.columns, func(c *column) bool { return c.name == "" }) // a rule cannot name them
	p := &proposal{survey: s, taken: map[string]bool{}}
	p.guess()
	_, err = w.Write(p.text(f))
	return s.container, err
}

// A proposal is a mapping in the making.
type proposal struct {
	survey *survey
	taken  map[string]bool // columns that are mapped
	rules  []string        // lines
}

// A pattern guesses a canonical column by the name of a column and its values.
type pattern struct {
	target string
	names  *regexp.Regexp // of the name in lower case, parts apart by _
	fits   func(c *column) bool
}

func isInt(c *column) bool  { return c.all(c.ints) && c.min >= 0 }
func isText(c *column) bool { return c.n > 0 && c.arrays+c.objects < c.n }
func isLength(c *column) bool {
	return c.all(c.numbers) && c.min >= 0
}

// patterns are tried in order: the first column of the first pattern that fits is
// taken.
var patterns = []pattern{
	{"source_id", regexp.MustCompile(`^(request_?id|req_?id|rid|uuid|call_?id)$`), isText},
	{"operation", regexp.MustCompile(`^(operation|call_type|endpoint|task)$`), isText},
	{"session_id", regexp.MustCompile(`^(session(_?id)?|conversation(_?id)?|chat_?id|thread_?id|dialog(ue)?_?id)$`), isText},
	{"turn", regexp.MustCompile(`^(turn(_?(id|index|no|number))?|round)$`), isInt},
	{"client_id", regexp.MustCompile(`^(client(_?id)?|user(_?id)?|tenant(_?id)?|customer(_?id)?|api_?key|organi[sz]ation(_?id)?)$`), isText},
	{"model", regexp.MustCompile(`^(model(_?(name|id))?|engine|deployment)$`), isText},
	{"streaming", regexp.MustCompile(`^(stream(ing|ed)?|is_stream(ing)?)$`), func(c *column) bool { return c.all(c.bools) || isInt(c) && c.max <= 1 }},
	{"input_tokens", regexp.MustCompile(`^(usage_)?((num_)?(input|prompt|request|context|prefill)_?(tokens?|len(gth)?|size|token_count)|(num_)?prompt_tokens|isl|tokens_in|input|in)$`), isInt},
	{"output_tokens", regexp.MustCompile(`^(usage_)?((num_)?(output|completion|response|generated|generation|decode|gen)_?(tokens?|len(gth)?|size|token_count)|osl|tokens_out|token_size|output|out)$`), isInt},
	{"reasoning_tokens", regexp.MustCompile(`(^|_)(reasoning|thinking)_tokens$`), isInt},
	{"cached_tokens", regexp.MustCompile(`(^|_)(cached_tokens|cache_read_(input_)?tokens|cache_hit_tokens)$`), isInt},
	{"max_output_tokens", regexp.MustCompile(`^(max_(new_|output_|completion_)?tokens)$`), isInt},
	{"block_ids", regexp.MustCompile(`^(hash_ids|block_(ids|hashes)|prefix_(ids|hashes)|hashes)$`), func(c *column) bool { return c.all(c.idLists) }},
	{"messages", regexp.MustCompile(`^(messages|input_messages)$`), func(c *column) bool { return c.all(c.arrays) }},
	{"tools", regexp.MustCompile(`^tools$`), func(c *column) bool { return c.all(c.arrays) }},
	{"body", regexp.MustCompile(`^((request_?)?(body|payload))$`), func(c *column) bool { return c.all(c.objects) }},
	{"prompt", regexp.MustCompile(`^(prompt|text_input|input_text|text)$`), func(c *column) bool { return isText(c) && c.numbers < c.n }},
	{"output_text", regexp.MustCompile(`^(output_text|completion|response|answer|output)$`), func(c *column) bool { return isText(c) && c.numbers < c.n }},
	{"images", regexp.MustCompile(`^(num_?images|images?_?count|n_?images)$`), isInt},
	{"recorded_ttft", regexp.MustCompile(`^(ttft|time_to_first_token|first_token_latency)(_(s|sec|seconds|ms|us|ns))?$`), isLength},
	{"recorded_e2e", regexp.MustCompile(`^(e2e(_latency)?|latency|duration|elapsed(_time)?|request_(duration|latency)|response_time|total_time|api_time)(_(s|sec|seconds|ms|us|ns))?$`), isLength},
	{"delay", regexp.MustCompile(`^(delay|think_time|wait(_time)?|pre_gap)(_(s|sec|seconds|ms|us|ns))?$`), isLength},
	{"finish_reason", regexp.MustCompile(`^(finish_?reason|stop_?reason)s?$`), isText},
}

// timeNames are columns that may hold the arrival, the likeliest first.
var timeNames = regexp.MustCompile(`^(arriv(al|ed)(_?(time(stamp)?|at))?|timestamp|time|ts|start(ed)?(_?(time(stamp)?|at|ts))?|request(ed)?_?(time(stamp)?|at|received_?(ts|ms|time))|created(_?(at|time))?|event_time|date(time)?|t)(_(unix_)?(s|sec|seconds|ms|us|ns))?$`)

// plainName brings names to one form: parts in lower case apart by _.
func plainName(name string) string {
	var b strings.Builder
	lower := false
	for _, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			if lower {
				b.WriteByte('_')
			}
			b.WriteRune(c - 'A' + 'a')
			lower = false
			continue
		case c == ' ' || c == '-' || c == '.' || c == '/':
			c = '_'
		}
		b.WriteRune(c)
		lower = c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
	}
	return strings.Trim(b.String(), "_")
}

func (p *proposal) guess() {
	p.arrival()
	for _, pat := range patterns {
		for _, c := range p.survey.columns {
			if p.taken[c.name] || !pat.names.MatchString(plainName(c.name)) || !pat.fits(c) {
				continue
			}
			p.take(pat.target, c)
			break
		}
	}
	p.status()
}

func (p *proposal) rule(format string, args ...any) {
	p.rules = append(p.rules, fmt.Sprintf(format, args...))
}

// take writes the rule of a column that a pattern found.
func (p *proposal) take(target string, c *column) {
	p.taken[c.name] = true
	why := fmt.Sprintf("by its name; %s", c.describe())
	t, _ := targetOf(target)
	switch {
	case t.kind == length:
		unit, because := lengthUnit(c)
		p.rule("  %s: # %s", target, why)
		p.rule("    column: %s", quoted(c.name))
		p.rule("    unit: %s # %s", unit, because)
	case t.kind == blocks:
		p.rule("  %s: # %s", target, why)
		p.rule("    column: %s", quoted(c.name))
		p.rule("    tokens: 512 # a guess: the data do not say how many tokens a block has")
	case t.kind == turn && c.min >= 1:
		p.rule("  %s: # %s", target, why)
		p.rule("    column: %s", quoted(c.name))
		p.rule("    base: 1 # the lowest value")
	case t.kind == choice:
		p.choice(target, t, c, why)
	default:
		p.rule("  %s: %s # %s", target, quoted(c.name), why)
	}
	if target == "output_tokens" && c.min == 0 {
		p.rule("    # 0 occurs; if it stands for failed calls, add: status: {column: %s, values: {\"0\": error}, default: ok}", quoted(c.name))
	}
}

// arrival takes the likeliest column of times.
func (p *proposal) arrival() {
	var found []*column
	for _, c := range p.survey.columns {
		if c.n > 0 && timeNames.MatchString(plainName(c.name)) && (c.all(c.times) || c.all(c.numbers)) {
			found = append(found, c)
		}
	}
	for _, c := range p.survey.columns {
		if !slices.Contains(found, c) && c.all(c.times) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		p.rule("  # arrival: no column of times was found; without one the trace has no clock")
		return
	}
	c := found[0]
	p.taken[c.name] = true
	p.rule("  arrival: # %s", c.describe())
	p.rule("    column: %s", quoted(c.name))
	if c.all(c.times) {
		p.rule("    unit: iso # calendar times such as %s", c.example)
		if c.unzoned > 0 {
			p.rule("    zone: \"+00:00\" # a guess: the times name no zone")
		}
	} else {
		unit, epoch, why := momentUnit(c)
		p.rule("    unit: %s # %s", unit, why)
		if epoch {
			p.rule("    epoch: true")
		}
	}
	for _, other := range found[1:] {
		p.rule("    # %s has times too: %s", quoted(other.name), other.describe())
	}
}

// momentUnit guesses the unit of numbers that are times: by the name, or by the
// size that Unix times of these years have in each unit.
func momentUnit(c *column) (unit string, epoch bool, why string) {
	for _, u := range []struct {
		unit     string
		from, to float64
	}{{"s", 1e9, 5e9}, {"ms", 1e12, 5e12}, {"us", 1e15, 5e15}, {"ns", 1e18, 5e18}} {
		if c.min >= u.from && c.max <= u.to {
			return u.unit, true, fmt.Sprintf("as Unix times in %s the values are of the years 2001 to 2128", u.unit)
		}
	}
	if u := suffixUnit(c.name); u != "" {
		return u, false, "by the end of the name"
	}
	if c.ints < c.n {
		return "s", false, "a guess: numbers with a fraction are mostly seconds; check that the span is right"
	}
	if span := c.max - c.min; c.n > 1 && span/float64(c.n-1) > 50 {
		return "ms", false, fmt.Sprintf("a guess: %.4g on average from row to row; check that the span is right", span/float64(c.n-1))
	}
	return "s", false, "a guess: whole numbers, close together; check that the span is right"
}

func lengthUnit(c *column) (unit, why string) {
	if u := suffixUnit(c.name); u != "" {
		return u, "by the end of the name"
	}
	if c.mean() >= 100 && c.max >= 1000 {
		return "ms", fmt.Sprintf("a guess: %.4g on average", c.mean())
	}
	return "s", fmt.Sprintf("a guess: %.4g on average", c.mean())
}

func suffixUnit(name string) string {
	plain := plainName(name)
	for _, u := range []struct{ end, unit string }{{"_ms", "ms"}, {"_millis", "ms"}, {"_us", "us"}, {"_micros", "us"}, {"_ns", "ns"}, {"_nanos", "ns"}, {"_seconds", "s"}, {"_sec", "s"}, {"_s", "s"}} {
		if strings.HasSuffix(plain, u.end) {
			return u.unit
		}
	}
	return ""
}

// choice writes what each value of a column stands for, as far as its words say.
func (p *proposal) choice(target string, t target, c *column, why string) {
	p.rule("  %s: # %s", target, why)
	p.rule("    column: %s", quoted(c.name))
	p.rule("    values:")
	for _, v := range slices.Sorted(maps.Keys(c.distinct)) {
		to := ""
		for _, choice := range t.choices {
			if strings.Contains(strings.ToLower(v), choice) {
				to = choice
				break
			}
		}
		if to == "" {
			to = t.choices[len(t.choices)-1]
		}
		p.rule("      %s: %s", quoted(v), to)
	}
	p.rule("    default: %s", t.choices[len(t.choices)-1])
}

var statusNames = regexp.MustCompile(`^((http_?)?status(_?code)?|outcome|success(ful)?|ok|error(_?code)?|failed)$`)

var good = regexp.MustCompile(`(?i)^(ok|success(ful)?|succeeded|completed?|finished|true|1|done)$`)

// status guesses which values mean that a call went well.
func (p *proposal) status() {
	for _, c := range p.survey.columns {
		name := plainName(c.name)
		if p.taken[c.name] || c.n == 0 || !statusNames.MatchString(name) || len(c.distinct) >= maxDistinct {
			continue
		}
		p.taken[c.name] = true
		p.rule("  status: # by its name; %s", c.describe())
		p.rule("    column: %s", quoted(c.name))
		p.rule("    values:")
		if c.all(c.ints) && c.min >= 100 && c.max < 600 {
			p.rule("      200..299: ok # HTTP")
			p.rule("      \"499\": cancelled # as nginx has it")
			p.rule("    default: error")
			return
		}
		flipped := strings.HasPrefix(name, "error") || name == "failed"
		if flipped && !c.all(c.bools) && !c.all(c.ints) {
			p.rule("      \"*\": error # any text")
			p.rule("    default: ok # where it is empty")
			return
		}
		for _, v := range slices.Sorted(maps.Keys(c.distinct)) {
			to := "error"
			if good.MatchString(v) != flipped {
				to = "ok"
			}
			if strings.Contains(strings.ToLower(v), "cancel") || strings.Contains(strings.ToLower(v), "abort") {
				to = "cancelled"
			}
			p.rule("      %s: %s", quoted(v), to)
		}
		if !flipped {
			p.rule("    default: error")
		}
		return
	}
}

// describe says what the values are.
func (c *column) describe() string {
	var b strings.Builder
	switch {
	case c.n == 0:
		return "empty in all rows"
	case c.all(c.times):
		fmt.Fprintf(&b, "calendar times, first %s", c.example)
	case c.all(c.ints):
		fmt.Fprintf(&b, "whole numbers %s to %s", short(c.min), short(c.max))
	case c.all(c.numbers):
		fmt.Fprintf(&b, "numbers %s to %s", short(c.min), short(c.max))
	case c.all(c.bools):
		b.WriteString("true or false")
	case c.all(c.arrays):
		b.WriteString("JSON arrays")
	case c.all(c.objects):
		b.WriteString("JSON objects")
	default:
		fmt.Fprintf(&b, "text of up to %d bytes", c.longest)
		if len(c.distinct) < maxDistinct {
			fmt.Fprintf(&b, ", %d different", len(c.distinct))
		}
	}
	if (c.all(c.numbers) || c.all(c.times)) && c.sorted && c.n > 1 {
		b.WriteString(", in order")
	}
	if c.empty > 0 {
		fmt.Fprintf(&b, ", empty in %d of %d", c.empty, c.empty+c.n)
	}
	return b.String()
}

func short(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}

var bare = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// quoted writes a text as a YAML scalar.
func quoted(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan":
		return strconv.Quote(s)
	}
	if bare.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

func (p *proposal) text(f *source.Source) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# A first mapping of %s, made by looking at its first %d rows. Check each line;\n", oneLine(f.Base()), p.survey.rows)
	fmt.Fprintf(&b, "# what it all may say: reprise trace map-init --schema. Then:\n")
	fmt.Fprintf(&b, "#   reprise trace import %s --format %s --map THIS.yaml -o OUT.parquet\n", oneLine(f.Base()), p.survey.container)
	fmt.Fprintf(&b, "version: %d\nclock: trace # session if times begin anew in each session\n", Version)
	b.WriteString("others: attributes # drop leaves out what is not mapped\ncolumns:\n")
	mapped := false
	for _, r := range p.rules {
		b.WriteString(oneLine(r) + "\n")
		mapped = mapped || !strings.HasPrefix(strings.TrimSpace(r), "#")
	}
	if !mapped {
		b.WriteString("  operation: {constant: other} # no column was recognised: map at least one\n")
	}
	for _, c := range p.survey.columns {
		if !p.taken[c.name] {
			fmt.Fprintf(&b, "  # not mapped: %s: %s\n", quoted(oneLine(c.name)), oneLine(c.describe()))
		}
	}
	return b.Bytes()
}

// oneLine keeps a comment from ending early.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029 {
			return ' '
		}
		return c
	}, s)
}
