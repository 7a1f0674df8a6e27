package formats_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/source"
)

// detected are the directories of samples, ours and the published ones, and the
// format of what is in them; "" = no format, and no two.
var detected = map[string]string{"lmcache_agent": "lmcache", "mapper": ""}

// TestEveryFileHasOneFormat asks all formats about every sample and every
// published file: exactly one must take it.
func TestEveryFileHasOneFormat(t *testing.T) {
	shared := os.Getenv("REPRISE_SHARED")
	if shared == "" {
		shared = "../shared"
	}
	if !filepath.IsAbs(shared) {
		shared = filepath.Join("..", shared) // from the module root
	}
	files := 0
	for _, root := range []string{"../testdata", filepath.Join(shared, "data")} {
		if _, err := os.Stat(root); err != nil {
			t.Logf("no published files (set REPRISE_SHARED): %v", err)
			continue
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(root, path)
			dir, _, inside := strings.Cut(filepath.ToSlash(rel), "/")
			switch filepath.Ext(path) {
			case ".golden", ".md", ".go", ".py", ".yaml", ".svg":
				return err
			}
			if err != nil || d.IsDir() || !inside || dir == "interop" || dir == "gen" {
				return err
			}
			want, special := detected[dir]
			if !special {
				want = dir
			}
			files++
			oneFormat(t, path, want)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 20 {
		t.Errorf("only %d files", files)
	}
}

func oneFormat(t *testing.T, path, want string) {
	s := source.New(path, nil)
	defer s.Close()
	h, err := s.Head()
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	var found []string
	for _, f := range formats.All {
		if why, ok := f.Detect(h); ok {
			found = append(found, f.Name)
			if why == "" {
				t.Errorf("%s: %s without evidence", path, f.Name)
			}
		}
	}
	if got := strings.Join(found, " "); got != want {
		t.Errorf("%s: taken for %q, want %q", path, got, want)
	}
}
