//go:build unix

package trace

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestCreateKeepsPipes: what is no file is written to, and neither replaced nor removed.
func TestCreateKeepsPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	for want, end := range map[string]func(*File) error{
		"kept":   (*File).Commit,
		"thrown": func(f *File) error { f.Abort(); return nil },
	} {
		read := make(chan string)
		go func() {
			text, _ := os.ReadFile(path)
			read <- string(text)
		}()
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(want)
		if err := end(f); err != nil {
			t.Error(err)
		}
		if got := <-read; got != want {
			t.Errorf("the reader got %q, want %q", got, want)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeNamedPipe {
			t.Errorf("%s: %v, %v, no pipe any more", want, info, err)
		}
	}
}
