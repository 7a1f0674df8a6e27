package runpage

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/analysis"
	"reprise/trace/results"
)

// drawn counts, of each plot, the canvases and the different colours on them.
const drawn = `Array.from(document.querySelectorAll(".plot")).map(function (div) {
	var canvas = div.querySelector("canvas"), colors = new Set();
	if (canvas && canvas.width > 0) {
		var px = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		for (var i = 0; i < px.length; i += 4) if (px[i + 3] > 200) colors.add(px[i] << 16 | px[i + 1] << 8 | px[i + 2]);
	}
	return {id: div.parentNode.id, width: canvas ? canvas.width : 0, colors: colors.size};
})`

// wider names the elements that are wider than the window, where nothing scrolls.
const wider = `Array.from(document.querySelectorAll("body *")).filter(function (e) {
	return e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5 && !e.closest(".scroll") && !e.closest(".uplot") && !e.closest("noscript");
}).map(function (e) { return e.tagName + "." + e.className + "#" + e.id; })`

// TestInChromium looks at pages as a reader does: narrow and wide, in the light and
// in the dark.
func TestInChromium(t *testing.T) {
	b := newBrowser(t)
	pages := map[string]string{"run": made(t, 300), "hostile": hostileRun(t)}
	for _, name := range []string{"run", "hostile"} {
		page, s := written(t, pages[name])
		path := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{375, 1600} {
			for _, scheme := range []string{"light", "dark"} {
				if name == "hostile" && (width == 375) == (scheme == "light") {
					continue // one of each is enough
				}
				b.screen(width, 900, scheme)
				b.open(path)
				look(t, b, fmt.Sprintf("%s %d %s", name, width, scheme), width, scheme)
			}
		}
		if name == "run" {
			numbers(t, b, s)
			keys(t, b)
		}
		if len(b.requests) != 1 || !strings.HasPrefix(b.requests[0], "file:///") {
			t.Errorf("%s: asks for %q", name, b.requests)
		}
	}
}

// look checks what must hold of every page.
func look(t *testing.T, b *browser, name string, width int, scheme string) {
	t.Helper()
	if len(b.complaints) > 0 {
		t.Errorf("%s: the console says %s", name, b.complaints)
	}
	var plots []struct {
		ID            string
		Width, Colors int
	}
	b.eval(drawn, &plots)
	if len(plots) < 20 {
		t.Errorf("%s: %d plots", name, len(plots))
	}
	for _, p := range plots {
		if p.Width < width/4 || p.Colors < 4 {
			t.Errorf("%s: plot %s is %d wide and has %d colours", name, p.ID, p.Width, p.Colors)
		}
	}
	var over []string
	b.eval(wider, &over)
	var scroll int
	b.eval("document.documentElement.scrollWidth", &scroll)
	if len(over) > 0 || scroll > width {
		t.Errorf("%s: %d wide, %q stand out", name, scroll, over)
	}
	var paper string
	b.eval("getComputedStyle(document.documentElement).backgroundColor", &paper)
	if want := map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}[scheme]; paper != want {
		t.Errorf("%s: paper is %s", name, paper)
	}
	b.shoot(name, width)
}

// numbers compares every row of every table of metrics with summary.json.
func numbers(t *testing.T, b *browser, s *analysis.Summary) {
	t.Helper()
	dir := t.TempDir()
	if err := analysis.WriteSummary(dir, s); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, results.SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Metrics map[string]map[string]any
		Verdict struct{ Result string }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var tables [][][]string
	b.eval(`Array.from(document.querySelectorAll("table")).map(function (t) { return Array.from(t.rows).map(function (r) { return Array.from(r.cells).map(function (c) { return c.textContent; }); }); })`, &tables)
	seen := map[string]bool{}
	for _, table := range tables {
		if len(table[0]) != 2+len(analysis.Stats) || table[0][0] != "metric" {
			continue
		}
		for _, row := range table[1:] {
			m, ok := file.Metrics[row[0]]
			if !ok {
				continue // of sessions
			}
			seen[row[0]] = true
			want := []string{row[0], analysis.Grouped(int64(m["n"].(float64)))}
			for _, stat := range analysis.Stats {
				want = append(want, cellOf(m, stat))
			}
			if !slices.Equal(row, want) {
				t.Errorf("the page says\n%q, summary.json\n%q", row, want)
			}
		}
	}
	if len(seen) != len(file.Metrics) {
		t.Errorf("the page has %d of %d metrics: %v", len(seen), len(file.Metrics), seen)
	}
	var verdict string
	b.eval(`document.querySelector(".banner .result").textContent`, &verdict)
	if verdict != file.Verdict.Result {
		t.Errorf("verdict %q, want %q", verdict, file.Verdict.Result)
	}
}

// cellOf writes a number of summary.json as a table should.
func cellOf(m map[string]any, stat string) string {
	if v, ok := m[stat+"_ms"].(float64); ok {
		return analysis.TimeText(v)
	}
	v, ok := m[stat+"_tokens"].(float64)
	switch {
	case !ok:
		return "n/a"
	case v == float64(int64(v)):
		return analysis.Grouped(int64(v))
	}
	return analysis.TimeText(v)
}

// keys: the first stop of the keyboard skips to the content, a plot reads its values
// to the arrows, and the button turns the colours.
func keys(t *testing.T, b *browser) {
	t.Helper()
	press := func(key string) {
		for _, kind := range []string{"keyDown", "keyUp"} {
			b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key}, nil)
		}
	}
	var text string
	b.call("Page.bringToFront", nil, nil)
	press("Tab")
	b.eval(`document.activeElement.textContent + " " + (getComputedStyle(document.activeElement).outlineStyle !== "none")`, &text)
	if text != "Skip to the content true" {
		t.Errorf("the first stop is %q", text)
	}
	b.eval(`document.querySelector("#timeline .plot").focus(); ""`, &text)
	press("ArrowRight")
	press("ArrowRight")
	b.eval(`document.querySelector("#timeline .readout").textContent`, &text)
	if !strings.HasPrefix(text, "since the run began ") {
		t.Errorf("the timeline reads %q", text)
	}
	b.eval(`document.getElementById("theme").click(); getComputedStyle(document.documentElement).backgroundColor + " " + document.getElementById("theme").textContent`, &text)
	if text != "rgb(255, 255, 255) Dark" { // the page was dark
		t.Errorf("after the button: %s", text)
	}
	b.shoot("run by the button", 1600)
	var pdf struct{ Data []byte }
	b.call("Page.printToPDF", map[string]any{}, &pdf)
	if len(pdf.Data) < 50_000 {
		t.Errorf("printed to %d bytes", len(pdf.Data))
	}
	if dir := os.Getenv("REPRISE_SHOTS"); dir != "" {
		os.WriteFile(filepath.Join(dir, "run.pdf"), pdf.Data, 0o644)
	}
}
