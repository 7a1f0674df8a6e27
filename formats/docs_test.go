package formats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reprise/formats"
)

// says is what a page says of what is missing.
var says = regexp.MustCompile(`(?i)leaves? out|not read|nothing is lost`)

// pages are the directories of formats that are not named for them.
var pages = map[string]string{"csv": "mapper", "parquet": "mapper", "inference-perf": "inferenceperf"}

func page(name string) string {
	if dir, ok := pages[name]; ok {
		return dir
	}
	return name
}

// Every format has a page that says what the source leaves out and what is not read,
// a row in the table of this directory, and one in the table of the main README that
// says whether it can be written.
func TestEveryFormatIsDocumented(t *testing.T) {
	table := tableOf(t, "README.md")
	main := tableOf(t, filepath.Join("..", "README.md"))
	var want []string
	for _, f := range formats.All {
		text, err := os.ReadFile(filepath.Join(page(f.Name), "README.md"))
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if !strings.HasPrefix(string(text), "# ") || !says.MatchString(string(text)) {
			t.Errorf("%s: its page does not say what the source leaves out, or what is not read", f.Name)
		}
		writes := ""
		if f.NewExporter != nil {
			writes = "yes"
		}
		want = append(want, fmt.Sprintf("| `%s` | [%s](%s/README.md) | %s | %s |", f.Name, page(f.Name), page(f.Name), f.Doc, writes))
		row, ok := main[f.Name]
		if !ok {
			t.Errorf("%s: not in the table of the main README", f.Name)
		} else if cells := strings.Split(row, "|"); len(cells) != 6 || f.NewExporter != nil != (strings.TrimSpace(cells[3]) != "") && f.Name != "jsonl" {
			t.Errorf("%s: the table of the main README does not say whether it can be written: %s", f.Name, row)
		}
		if got := table[f.Name]; got != want[len(want)-1] {
			t.Errorf("README.md: %q, want %q", got, want[len(want)-1])
		}
	}
	if t.Failed() {
		t.Logf("the table is:\n%s", strings.Join(want, "\n"))
	}
	for name := range main {
		if !slices.Contains(formats.Names(false), name) {
			t.Errorf("%s: in the main README, but no format", name)
		}
	}
}

var code = regexp.MustCompile("`([a-z-]+)`")

// tableOf returns the rows of a table of formats by name.
func tableOf(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, below, ok := strings.Cut(string(text), "\n## Formats\n"); ok { // other sections of the main README have tables too
		below, _, _ = strings.Cut(below, "\n## ")
		text = []byte(below)
	}
	_, after, ok := strings.Cut(string(text), "\n| format |")
	if !ok {
		t.Fatalf("%s: no table of formats", path)
	}
	rows := map[string]string{}
	for _, line := range strings.Split(after, "\n")[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		for _, name := range code.FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			if _, twice := rows[name[1]]; !twice {
				rows[name[1]] = line
			}
		}
	}
	return rows
}
