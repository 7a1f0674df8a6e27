package csvx_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/formats/csvx"
	"reprise/formats/source"
)

// table opens a text as a table.
func table(t testing.TB, text string) (*csvx.Table, *source.Source) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f := source.New(path, nil)
	tab, err := csvx.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tab.Close() })
	return tab, f
}

// all lists the rows of a table, or what is wrong with them.
func all(t testing.TB, text string) (rows []string) {
	tab, _ := table(t, text)
	for {
		r, err := tab.Next()
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Err != nil {
			rows = append(rows, fmt.Sprintf("%d: %v", r.Line, r.Err))
			continue
		}
		rows = append(rows, fmt.Sprintf("%d: %s", r.Line, bytes.Join(r.Fields, []byte("|"))))
	}
}

func TestRows(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain":              {"a,b\n1,2\n3,4\n", "2: 1|2; 3: 3|4"},
		"mark, CR, no end":   {"\xef\xbb\xbfa,b\r\n1,2\r\n3,4", "2: 1|2; 3: 3|4"},
		"tabs":               {"a\tb\n1,5\t2\n", "2: 1,5|2"},
		"semicolons":         {"a;b;c\n1;2;3\n", "2: 1|2|3"},
		"blank lines":        {"a,b\n\n1,2\n  \n3,4\n\n", "3: 1|2; 5: 3|4"},
		"quoted header":      {"\"a, b\",c\n1,2\n", "2: 1|2"},
		"quotes":             {"a,b\n\"x, \"\"y\"\"\",2\n3,4\n", `2: x, "y"|2; 3: 3|4`},
		"quote over lines":   {"a,b\n\"x\r\ny\",2\r\n3,4\r\n", "2: x\ny|2; 4: 3|4"},
		"bare quote":         {"a,b\nx\"y,2\n3,4\n", "2: : bare \" in non-quoted-field at byte 2; 3: 3|4"},
		"quote that is open": {"a,b\n1,2\n\"x,2\n3,4\n", "2: 1|2; 3: : a quote that does not end; 1 lines after it are part of the row"},
		"too few":            {"a,b,c\n1,2\n", "2: b: missing"},
		"too many":           {"a,b\n1,2,3\n", "2: : 3 fields, but the first line names 2"},
		"empty at the end":   {"a,b\n1,2,,\n", "2: 1|2"},
		"empty fields":       {"a,b\n,\n", "2: |"},
	} {
		if name == "too few" {
			c.want = "2: c: missing: the row has 2 of 3 fields"
		}
		if got := strings.Join(all(t, c.text), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestColumns(t *testing.T) {
	tab, f := table(t, "Timestamp, Request tokens ,\"Log Type\",n\n5, 7.0 ,a b,x\n")
	if tab.Column("log type") != 2 || tab.Column("other", "TIMESTAMP") != 0 || tab.Column("other") != -1 {
		t.Errorf("columns of %q", tab.Header)
	}
	if _, err := tab.Need(f, "Timestamp", "Model"); err == nil || !strings.Contains(err.Error(), `in.csv: no column "Model"; the first line has: Timestamp, Request tokens, Log Type, n`) {
		t.Errorf("a column that is not there: %v", err)
	}
	r, err := tab.Next()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Int(1); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := r.Int(3); err == nil || err.Error() != "n: x is no integer" {
		t.Errorf("%v", err)
	}
	if got := r.Attributes(tab.Others(0, 1)); len(got) != 2 || got["Log Type"] != `"a b"` {
		t.Errorf("%v", got)
	}
}

// A quote that is never closed costs one pass over what follows.
func TestOpenQuoteInALargeFile(t *testing.T) {
	text := "a,b\n1,2\n\"x,2\n" + strings.Repeat("3,4\n", 500_000)
	if got := all(t, text); len(got) != 2 || !strings.Contains(got[1], "500000 lines after it are part of the row") {
		t.Errorf("%.100q", got)
	}
}

// Rows that encoding/csv reads are read in the same way.
func FuzzTable(f *testing.F) {
	f.Add("a,b\n1,2\n")
	f.Add("a,b\n\"x\n,\"\"\",2\r\n\n3,4")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) == 0 || strings.HasPrefix(text, "version https://git-lfs") || strings.IndexByte("\xef\x1f\x28BPA{[", text[0]) >= 0 {
			return
		}
		got := all(t, text)
		if first, _, _ := strings.Cut(text, "\n"); strings.ContainsAny(first, "\"\t;|") || !strings.Contains(first, ",") || strings.Contains(text, "\r") {
			return
		}
		c := csv.NewReader(strings.NewReader(text))
		c.FieldsPerRecord = 0
		want, err := c.ReadAll()
		if err != nil {
			return
		}
		var rows []string
		for _, r := range want[1:] {
			if len(r) == 1 && strings.TrimSpace(r[0]) == "" {
				continue
			}
			rows = append(rows, strings.Join(r, "|"))
		}
		var clean []string
		for _, g := range got {
			_, row, _ := strings.Cut(g, ": ")
			clean = append(clean, row)
		}
		if strings.Join(rows, ";") != strings.Join(clean, ";") && len(want[0]) > 1 && !strings.HasPrefix(text, "\n") {
			t.Errorf("%q:\n got %q\nwant %q", text, clean, rows)
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	text := "TIMESTAMP,ContextTokens,GeneratedTokens\n" + strings.Repeat("2023-11-16 18:17:03.9799600,4808,10\n", 100_000)
	path := filepath.Join(b.TempDir(), "in.csv")
	os.WriteFile(path, []byte(text), 0o644)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tab, err := csvx.Open(source.New(path, nil))
		if err != nil {
			b.Fatal(err)
		}
		sum := int64(0)
		for {
			r, err := tab.Next()
			if err == io.EOF {
				break
			}
			n, err := r.Int(1)
			if err != nil {
				b.Fatal(err)
			}
			sum += n
		}
		tab.Close()
		if sum != 4808*100_000 {
			b.Fatal(sum)
		}
	}
}
