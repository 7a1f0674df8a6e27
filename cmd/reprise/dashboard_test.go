package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"reprise/replay"
	"reprise/replay/scrape"
)

func quantiles(n int64, p50, p95, p99 time.Duration) replay.Quantiles {
	return replay.Quantiles{N: n, Sum: time.Duration(n) * p50, P50: p50, P95: p95, P99: p99}
}

// midway is a run in the middle.
func midway() replay.Progress {
	return replay.Progress{
		Elapsed: 83 * time.Second, Planned: 5000, Length: 180 * time.Second, Sending: true, Sent: 2310, InFlight: 56, Done: 2254, Failed: 12,
		NextDue: 83*time.Second + 40*time.Millisecond, Lateness: 310 * time.Microsecond,
		Late: quantiles(2254, 4*time.Microsecond, 60*time.Microsecond, 210*time.Microsecond),
		TTFT: quantiles(2242, 182*time.Millisecond, 640*time.Millisecond, 1234567*time.Microsecond), RecentTTFT: quantiles(301, 171*time.Millisecond, 0, 900*time.Millisecond),
		ITL: quantiles(401_233, 11400*time.Microsecond, 14*time.Millisecond, 33*time.Millisecond), RecentITL: quantiles(51_000, 11*time.Millisecond, 0, 28*time.Millisecond),
		Input: 2_918_221, Output: 403_475, InputPerS: 34_100.4, OutputPerS: 4861.7,
		Outcomes: map[string]int64{"ok": 2242, "failed": 9, "timeout": 3},
		Causes:   []replay.Cause{{Name: "failed: HTTP 503: the engine is overloaded, come back later, and not at once\x1b[2J", N: 9}, {Name: "timeout: no end within 10m0s", N: 3}}, OtherCauses: 2, OtherFailed: 4,
	}
}

// TestBoardFrames: what is seen, in several terminals.
func TestBoardFrames(t *testing.T) {
	closed := midway()
	closed.Planned, closed.Length, closed.NextDue, closed.Done, closed.Causes, closed.OtherFailed, closed.Failed = 3000, 0, -1, 1500, nil, 0, 0
	endless := closed
	endless.Endless, endless.Length = true, 600*time.Second
	stopped := midway()
	stopped.Sending, stopped.Stopped, stopped.NextDue = false, true, -1
	begun := replay.Progress{Elapsed: time.Second, Planned: 9, Length: 60 * time.Second, Sending: true, NextDue: 40 * time.Second}
	held := midway()
	held.NextDue = 70 * time.Second
	for _, c := range []struct {
		name          string
		p             *replay.Progress
		width, height int
		interrupts    int
		color         bool
	}{
		{"before", nil, 80, 24, 0, false}, {"begun", &begun, 80, 24, 0, false}, {"midway", new(midway()), 80, 24, 0, false}, {"midway", new(midway()), 120, 40, 0, false}, {"midway", new(midway()), 40, 24, 0, false},
		{"midway", new(midway()), 80, 8, 0, false}, {"held", &held, 80, 24, 0, false}, {"closed", &closed, 80, 24, 0, false}, {"endless", &endless, 40, 24, 0, false}, {"stopped", &stopped, 80, 24, 1, false}, {"color", new(midway()), 80, 24, 0, true},
	} {
		b := &board{title: "prod.parquet to http://127.0.0.1:8000", keys: true, color: c.color, interrupts: c.interrupts}
		b.Update(tea.WindowSizeMsg{Width: 500, Height: 500}) // and then another size
		if c.p != nil {
			b.Update(progressed(*c.p))
		}
		b.Update(tea.WindowSizeMsg{Width: c.width, Height: c.height})
		frame := b.View().Content
		lines := strings.Split(frame, "\n")
		if len(lines) > c.height {
			t.Errorf("%s: %d lines in a terminal of %d", c.name, len(lines), c.height)
		}
		for _, line := range lines {
			if !c.color && (utf8.RuneCountInString(line) > c.width || strings.ContainsRune(line, '\x1b')) {
				t.Errorf("%s: line of more than %d columns, or with escapes: %q", c.name, c.width, line)
			}
		}
		path := filepath.Join("testdata", "dashboard", fmt.Sprintf("%s-%dx%d.txt", c.name, c.width, c.height))
		text := strings.ReplaceAll(frame, "\x1b", "^[") + "\n"
		if *update {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("%s: got\n%s", path, text)
		}
	}
}

// TestBoardKeys: the first q or ctrl-c stops the sending, the second ends the
// program, and other keys do nothing. In the end nothing is left to be seen.
func TestBoardKeys(t *testing.T) {
	var did []string
	b := &board{keys: true, interrupt: func() { did = append(did, "interrupt") }, die: func() { did = append(did, "die") }}
	key := func(code rune, mod tea.KeyMod) {
		b.Update(tea.KeyPressMsg{Code: code, Text: textOf(code, mod), Mod: mod})
	}
	key('x', 0)
	key('z', tea.ModCtrl)
	key('q', 0)
	if !strings.Contains(b.View().Content, "q: end now") {
		t.Errorf("after q: %q", b.View().Content)
	}
	key('c', tea.ModCtrl)
	key('q', 0)
	if strings.Join(did, " ") != "interrupt die" {
		t.Errorf("did %q", did)
	}
	b.Update(ended{})
	if got := b.View().Content; got != "" {
		t.Errorf("in the end: %q", got)
	}
	signalled := &board{keys: true, interrupt: func() { t.Error("a signal is no key") }}
	signalled.Update(interrupted{})
	if signalled.interrupts != 1 {
		t.Errorf("%d interrupts after a signal", signalled.interrupts)
	}
}

func textOf(code rune, mod tea.KeyMod) string {
	if mod != 0 {
		return ""
	}
	return string(code)
}

// TestNextText: what a run waits for, in words.
func TestNextText(t *testing.T) {
	for want, p := range map[string]replay.Progress{
		"next due in 1.5s":                  {Sending: true, Elapsed: time.Second, NextDue: 2500 * time.Millisecond},
		"next due in 0s":                    {Sending: true, Elapsed: time.Second, NextDue: 990 * time.Millisecond},
		"the next one is held, due for 3s":  {Sending: true, Elapsed: 4 * time.Second, NextDue: time.Second},
		"the next one waits for an answer":  {Sending: true, NextDue: -1},
		"all sent":                          {NextDue: -1},
		"sending has stopped":               {Stopped: true, NextDue: -1},
		"begins in 700ms":                   {Sending: true, Unheard: true, NextDue: -1, Elapsed: -700 * time.Millisecond},
		"sending":                           {Sending: true, Unheard: true, NextDue: -1, Elapsed: time.Second},
		"sending is over, 2 of 60 not sent": {NextDue: -1, Planned: 60, Sent: 58},
		"1 worker lost, sending":            {Sending: true, Unheard: true, NextDue: -1, Lost: 1},
		"2 workers lost, sending is over, 2 of 60 not known to be sent": {NextDue: -1, Planned: 60, Sent: 58, Lost: 2},
	} {
		if got := nextText(&p); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
}

// TestProgressJSON: an object a second that a program can read; unknown is null.
func TestProgressJSON(t *testing.T) {
	p := midway()
	text, err := json.Marshal(progressJSON(&p))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got["elapsed_s"] != 83.0 || got["planned"] != 5000.0 || got["left_s"] != 97.0 || got["ttft"].(map[string]any)["p50_s"] != 0.182 || got["causes"].(map[string]any)["timeout: no end within 10m0s"] != 3.0 {
		t.Errorf("%s", text)
	}
	p = replay.Progress{Endless: true, Planned: 7, NextDue: -1, Sending: true}
	text, _ = json.Marshal(progressJSON(&p))
	for _, want := range []string{`"planned":null`, `"next_due_s":null`, `"left_s":null`, `"p50_s":null`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s has no %s", text, want)
		}
	}
}

// TestMetricsPage: the page is in the format that our own scraper reads, before the
// first second too.
func TestMetricsPage(t *testing.T) {
	m := &metricsPage{}
	read := func() map[string]float64 {
		w := httptest.NewRecorder()
		m.serve(w, httptest.NewRequest("GET", "/metrics", nil))
		samples, err := scrape.Parse(w.Body)
		if err != nil || !strings.HasPrefix(w.Result().Header.Get("Content-Type"), "text/plain; version=") {
			t.Fatal(err, w.Result().Header)
		}
		got := map[string]float64{}
		for _, s := range samples {
			got[s.Name+"{"+s.Labels+"}"] = s.Value
		}
		return got
	}
	if got := read(); len(got) != 1 || got["reprise_run_begun{}"] != 0 {
		t.Errorf("before the run: %v", got)
	}
	m.update(midway())
	got := read()
	for name, want := range map[string]float64{
		"reprise_run_begun{}": 1, "reprise_requests_planned{}": 5000, "reprise_requests_sent_total{}": 2310, "reprise_requests_in_flight{}": 56,
		`reprise_requests_done_total{outcome="ok"}`: 2242, `reprise_requests_done_total{outcome="timeout"}`: 3, "reprise_output_tokens_total{}": 403_475,
		`reprise_ttft_seconds{quantile="0.95"}`: 0.64, "reprise_ttft_seconds_count{}": 2242, "reprise_itl_seconds_count{}": 401_233, "reprise_run_left_seconds{}": 97,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
