package runpage

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// written makes the page of a run directory.
func written(t testing.TB, dir string) ([]byte, *analysis.Summary) {
	t.Helper()
	s, c, o := summed(t, dir)
	var out bytes.Buffer
	if err := c.Page(s, o).Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), s
}

// scripts returns the data of a page by the id of their elements, and all of its
// text that is not in a script or style.
func scripts(t testing.TB, page []byte) (data map[string]string, text string) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	data = map[string]string{}
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type != html.TextNode {
			continue
		}
		switch p := n.Parent; {
		case p.Data == "script":
			for _, a := range p.Attr {
				if a.Key == "id" {
					data[a.Val] = n.Data
				}
			}
		case p.Data != "style":
			b.WriteString(n.Data + "\n")
		}
	}
	return data, b.String()
}

// TestGoldenPage holds what the charts of a small run are drawn from, one line a
// chart, and the summary in the page against summary.json.
func TestGoldenPage(t *testing.T) {
	dir := made(t, 60)
	page, s := written(t, dir)
	again, _ := written(t, dir)
	if !bytes.Equal(page, again) {
		t.Error("not the same again")
	}
	data, _ := scripts(t, page)
	var charts []json.RawMessage
	if err := json.Unmarshal([]byte(data["charts"]), &charts); err != nil {
		t.Fatal(err)
	}
	got := append(bytes.Join(rawBytes(charts), []byte("\n")), '\n')
	path := filepath.Join("testdata", "page.jsonl")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; look at the page before you keep it (-update)", path)
	}
	if err := analysis.WriteSummary(dir, s); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, results.SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	var compact, inPage bytes.Buffer
	if json.Compact(&compact, file) != nil || json.Compact(&inPage, []byte(data["summary"])) != nil {
		t.Fatal("no JSON")
	}
	unescaped := regexp.MustCompile(`\\u003[ce]|\\u0026`).ReplaceAllFunc(inPage.Bytes(), func(b []byte) []byte {
		return map[string][]byte{"c": []byte("<"), "e": []byte(">"), "6": []byte("&")}[string(b[5:])]
	})
	if !bytes.Equal(compact.Bytes(), unescaped) {
		t.Errorf("the summary of the page\n%s\nis not summary.json\n%s", unescaped, &compact)
	}
}

func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// TestSections: the order answers the questions of a reader, and every chart says
// its n.
func TestSections(t *testing.T) {
	s, c, o := summed(t, made(t, 300))
	p := c.Page(s, o)
	var headings, ids []string
	for _, section := range p.Sections {
		headings = append(headings, section.Heading)
		for i := range section.Charts {
			u := &section.Charts[i]
			ids = append(ids, u.ID)
			if !strings.HasPrefix(u.Subtitle, "n ") || u.X.Title == "" || u.Y.Title == "" || u.Numbers == nil && u.ID != "ttft-by-model" && u.ID != "ttft-by-url" {
				t.Errorf("%s: subtitle %q, axes %q and %q, numbers %v", u.ID, u.Subtitle, u.X.Title, u.Y.Title, u.Numbers)
			}
		}
	}
	want := []string{
		"Can this run be trusted?", "Did it meet its objective?", "Latency", "Load over time", "Latency over time", "Latency by input length", "Latency by turn, session, model and URL",
		"Chunks and stalls", "Errors", "Timeline", "Planned and counted tokens", "Cache reuse", "Recorded and replayed", "Doubts", "Definitions", "Provenance, and how to run it again",
	}
	if !slices.Equal(headings, want) {
		t.Errorf("sections %q", headings)
	}
	wantIDs := []string{
		"lateness", "lateness-percentiles", "ttft-percentiles", "itl-percentiles", "tpot-percentiles", "e2e-percentiles", "response-time-percentiles",
		"in-flight", "output-rate", "input-rate", "tokens-in-flight", "ttft-over-time", "e2e-over-time", "itl-over-time", "stalls-over-time", "ttft-by-input", "e2e-by-input",
		"ttft-by-turn", "sessions", "ttft-by-model", "ttft-by-url", "chunk-sizes", "chunk-gap-percentiles", "stall-percentiles", "errors", "timeline", "input-account", "cached", "recorded-ttft", "recorded-e2e",
	}
	if !slices.Equal(ids, wantIDs) {
		t.Errorf("charts %q", ids)
	}
	code := p.Sections[len(p.Sections)-1].Code[0].Text
	wantCode := "reprise replay \\\n  prod.parquet \\\n  --url http://a:8000/v1/chat/completions \\\n  --url http://b:8000/v1/chat/completions \\\n  --abort-if='error_rate>50%' \\\n  --model large=large-1 \\\n  --model small=small-1 \\\n  --speed=1 \\\n  --label 'gpu=none of ours' \\\n  -o run-again/"
	if code != wantCode {
		t.Errorf("command\n%s\nwant\n%s", code, wantCode)
	}
}

// TestObjective: the page answers with the words of the text report.
func TestObjective(t *testing.T) {
	o, err := results.OpenRun(made(t, 100))
	if err != nil {
		t.Fatal(err)
	}
	for slo, want := range map[string]string{"ttft_p95<1s; ttft<1s": "Yes: 1 of 1 gates are met.", "ttft_p95<1ms": "No: 1 of 1 gates failed."} {
		goals, err := analysis.ParseSLO(slo)
		if err != nil {
			t.Fatal(err)
		}
		c := NewCollector(&o.Run)
		s, err := analysis.SummarizeSLO(t.Context(), o, goals, c.Add)
		if err != nil {
			t.Fatal(err)
		}
		section := c.Page(s, o).Sections[1]
		if !slices.Contains(section.Text, want) || len(section.Tables) == 0 || section.Tables[1].Rows[0][1] != map[bool]string{true: "passed", false: "failed"}[want[0] == 'Y'] {
			t.Errorf("%s: %q, tables %v", slo, section.Text, section.Tables)
		}
	}
}

// A page of a run that measured little says what it lacks, and never NaN.
func TestDegeneratePages(t *testing.T) {
	at := func(ms float64) trace.Optional[time.Duration] { return trace.Some(time.Duration(ms * 1e6)) }
	one := results.Result{URL: "http://a/v1", Protocol: "chat", Outcome: results.OutcomeOK, Due: at(0), Eligible: at(0), Dispatched: at(0), Sent: at(0), End: at(10)}
	failed := one
	failed.Outcome, failed.Cause = results.OutcomeFailed, trace.Some("HTTP 500")
	unsent := results.Result{URL: "http://a/v1", Protocol: "chat", Outcome: results.OutcomeUnsent, Due: at(5)}
	instant := one
	instant.End = at(0)
	warm := one
	warm.Phase = trace.Some(analysis.PhaseWarmUp)
	full := one
	full.Ledger = []results.Entry{{At: 5000, Tokens: trace.Some(int32(3)), Kind: results.KindContent, Source: results.SourceUsage}}
	full.OutputTokens, full.CountedInputTokens, full.PlannedInputTokens = trace.Some(int64(3)), trace.Some(int64(0)), trace.Some(int64(4))
	unknown := full
	unknown.Ledger = []results.Entry{{At: 5000, Kind: results.KindContent, Source: results.SourceUnknown}}
	for _, tt := range []struct {
		name  string
		rows  []results.Result
		ended bool
		want  []string
	}{
		{"no requests", nil, true, []string{"Invalid", "No request was recorded."}},
		{"warm-up only", []results.Result{warm}, true, []string{"Only the warm-up was recorded."}},
		{"one request", []results.Result{full}, true, []string{"TTFT, time to first token: no plot of one sample or of zeros.", "ITL, inter-token latency: no plot, since no request has it."}},
		{"one body", []results.Result{one}, true, []string{"Output tokens per second: no chart, since the tokens of no chunk are known."}},
		{"of no length", []results.Result{instant, instant}, true, []string{"E2E over time: no chart, since no successful request has it."}},
		{"all failed", []results.Result{failed, failed}, true, []string{"failed: HTTP 500", "n 2 requests that were not successful", "TTFT over time: no chart, since no successful request has it."}},
		{"never sent", []results.Result{unsent}, true, []string{"No curves, since no request was sent.", "No timeline, since no request was sent."}},
		{"tokens unknown", []results.Result{unknown, unknown}, true, []string{"Tokens per chunk: no chart, since they are known of no chunk."}},
		{"killed", []results.Result{full, failed, unsent}, false, []string{"The run was killed or still goes on", "The results are read from the parts"}},
		{"killed at once", nil, false, []string{"The run was killed or still goes on"}},
	} {
		run := madeRun(3, 1)
		run.Planned = results.Planned{Requests: 3}
		if run.Ended.Client.CPUSeconds = nil; !tt.ended {
			run.Ended = nil
		}
		page, _ := written(t, writeRun(t, run, len(tt.rows), func(i int) results.Result { return tt.rows[i] }))
		_, text := scripts(t, page)
		for _, want := range tt.want {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
				t.Errorf("%s: no %q", tt.name, want)
			}
		}
		if at := regexp.MustCompile(`\b(NaN|[+-]Inf|nil|ZgotmplZ)\b|%!`).FindStringIndex(text); at != nil {
			t.Errorf("%s: says %q", tt.name, text[max(0, at[0]-40):min(len(text), at[1]+40)])
		}
	}
}

// Whatever the clocks and counts of a run are, it has a page: here chunks come in one
// read or after ages, and requests take no time or hours.
func TestEveryRunHasAPage(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		gap := func() time.Duration {
			return []time.Duration{0, 0, 0, time.Microsecond, time.Millisecond, time.Duration(r.Int64N(1e9)), time.Hour}[r.IntN(3+r.IntN(5))]
		}
		n := 1 + r.IntN(12)
		page, _ := written(t, writeRun(t, madeRun(n, 8), n, func(i int) results.Result {
			res := madeResult(r, i, 8, nil)
			at := gap()
			for k := range res.Ledger {
				res.Ledger[k].At = int64(at / time.Microsecond)
				at += gap()
			}
			if k := len(res.Ledger); k > 0 {
				first, last := res.Sent.Value+time.Duration(res.Ledger[0].At)*time.Microsecond, res.Sent.Value+time.Duration(res.Ledger[k-1].At)*time.Microsecond
				res.FirstByte, res.FirstToken, res.LastToken, res.End = trace.Some(first), trace.Some(first), trace.Some(last), trace.Some(last+gap())
			}
			return res
		}))
		if len(page) == 0 {
			t.Errorf("seed %d: no page", seed)
		}
	}
}

// hostile is what a server or a trace may put into a name.
const hostile = "</script><script>alert(1)</script>\"'`&\x1b[31m\x00\u2028"

// hostileRun has such names in every place.
func hostileRun(t testing.TB) string {
	run := madeRun(40, 8)
	run.Trace.Name = hostile + ".parquet"
	run.Models = map[string]string{hostile: strings.Repeat("long-model-name/", 40)}
	run.Labels = map[string]string{hostile: hostile}
	run.Flags["abort-if"] = hostile
	run.Warnings = []string{hostile}
	base := made(t, 40)
	_, _, o := summed(t, base)
	var rows []results.Result
	for r, err := range o.Results() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return writeRun(t, run, len(rows), func(i int) results.Result {
		r := rows[i]
		r.Model, r.URL, r.Session = trace.Some(hostile+strings.Repeat("m", 300*(i%2))), "http://a/"+hostile+strings.Repeat("/long", 90*(i%2)), trace.Some(hostile+strings.Repeat("s", i*20))
		if r.Cause.Known {
			r.Cause = trace.Some(hostile + strings.Repeat("c", 500))
		}
		r.FinishReason, r.Note = trace.Some(hostile), trace.Some(hostile)
		return r
	})
}

func TestHostileNames(t *testing.T) {
	page, _ := written(t, hostileRun(t))
	if bytes.Contains(page, []byte("<script>alert")) || bytes.Contains(page, []byte("</script><script>a")) {
		t.Error("a name became a script")
	}
	data, text := scripts(t, page)
	if !strings.Contains(text, "</script><script>alert(1)</script>") {
		t.Error("the name is not shown")
	}
	for id, text := range data {
		if !json.Valid([]byte(text)) {
			t.Errorf("data %s is not JSON", id)
		}
	}
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "script" {
			count++
		}
	}
	if count != 3 {
		t.Errorf("%d script elements, want charts, summary and the program", count)
	}
}

func TestCommandQuotes(t *testing.T) {
	text, left := command(&results.Run{Trace: &trace.Input{Name: "it's a trace.parquet"}, URLs: []string{"http://a"}, Flags: map[string]string{"extra-body": "user", "proxy": "given", "H": "x", "stream": "true"}})
	if want := "reprise replay \\\n  'it'\\''s a trace.parquet' \\\n  --url http://a \\\n  --stream \\\n  -o run-again/"; text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	if !strings.Contains(left, "--extra-body (user); --proxy (given)") {
		t.Error(left)
	}
}

func BenchmarkAdd(b *testing.B) {
	dir := made(b, 2000)
	_, _, o := summed(b, dir)
	var rows []results.Result
	for r, err := range o.Results() {
		if err != nil {
			b.Fatal(err)
		}
		rows = append(rows, r)
	}
	c := NewCollector(&o.Run)
	for i := 0; b.Loop(); i++ {
		c.Add(&rows[i%len(rows)])
	}
	s, _, _ := summed(b, dir)
	if err := c.Page(s, o).Write(io.Discard); err != nil {
		b.Fatal(err)
	}
}
