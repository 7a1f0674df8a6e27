package servegen

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

func load(t testing.TB, path string) ([]*client, error) {
	t.Helper()
	src, _, err := source.Find([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	nothing := rows.New(func(*trace.Batch) error { return nil }, func(*trace.RowError) error { return nil })
	return read(t.Context(), nothing, src)
}

// The rates of the published files make what the manifest says.
func TestPublishedRates(t *testing.T) {
	shared := os.Getenv("REPRISE_SHARED")
	if shared == "" {
		shared = "../shared"
	}
	if !filepath.IsAbs(shared) {
		shared = filepath.Join("../..", shared)
	}
	for dir, want := range map[string]struct{ rate, last float64 }{"language": {42.486667, 1209000}, "reason": {7.625, 85800}} {
		path := filepath.Join(shared, "data", "servegen", dir)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no published files (set REPRISE_SHARED): %v", err)
		}
		clients, err := load(t, path)
		if err != nil || len(clients) != 1 {
			t.Fatal(err, len(clients))
		}
		c, rate := clients[0], 0.0
		for _, w := range c.windows {
			rate += w.rate
		}
		if last := c.windows[len(c.windows)-1]; math.Abs(rate-want.rate) > 1e-6 || last.from != want.last || last.to != want.last+600 {
			t.Errorf("%s: rates make %v, last window %+v", dir, rate, last)
		}
	}
}

func FuzzHistogram(f *testing.F) {
	f.Add("{60: 0.25, 61: 0.75}")
	f.Add("{}")
	f.Add("{1e2: 1.0,}")
	f.Fuzz(func(t *testing.T, text string) {
		values, cum, err := parseHistogram(text)
		if err != nil || len(values) == 0 {
			return
		}
		h := histogram{values: values, cum: cum}
		for _, u := range []float64{0, 0.5, 1 - 1e-16, 1} {
			if v := h.quantile(u); !(v >= 0) {
				t.Errorf("%q at %v: %v", text, u, v)
			}
		}
	})
}

// Whatever a table says, its requests are drawn in order of time within it.
func FuzzWindows(f *testing.F) {
	f.Add("0,0.01,1.5,Gamma,0.44,227.0\n600,0,0,,0,0\n")
	f.Add("0,1,1,Weibull,0.2,1\n1,1,1,Exponential,1,1\n")
	dir := f.TempDir()
	for name, text := range map[string]string{"a-dataset.json": `{"0":{"input_tokens":"{1: 1.0}"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	enough := errors.New("enough")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(dir, "a-trace.csv"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		src, _, _ := source.Find([]string{dir}, nil)
		last := int64(-1)
		_, err := (&Importer{}).Import(t.Context(), src, func(b *trace.Batch) error {
			for _, at := range b.ArrivalNS.Values {
				if at < last {
					t.Errorf("%d after %d", at, last)
				}
				last = at
			}
			return enough
		}, func(*trace.RowError) error { return nil })
		if err == nil && last >= 0 {
			t.Error("the error of emit is lost")
		}
	})
}
