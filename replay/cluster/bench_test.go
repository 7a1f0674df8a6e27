//go:build !noserver

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"reprise/replay"
	"reprise/trace/results"
)

// BenchmarkBeat is a beat of a run of 1,000 workers, over the embedded server and both
// of its connections: what one costs on this machine, and the bytes of both ways.
func BenchmarkBeat(b *testing.B) {
	const workers = 1000
	c := coordinator(workers)
	for i := range workers {
		c.admit(fmt.Sprintf("w%d", i), &hello{Version: "1", Protocol: protocolVersion, Nonce: "n"})
	}
	c.start = c.clock.Now()
	server, err := StartServer("", []string{"w0"})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	own, err := (&Bus{URL: server.URL}).connect("coordinator", "coordinator", server.own, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer own.Close()
	far, err := (&Bus{URL: server.URL}).connect("w0", "w0", server.Seeds["w0"], nil)
	if err != nil {
		b.Fatal(err)
	}
	defer far.Close()
	bus := Bus{}
	if _, err := own.Subscribe(bus.subject("*", "beat"), c.onBeat); err != nil {
		b.Fatal(err)
	}
	own.Flush()
	text, _ := json.Marshal(beat{Nonce: "n", State: stateRunning, Sent: c.clock.Now(), Legs: 1, Progress: replay.Progress{Sent: 1e6, Done: 1e6, Outcomes: map[string]int64{results.OutcomeOK: 1e6}}, Clock: &Estimate{1, 2, 3}})
	var answer *nats.Msg
	b.ResetTimer()
	for range b.N {
		if answer, err = far.Request(bus.subject("w0", "beat"), text, 5*time.Second); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(text)), "B/beat")
	b.ReportMetric(float64(len(answer.Data)), "B/answer")
}

// BenchmarkPlan is the answer to a hello: the largest message of the bus beside pieces
// of files.
func BenchmarkPlan(b *testing.B) {
	c := coordinator(1000)
	n := 0
	for i := range b.N {
		text, err := json.Marshal(c.admit(fmt.Sprintf("w%d", i%1000), &hello{Version: "1", Protocol: protocolVersion, Nonce: "n"}))
		if err != nil {
			b.Fatal(err)
		}
		n = len(text)
	}
	b.ReportMetric(float64(n), "B/plan")
}

// BenchmarkPiece is a piece of a file, until the coordinator has it on disk.
func BenchmarkPiece(b *testing.B) {
	c := coordinator(1)
	c.Config.Dir = b.TempDir()
	c.admit("w0", &hello{Version: "1", Protocol: protocolVersion, Nonce: "n"})
	server, err := StartServer("", []string{"w0"})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	own, err := (&Bus{URL: server.URL}).connect("coordinator", "coordinator", server.own, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer own.Close()
	if _, err := own.Subscribe((&Bus{}).subject("*", "rows"), c.onRows); err != nil {
		b.Fatal(err)
	}
	own.Flush()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, keptFile), make([]byte, b.N*pieceBytes), 0o644); err != nil {
		b.Fatal(err)
	}
	w := &Worker{Bus: Bus{URL: server.URL}, Name: "w0", Dir: dir}
	if w.nc, err = w.Bus.connect("w0", "w0", server.Seeds["w0"], nil); err != nil {
		b.Fatal(err)
	}
	defer w.nc.Close()
	b.SetBytes(pieceBytes)
	b.ResetTimer()
	if err := w.upload(b.Context(), keptFile); err != nil {
		b.Fatal(err)
	}
}
