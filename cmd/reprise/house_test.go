package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// topLevel is what the module root may hold beside dot files and what
// .gitignore names.
var topLevel = []string{"cmd", "trace", "synth", "replay", "formats", "analysis", "testdata", "go.mod", "go.sum", "Makefile", "README.md"}

// An arrow says what the packages at and below from may import of ours. The
// first arrow that fits decides.
type arrow struct {
	from string
	to   []string
}

var arrows = []arrow{
	{"reprise/cmd", []string{"reprise"}},
	{"reprise/replay/sweep", []string{"reprise/trace", "reprise/formats", "reprise/analysis", "reprise/synth", "reprise/replay"}},
	{"reprise/replay", []string{"reprise/trace", "reprise/analysis/stats", "reprise/analysis/prefix", "reprise/replay"}},
	{"reprise/synth/model", []string{"reprise/trace", "reprise/analysis/stats", "reprise/synth/model"}},
	{"reprise/synth", []string{"reprise/trace", "reprise/analysis/stats", "reprise/analysis/prefix", "reprise/synth"}},
	{"reprise/analysis/stats", []string{"reprise/analysis/stats"}},
	{"reprise/analysis/prefix", []string{"reprise/trace", "reprise/analysis/stats", "reprise/analysis/prefix"}},
	{"reprise/analysis", []string{"reprise/trace", "reprise/analysis", "reprise/synth/model"}},
	{"reprise/formats/servegen", []string{"reprise/trace", "reprise/formats", "reprise/synth/model", "reprise/analysis/stats"}}, // laws, not requests
	{"reprise/formats", []string{"reprise/trace", "reprise/formats", "reprise/synth/model"}},
	{"reprise/trace", []string{"reprise/trace"}},
}

// onlyCommand are packages that only the command imports.
var onlyCommand = []string{"reprise/replay/sweep"}

// maxLines is how long a Go file may be; one that is longer has a seam.
const maxLines = 700

// root returns the module root.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Skipf("not in a checkout: %v", err)
	}
	return dir
}

func TestTopLevel(t *testing.T) {
	dir := root(t)
	ignored, err := os.ReadFile(filepath.Join(dir, ".gitignore"))
	if err != nil {
		t.Skipf("not in a checkout: %v", err)
	}
	patterns := strings.Fields(string(ignored))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		isIgnored := slices.ContainsFunc(patterns, func(p string) bool {
			ok, _ := filepath.Match(strings.Trim(p, "/"), name)
			return ok
		})
		if !slices.Contains(topLevel, name) && !strings.HasPrefix(name, ".") && !isIgnored {
			t.Errorf("%s: not in the fixed top level (%s)", name, strings.Join(topLevel, " "))
		}
	}
	for _, name := range []string{"README.md", "Makefile", "go.mod"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: missing or empty (%v)", name, err)
		}
	}
}

// A goPackage is a package of ours as go list prints it.
type goPackage struct {
	ImportPath, Name, Doc string
	Module                *struct{ Path string }
	Imports               []string
}

func goList(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Module,Imports", "./...")
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no go command on the path")
	}
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var list []goPackage
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// below tells whether the import path is prefix or lies below it.
func below(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// TestArrows holds every import of every package against arrows. What holds for
// each import holds for what is imported through others.
func TestArrows(t *testing.T) {
	list := goList(t)
	if len(list) < 10 {
		t.Fatalf("go list found %d packages", len(list))
	}
	for _, p := range list {
		if p.Module == nil || p.Module.Path != "reprise" {
			t.Errorf("%s: in module %v, not reprise", p.ImportPath, p.Module)
		}
		i := slices.IndexFunc(arrows, func(a arrow) bool { return below(p.ImportPath, a.from) })
		if i < 0 {
			t.Errorf("%s: no room in the house", p.ImportPath)
			continue
		}
		if p.Doc == "" {
			t.Errorf("%s: no package comment", p.ImportPath)
		}
		for _, to := range p.Imports {
			if below(to, "reprise") && !slices.ContainsFunc(arrows[i].to, func(prefix string) bool { return below(to, prefix) }) {
				t.Errorf("%s imports %s; it may import %s", p.ImportPath, to, strings.Join(arrows[i].to, ", "))
			}
			if slices.Contains(onlyCommand, to) && !below(p.ImportPath, "reprise/cmd") {
				t.Errorf("%s imports %s, which only the command may", p.ImportPath, to)
			}
		}
	}
}

// TestFileLengths: a file is read in one sitting.
func TestFileLengths(t *testing.T) {
	dir, files := root(t), 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "out" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if n := bytes.Count(text, []byte("\n")); n > maxLines {
			t.Errorf("%s: %d lines, more than %d", path, n, maxLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Errorf("found %d Go files", files)
	}
}

// TestSampleIsGenerated: testdata/mooncake/sample.jsonl is what testdata/README.md
// says that it is.
func TestSampleIsGenerated(t *testing.T) {
	dir := root(t)
	cmd := exec.Command("go", "run", "./testdata/gen", "-n", "120", "-seed", "7", "-span", "20")
	cmd.Dir = dir
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no go command on the path")
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(dir, "testdata", "mooncake", "sample.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out, want) {
		t.Error("testdata/gen no longer gives testdata/mooncake/sample.jsonl")
	}
}
