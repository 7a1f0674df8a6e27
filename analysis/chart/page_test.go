package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// An element is a tag of a page with its attributes and the text directly in it.
type element struct {
	tag  string
	attr map[string]string
	text string
}

// elements parses a page strictly: every element that is not void is closed, in
// order, and no id is there twice.
func elements(t testing.TB, page []byte) []element {
	t.Helper()
	void := []string{"meta", "br", "path", "rect", "img", "link"}
	var all []element
	var open []int
	ids := map[string]bool{}
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				t.Fatal(z.Err())
			}
			if len(open) > 0 {
				t.Fatalf("<%s> is not closed", all[open[len(open)-1]].tag)
			}
			return all
		case html.TextToken:
			if len(open) > 0 {
				all[open[len(open)-1]].text += string(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			k := z.Token()
			e := element{tag: k.Data, attr: map[string]string{}}
			for _, a := range k.Attr {
				if _, twice := e.attr[a.Key]; twice {
					t.Errorf("<%s> has two %s", k.Data, a.Key)
				}
				e.attr[a.Key] = a.Val
			}
			if id := e.attr["id"]; id != "" {
				if ids[id] {
					t.Errorf("two elements have the id %q", id)
				}
				ids[id] = true
			}
			all = append(all, e)
			if !slices.Contains(void, k.Data) {
				open = append(open, len(all)-1)
			}
		case html.EndTagToken:
			k := z.Token()
			if len(open) == 0 || all[open[len(open)-1]].tag != k.Data {
				t.Fatalf("</%s> closes nothing", k.Data)
			}
			open = open[:len(open)-1]
		}
	}
}

var address = regexp.MustCompile(`(?i)\b(?:https?:)?//[a-z0-9]|url\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\(`)

// checkPage holds what must be so of every page, and returns its elements.
func checkPage(t testing.TB, p *Page) []element {
	t.Helper()
	var out, again bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(&again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("not the same again (%v)", err)
	}
	if out.Len() > 300<<10 {
		t.Errorf("%d bytes", out.Len())
	}
	if at := address.FindIndex(out.Bytes()); at != nil {
		t.Errorf("the page reaches out: %q", out.Bytes()[max(0, at[0]-40):min(out.Len(), at[1]+40)])
	}
	all := elements(t, out.Bytes())
	checkPolicy(t, all)
	var data []map[string]any
	plots := 0
	for _, e := range all {
		for _, key := range []string{"src", "style", "onclick", "onload"} {
			if v, there := e.attr[key]; there {
				t.Errorf("<%s %s=%q>", e.tag, key, v)
			}
		}
		if href, there := e.attr["href"]; there && !strings.HasPrefix(href, "#") {
			t.Errorf("link to %q", href)
		}
		if e.attr["id"] == "charts" {
			if err := json.Unmarshal([]byte(e.text), &data); err != nil {
				t.Errorf("data of the charts: %v", err)
			}
		}
		if e.attr["class"] == "plot" {
			if e.attr["data-chart"] != fmt.Sprint(plots) || len(e.attr["aria-label"]) < 50 || e.attr["role"] != "img" || e.attr["tabindex"] != "0" {
				t.Errorf("plot %d: %v", plots, e.attr)
			}
			plots++
		}
		if e.tag != "script" && e.tag != "style" && regexp.MustCompile(`\b(NaN|Inf|\[\]|nil|ZgotmplZ)\b`).MatchString(e.text) {
			t.Errorf("<%s> says %q", e.tag, e.text)
		}
	}
	want := 0
	for _, s := range p.Sections {
		for i := range s.Charts {
			checkChart(t, &s.Charts[i], all, data[want])
			want++
		}
	}
	if plots != want || len(data) != want {
		t.Errorf("%d plots with %d data, want %d", plots, len(data), want)
	}
	return all
}

// checkPolicy holds the policy of a page against its only script.
func checkPolicy(t testing.TB, all []element) {
	t.Helper()
	i := slices.IndexFunc(all, func(e element) bool { return e.attr["http-equiv"] == "Content-Security-Policy" })
	if i < 0 {
		t.Fatal("no policy")
	}
	policy := all[i].attr["content"]
	scripts := 0
	for k, e := range all {
		if e.tag == "style" {
			hash := sha256.Sum256([]byte(e.text))
			if !strings.Contains(policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'") || k < i {
				t.Errorf("policy %q is not for the style", policy)
			}
		}
		if e.tag != "script" || e.attr["type"] == "application/json" {
			continue
		}
		scripts++
		hash := sha256.Sum256([]byte(e.text))
		if !strings.Contains(policy, "script-src 'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'") || k < i {
			t.Errorf("policy %q is not for the script", policy)
		}
	}
	if scripts != 1 || !strings.HasPrefix(policy, "default-src 'none'; ") {
		t.Errorf("%d scripts under %q", scripts, policy)
	}
}

// checkChart finds a chart in the page: title, n, legend, label and data.
func checkChart(t testing.TB, c *Chart, all []element, data map[string]any) {
	t.Helper()
	said := func(tag, text string) {
		if !slices.ContainsFunc(all, func(e element) bool { return e.tag == tag && strings.Contains(e.text, text) }) {
			t.Errorf("chart %s: no <%s> with %q", c.ID, tag, text)
		}
	}
	said("h3", c.Title)
	said("p", c.Subtitle)
	for _, s := range c.Series {
		said("li", s.Name)
	}
	for _, l := range c.Lines {
		said("li", l.Label)
	}
	if !strings.Contains(c.Subtitle, "n ") {
		t.Errorf("chart %s: no n in %q", c.ID, c.Subtitle)
	}
	i := slices.IndexFunc(all, func(e element) bool {
		return strings.HasPrefix(e.attr["aria-label"], "Chart: "+c.Title+". "+c.Subtitle)
	})
	if i < 0 || !strings.Contains(all[i].attr["aria-label"], c.X.label()) || !strings.Contains(all[i].attr["aria-label"], c.Y.label()) {
		t.Errorf("chart %s: no label", c.ID)
	}
	if got := len(data["series"].([]any)); got != len(c.Series) {
		t.Errorf("chart %s: data of %d series, want %d", c.ID, got, len(c.Series))
	}
	if n := c.numbers(); len(n.Rows) == 0 || len(n.Rows[0]) != len(n.Header) {
		t.Errorf("chart %s: table of numbers %v", c.ID, n)
	}
}

func TestPage(t *testing.T) {
	p := &Page{
		Title: "All <kinds> & more", Intro: []string{"One.", "Two </script> <b>words</b>."},
		Sections: []Section{
			{Heading: "First", Text: []string{"Text."}, Tables: []Table{
				{Title: "Numbers", Header: []string{"what", "n"}, Rows: [][]string{{"a", "1"}, {"b", "2"}}},
				{Words: true, Rows: [][]string{{"name", "some words"}}},
			}, Notes: []string{"A doubt."}},
			{Heading: "Second", Charts: []Chart{kinds(), grid(), lanes(), quantiles()}, Below: []Table{{Title: "Below", Header: []string{"x"}, Rows: [][]string{{"1"}}}}, Code: []Listing{{Title: "The command", Text: "a <b> &&\n  c", Open: true}}},
		},
		Banner:  &Banner{Result: "degraded", Text: []string{"Why <so>."}},
		Records: []Record{{ID: "record", Value: map[string]string{"name": "</script><b>"}}},
	}
	p.Sections[1].Charts[0].Series[0].Name = "</script><script>alert(1)</script>"
	all := checkPage(t, p)
	for _, want := range []element{
		{tag: "h1", text: "All <kinds> & more"}, {tag: "p", text: "Two </script> <b>words</b>."}, {tag: "caption", text: "Numbers"},
		{tag: "td", text: "some words"}, {tag: "li", text: "A doubt."}, {tag: "a", text: "Second"}, {tag: "h2", text: "First"},
		{tag: "p", text: "degraded"}, {tag: "p", text: "Why <so>."}, {tag: "pre", text: "a <b> &&\n  c"}, {tag: "caption", text: "Below"}, {tag: "a", text: "Skip to the content"},
		{tag: "script", text: `{"name":"\u003c/script\u003e\u003cb\u003e"}`},
	} {
		if !slices.ContainsFunc(all, func(e element) bool { return e.tag == want.tag && html.UnescapeString(e.text) == want.text }) {
			t.Errorf("no <%s> %q", want.tag, want.text)
		}
	}
}

func TestPageTwice(t *testing.T) {
	p := &Page{Title: "t", Sections: []Section{{Heading: "a", Charts: []Chart{grid()}}, {Heading: "b", Charts: []Chart{grid()}}}}
	if err := p.Write(io.Discard); err == nil || !strings.Contains(err.Error(), `chart "grid": the page has two of them`) {
		t.Error(err)
	}
}

// An empty page is a page: a report without charts.
func TestPageWithoutCharts(t *testing.T) {
	checkPage(t, &Page{Title: "Nothing", Sections: []Section{{Heading: "Why", Text: []string{"There is no data."}}}})
}
