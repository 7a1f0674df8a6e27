package servegen_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/formats/importtest"
	"reprise/formats/servegen"
	"reprise/formats/source"
	"reprise/trace"
)

func TestGolden(t *testing.T) {
	importtest.Golden(t, &servegen.Importer{Seed: 1}, "servegen", "small")
}

// What the published files hold, by their manifest.
func TestPublishedFiles(t *testing.T) {
	for _, c := range []struct {
		dir                    []string
		windows, busy, lengths int64
		rate                   float64
		reason                 bool
	}{
		{[]string{"servegen", "language"}, 2016, 58, 17, 42.486667, false},
		{[]string{"servegen", "reason"}, 144, 41, 2, 7.625, true},
	} {
		path := importtest.Shared(t, c.dir...)
		r := importtest.Load(t, &servegen.Importer{Seed: 3}, path)
		notes := r.Meta.Counts.Notes
		if notes["windows"] != c.windows || notes["windows with traffic"] != c.busy || notes["windows of lengths that are not empty"] != c.lengths || notes["clients"] != 1 {
			t.Errorf("%v: %v", c.dir, notes)
		}
		if want := c.rate * 600; math.Abs(float64(len(r.Rows))-want) > 0.3*want {
			t.Errorf("%v: %d requests, the rates make %v", c.dir, len(r.Rows), want)
		}
		for _, row := range r.Rows {
			if !row.InputTokens.Known || !row.OutputTokens.Known || row.ReasoningTokens.Known != c.reason {
				t.Fatalf("%+v", row)
			}
		}
	}
}

// Over many seeds, requests and gaps are as the data say.
func TestDrawnAsTheDataSay(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		line string
		cv   float64
	}{
		{"0,2,0,Gamma,0.5,1\n600,2,0,Gamma,0.5,1\n", math.Sqrt2},
		{"0,2,0,Weibull,2,1\n600,2,0,Weibull,2,1\n", 0.5227},
		{"0,2,0,Exponential,0,0\n600,2,0,,0,0\n", 1},
	} {
		importtest.Write(t, dir, "a-trace.csv", c.line)
		importtest.Write(t, dir, "a-dataset.json", `{"0":{"input_tokens":"{1: 0.25, 2: 0.75}","output_tokens":"{3: 1.0}"}}`)
		var n, sum, squares, gaps, ones float64
		for seed := range 20 {
			r, err := importtest.Try(&servegen.Importer{Seed: uint64(seed)}, dir)
			if err != nil {
				t.Fatal(err)
			}
			n += float64(len(r.Rows))
			for i, row := range r.Rows {
				if row.InputTokens.Value == 1 {
					ones++
				}
				if i > 0 {
					gap := (row.Arrival.Value - r.Rows[i-1].Arrival.Value).Seconds()
					sum, squares, gaps = sum+gap, squares+gap*gap, gaps+1
				}
			}
		}
		mean := sum / gaps
		cv := math.Sqrt(squares/gaps-mean*mean) / mean
		if math.Abs(n/20/2400-1) > 0.02 || math.Abs(mean-0.5) > 0.01 || math.Abs(cv-c.cv) > 0.03 || math.Abs(ones/n-0.25) > 0.01 {
			t.Errorf("%q: %v requests, mean gap %v, cv %v, share of short prompts %v", c.line, n/20, mean, cv, ones/n)
		}
	}
}

// A window of the data, and a seed, decide the rows.
func TestFromDuration(t *testing.T) {
	path := importtest.Shared(t, "servegen", "reason")
	all := importtest.Load(t, &servegen.Importer{Seed: 1}, path)
	again := importtest.Load(t, &servegen.Importer{Seed: 1}, path)
	if string(all.Data) != string(again.Data) {
		t.Error("one seed gives two traces")
	}
	part := importtest.Load(t, &servegen.Importer{Seed: 1, From: 16 * time.Hour, Duration: 2 * time.Hour}, path)
	if n := len(part.Rows); n == 0 || n >= len(all.Rows) || part.Rows[n-1].Arrival.Value >= 2*time.Hour {
		t.Errorf("%d of %d rows, last at %v", n, len(all.Rows), part.Rows[n-1].Arrival.Value)
	}
	if _, err := importtest.Try(&servegen.Importer{From: 1000 * time.Hour}, path); err == nil || !strings.Contains(err.Error(), "no row") {
		t.Errorf("beyond the data: %v", err)
	}
}

func TestErrors(t *testing.T) {
	good := map[string]string{"a-trace.csv": "0,1,1,Gamma,1,1\n", "a-dataset.json": `{"0":{"input_tokens":"{1: 1.0}"}}`}
	for _, c := range []struct{ file, text, want string }{
		{"a-trace.csv", "", "the file is empty"},
		{"a-trace.csv", "0,0,0,,0,0\n", "no traffic in any window of 1 clients"},
		{"a-trace.csv", "0,1,1,Gamma,0,1\n", "no window could be used"},
		{"a-dataset.json", `{"0":{"input_tokens":"{1: 0.5}"}}`, "window 0: input_tokens: the probabilities make 0.5, not 1"},
		{"a-dataset.json", `{"0":{"input_tokens":"[1]"}}`, "no dictionary such as"},
		{"a-dataset.json", `{"0":{"input_tokens":"{1: __import__('os')}"}}`, `"1: __import__('os')" is no pair of a value and a probability`},
		{"a-dataset.json", `{"0":[]}`, "window 0: no object of histograms as strings"},
		{"a-dataset.json", `{"x":{}}`, `"x" is no start of a window in seconds`},
		{"b-trace.csv", "0,1,1,Gamma,1,1\n", "client b: b-dataset.json is not there"},
		{"b-dataset.json", `{"0":{}}`, "client b: b-trace.csv is not there"},
		{"trace.csv", "0,1,1,Gamma,1,1\n", "not named as ServeGen's files are"},
		{"a-trace.csv", "PAR1xxxx", "arquet"},
	} {
		dir := t.TempDir()
		for name, text := range good {
			importtest.Write(t, dir, name, text)
		}
		importtest.Write(t, dir, c.file, c.text)
		_, err := importtest.Try(&servegen.Importer{}, dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || trace.Fix(err) == "" {
			t.Errorf("%s %q: %v", c.file, c.text, err)
		}
	}
}

// What is wrong with a line is said, and the line is time without traffic.
func TestWindows(t *testing.T) {
	dir := t.TempDir()
	importtest.Write(t, dir, "a-dataset.json", `{"0":{"input_tokens":"{1: 1.0}"}}`)
	importtest.Write(t, dir, "a-trace.csv", "0,1,1,Gamma,1,1\n600,1,1,Pareto,1,1\n1200,-1,1,Gamma,1,1\n1200,1,1,Gamma\n600,1,1,Gamma,1,1\n300,1,1,Gamma,1,1\n1800,1,1,Gamma,1,1\n")
	r := importtest.Load(t, &servegen.Importer{}, dir)
	var got []string
	for _, e := range r.Rejected {
		got = append(got, strings.TrimPrefix(e.Error(), e.File+":"))
	}
	want := `2: law: "Pareto" is none of Gamma, Weibull and Exponential
3: rate: "-1" is no number from 0 on
4: : 4 fields, not the six start, rate, CV, law, shape, scale
6: start: 300 comes after 600: windows are in order`
	if text := strings.ReplaceAll(strings.Join(got, "\n"), "4: 4 fields", "4: : 4 fields"); text != want {
		t.Errorf("got\n%s", text)
	}
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, servegen.Detect, map[string]bool{
		"0,0,0,,0,0\n600,1,1,Gamma,1,1\n": true,
		"0,0,0,x,0,0\n":                   false,
		"a,b,c,d,e,f\n":                   false,
		`{"0":{"input_tokens":"{}","output_tokens":"{}"},"600":{}}`: true,
		`{"0":{"input_tokens":5}}`:                                  false,
		`{"0":{"colour":"{}"}}`:                                     false,
		`{"id":{"input_tokens":"{}"}}`:                              false,
	})
}

func TestWorkload(t *testing.T) {
	src, _, err := source.Find([]string{filepath.Join(importtest.Testdata, "servegen", "small")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rejected := 0
	w, err := servegen.Workload(t.Context(), src, 1, "test", func(*trace.RowError) error { rejected++; return nil })
	if err != nil || rejected != 1 || len(w.Streams) != 2 || w.Requests != 21 || *w.SpanS != 3000 {
		t.Fatalf("%v, %d rejected, %+v", err, rejected, w)
	}
	a := w.Streams[0].Arrivals
	if a.N != 18 || a.Gaps.Family != "weibull" || len(a.Profile) != 4 || a.Profile[2].RateHz != 0.02 || math.Abs(*a.Rest.CV-(6*1.5+12*0.9)/18) > 1e-12 || !strings.HasPrefix(a.GapsWhy, "weibull in the windows of 67 % of the requests") {
		t.Errorf("%+v %+v", a, a.Rest)
	}
	law, err := a.Gaps.Law()
	if err != nil {
		t.Fatal(err)
	}
	if mean, _ := law.Mean(); math.Abs(mean-1) > 1e-9 {
		t.Errorf("gaps have the mean %v", mean)
	}
	n := int64(0)
	for _, p := range w.Streams[0].Lengths.Pairs {
		if p.Input < 60 || p.Input > 61 || p.Output != 5 && p.Output != 100 {
			t.Errorf("%+v", p)
		}
		n += p.N
	}
	if n != 2000 {
		t.Errorf("%d pairs", n)
	}
}
