package analysis

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// documented are the rows of METRICS.md below a heading: the cells without their
// back quotes.
func documented(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## "+heading)
	if !found {
		t.Fatalf("METRICS.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") || cells[0] == " name" || cells[0] == " tool" {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		rows = append(rows, cells)
	}
	return rows
}

func namesOf(rows [][]string, cell int) (names []string) {
	for _, row := range rows {
		names = append(names, row[cell])
	}
	return names
}

// jsonNames are the keys of a struct.
func jsonNames(v any) (names []string) {
	for i := range reflect.TypeOf(v).NumField() {
		if tag := reflect.TypeOf(v).Field(i).Tag.Get("json"); tag != "" && tag != "-" {
			names = append(names, strings.Split(tag, ",")[0])
		}
	}
	return names
}

// TestMetricsAreDefined: METRICS.md defines every metric of summary.json, in its
// words, and no other.
func TestMetricsAreDefined(t *testing.T) {
	sessions := []definition{defTurns, defMakespan, defAgentMakespan, defJoinWait}
	var all []definition
	for _, name := range tableOrder {
		all = append(all, definitionOf(name))
	}
	for heading, list := range map[string][]definition{"Distributions": all, "Sessions": sessions} {
		rows := documented(t, heading)
		if len(rows) != len(list) {
			t.Errorf("%s: %d rows for %d metrics", heading, len(rows), len(list))
			continue
		}
		for i, d := range list {
			if want := []string{d.name, d.unit, d.of, d.text}; !slices.Equal(rows[i][:4], want) || rows[i][4] == "" {
				t.Errorf("%s: row %q, want %q and when it is absent", heading, rows[i], want)
			}
		}
	}
	if got, want := namesOf(documented(t, "Throughput"), 0), jsonNames(Throughput{}); !slices.Equal(got, want) {
		t.Errorf("throughput: %q, want %q", got, want)
	}
	want := append([]string{"error_rate", "with_failures"}, slices.DeleteFunc(jsonNames(Goodput{}), func(name string) bool { return name == "terms" })...)
	if got := namesOf(documented(t, "Failures and goals"), 0); !slices.Equal(got, want) {
		t.Errorf("failures and goals: %q, want %q", got, want)
	}
	summary := jsonNames(Summary{})
	for _, name := range []string{"error_rate", "with_failures", "metrics", "throughput", "sessions"} {
		if !slices.Contains(summary, name) {
			t.Errorf("summary.json has no %s", name)
		}
	}
}

// TestForeignNames: every name of another tool points to a metric of ours.
func TestForeignNames(t *testing.T) {
	var ours []string
	for _, heading := range []string{"Distributions", "Sessions", "Throughput", "Failures and goals"} {
		ours = append(ours, namesOf(documented(t, heading), 0)...)
	}
	tools := map[string]int{}
	for _, row := range documented(t, "Names elsewhere") {
		if tools[row[0]]++; row[2] == "none" && row[3] != "" {
			continue // what it is stands beside it
		}
		if !slices.Contains(ours, row[2]) {
			t.Errorf("%s %s is said to be %s, which is no metric", row[0], row[1], row[2])
		}
	}
	for tool, least := range map[string]int{"AIPerf": 14, "GenAI-Perf": 9, "vLLM bench": 8} {
		if tools[tool] < least {
			t.Errorf("%d names of %s", tools[tool], tool)
		}
	}
}
