package runpage

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A browser is a headless Chromium with one page, driven over a pipe by its
// DevTools protocol.
type browser struct {
	t        *testing.T
	to       *os.File
	messages chan message
	id       int
	session  string

	complaints []string // of the console, of scripts, and of what the policy forbids
	requests   []string // addresses that were asked for
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// patience is how long a browser may take for an answer.
const patience = 60 * time.Second

// newBrowser skips the test where there is no Chromium.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no chromium on the path")
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "--no-first-run", "--disable-background-networking", "--disable-component-update", "about:blank")
	cmd.ExtraFiles = []*os.File{theirs, ours}
	if err := cmd.Start(); err != nil {
		t.Skipf("chromium does not start: %v", err)
	}
	theirs.Close()
	ours.Close()
	b := &browser{t: t, to: to, messages: make(chan message, 1024)}
	go func() {
		defer close(b.messages)
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadBytes(0)
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal(line[:len(line)-1], &m) == nil {
				b.messages <- m
			}
		}
	}()
	t.Cleanup(func() {
		b.id++
		fmt.Fprintf(to, `{"id":%d,"method":"Browser.close"}`+"\x00", b.id)
		to.Close()
		for range b.messages { // until it has closed its end
		}
		from.Close()
		cmd.Wait()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call waits for the answer to a method, and keeps what the page complains of
// meanwhile.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	b.id++
	text, err := json.Marshal(map[string]any{"id": b.id, "method": method, "params": params, "sessionId": b.session})
	if b.session == "" {
		text, err = json.Marshal(map[string]any{"id": b.id, "method": method, "params": params})
	}
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	m := b.wait(func(m *message) bool { return m.ID == b.id })
	if m.Error != nil {
		b.t.Fatalf("%s: %s", method, m.Error.Message)
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
	}
}

func (b *browser) wait(until func(*message) bool) message {
	b.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case m, ok := <-b.messages:
			if !ok {
				b.t.Fatal("chromium has ended")
			}
			b.note(&m)
			if until(&m) {
				return m
			}
		case <-timeout:
			b.t.Fatalf("chromium does not answer within %v", patience)
		}
	}
}

func (b *browser) note(m *message) {
	switch m.Method {
	case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
		b.complaints = append(b.complaints, string(m.Params))
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if json.Unmarshal(m.Params, &p) == nil {
			b.requests = append(b.requests, p.Request.URL)
		}
	}
}

// screen sets the size of the window and the colours that the system prefers.
func (b *browser) screen(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "", "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// open loads a file.
func (b *browser) open(path string) {
	b.t.Helper()
	b.complaints, b.requests = nil, nil
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	b.wait(func(m *message) bool { return m.Method == "Page.loadEventFired" })
}

// eval runs an expression in the page, awaits it and reads its value.
func (b *browser) eval(expression string, value any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	err := errors.New(string(r.ExceptionDetails))
	if r.ExceptionDetails == nil {
		err = json.Unmarshal(r.Result.Value, value)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// shoot keeps pictures of the whole page, in pieces that a person can look at, in
// the directory that REPRISE_SHOTS names; without it, none.
func (b *browser) shoot(name string, width int) {
	dir := os.Getenv("REPRISE_SHOTS")
	if dir == "" {
		return
	}
	var height int
	b.eval("document.documentElement.scrollHeight", &height)
	const piece = 2000
	for y := 0; y < height; y += piece {
		var shot struct{ Data []byte }
		b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": y, "width": width, "height": min(piece, height-y), "scale": 1}}, &shot)
		file := filepath.Join(dir, fmt.Sprintf("%s-%02d.png", strings.ReplaceAll(name, " ", "-"), y/piece))
		if err := os.WriteFile(file, shot.Data, 0o644); err != nil {
			b.t.Error(err)
		}
	}
}
