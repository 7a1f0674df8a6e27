package chart_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"reprise/analysis/chart"
)

// A report of any kind is a page: numbers in tables, and charts as data.
func ExamplePage() {
	rate := chart.Chart{
		ID: "rate", Title: "Requests sent", Subtitle: "n 180 requests",
		X: chart.Axis{Title: "time since the start", Unit: "s"},
		Y: chart.Axis{Title: "rate", Unit: "requests/s", Zero: true},
		Series: []chart.Series{
			{Name: "sent", Kind: chart.Step, X: []float64{0, 60, 120}, Y: []float64{1, 2, 2}},
		},
		Lines: []chart.Line{{Label: "planned 1.5", At: 1.5}},
		Note:  "Bins of 60 s.",
	}
	page := chart.Page{
		Title: "Run report",
		Intro: []string{"What was measured."},
		Sections: []chart.Section{
			{Heading: "Summary", Tables: []chart.Table{{Words: true, Rows: [][]string{{"requests", "180"}, {"span", "120 s"}}}}},
			{Heading: "Load", Charts: []chart.Chart{rate}},
		},
	}
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	f, err := os.Create(filepath.Join(dir, "report.html"))
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if err := page.Write(f); err != nil {
		log.Fatal(err)
	}
	// A chart without a page is a file.
	p, err := os.Create(filepath.Join(dir, rate.ID+".png"))
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	fmt.Println(rate.WritePNG(p))
	// Output: <nil>
}
