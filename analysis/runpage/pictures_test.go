package runpage

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"reprise/trace/results"
)

// TestPictures holds the pictures of the README: charts of a made-up run, as SVG.
func TestPictures(t *testing.T) {
	const n, rate = 240, 30
	r := rand.New(rand.NewPCG(1, 2))
	s, c, o := summed(t, writeRun(t, madeRun(n, rate), n, func(i int) results.Result { return madeResult(r, i, rate, nil) }))
	found := 0
	for _, section := range c.Page(s, o).Sections {
		for i := range section.Charts {
			u := &section.Charts[i]
			if u.ID != "ttft-percentiles" && u.ID != "timeline" {
				continue
			}
			found++
			var got bytes.Buffer
			if err := u.WriteSVG(&got); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("..", "..", "testdata", "pictures", "run-"+u.ID+".svg")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs; look at the new one (-update) before you keep it", path)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d charts", found)
	}
}
