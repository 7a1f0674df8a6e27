//go:build !noserver

package cluster

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
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
	if err := w.upload(b.Context(), keptFile, keptFile); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkView merges the histograms of 1,000 workers, as the live view does; each has
// five of 2,000 to 100,000 values.
func BenchmarkView(b *testing.B) {
	const workers = 1000
	c := coordinator(workers)
	k := newKind()
	for second := range 40 {
		k.grow(rand.New(rand.NewPCG(1, uint64(second))), second)
	}
	for i := range workers {
		c.members = append(c.members, &member{name: fmt.Sprint(i), progress: k.said})
	}
	var p replay.Progress
	for range b.N {
		p = c.progress()
	}
	if p.ITL.N != workers*k.said.ITL.N {
		b.Fatalf("%d values", p.ITL.N)
	}
	n := 0
	for _, q := range []replay.Quantiles{p.Late, p.TTFT, p.ITL, p.RecentTTFT, p.RecentITL} {
		n += len(q.Values)
	}
	text, _ := json.Marshal(k.said)
	b.ReportMetric(float64(len(text)), "B/worker")
}

// A crowdKind is the histograms of some of the workers, which grow.
type crowdKind struct {
	h    [5]*hdrhistogram.Histogram // as replay.Progress has them
	sum  [5]time.Duration
	said replay.Progress
}

// Rates of each simulated worker.
const (
	crowdKinds  = 16
	crowdRate   = 50 // answers/s
	crowdTokens = 50 // of each
)

func newKind() *crowdKind {
	k := &crowdKind{}
	for i := range k.h {
		k.h[i] = hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 2)
	}
	return k
}

func (k *crowdKind) grow(r *rand.Rand, second int) {
	add := func(i int, scale time.Duration, spread float64) {
		d := time.Duration(float64(scale) * (0.5 + spread*r.ExpFloat64()))
		k.h[i].RecordValue(max(1, int64(d/time.Microsecond)))
		k.sum[i] += d
	}
	if second%8 == 0 {
		k.h[3].Reset()
		k.h[4].Reset()
		k.sum[3], k.sum[4] = 0, 0
	}
	for range crowdRate {
		add(0, 60*time.Microsecond, 0.5)
		add(1, 300*time.Millisecond, 1)
		add(3, 300*time.Millisecond, 1)
		for range crowdTokens {
			add(2, 20*time.Millisecond, 0.4)
			add(4, 20*time.Millisecond, 0.4)
		}
	}
	p := replay.Progress{NextDue: 0, Outcomes: map[string]int64{results.OutcomeOK: k.h[1].TotalCount()}, Sending: true}
	for i, q := range []*replay.Quantiles{&p.Late, &p.TTFT, &p.ITL, &p.RecentTTFT, &p.RecentITL} {
		h := k.h[i]
		q.N, q.Sum = h.TotalCount(), k.sum[i]
		q.P50, q.P95, q.P99 = time.Duration(h.ValueAtQuantile(50))*time.Microsecond, time.Duration(h.ValueAtQuantile(95))*time.Microsecond, time.Duration(h.ValueAtQuantile(99))*time.Microsecond
		q.Values, _ = h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	}
	p.Done, p.Sent = p.TTFT.N, p.TTFT.N+1000
	k.said = p
}
