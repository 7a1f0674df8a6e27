package synth_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"

	"reprise/analysis/stats"
	"reprise/synth"
	"reprise/trace"
)

// recorded is a trace of 2,000 requests, bursty: gamma gaps of shape 1/2.
func recorded() []byte {
	var out bytes.Buffer
	w := trace.NewWriter(&out)
	b := trace.NewBatch()
	r := stats.Stream(1)
	at := time.Duration(0)
	for id := range int64(2000) {
		b.Append(&trace.Request{
			ID: id, Operation: trace.OpChat, Arrival: trace.Some(at),
			InputTokens: trace.Some(int64(1 + stats.Gamma{Shape: 2, Scale: 400}.Rand(r))), OutputTokens: trace.Some(int64(1 + 100*r.ExpFloat64())),
		})
		at += time.Duration(stats.Gamma{Shape: 0.5, Scale: 1}.Rand(r) * 1e9)
	}
	if err := w.Write(b); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(trace.Meta{Clock: trace.ClockTrace}); err != nil {
		log.Fatal(err)
	}
	return out.Bytes()
}

// Fit a trace, and look at what was found.
func ExampleFit() {
	data := recorded()
	open := func() (*trace.Reader, error) {
		return trace.NewReader(bytes.NewReader(data), int64(len(data)), "recorded")
	}
	w, err := synth.Fit(context.Background(), open, synth.FitOptions{Profile: 5 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	s := w.Streams[0]
	fmt.Printf("%d requests, %.2f/s\n", s.Requests, s.Arrivals.RateHz)
	fmt.Printf("gaps: %s of shape %.2f, %s\n", s.Arrivals.Gaps.Family, s.Arrivals.Gaps.Params["shape"], s.Arrivals.Rest.Fits[0].Grade)
	fmt.Printf("input: %s, of shape %.2f\n", s.Lengths.Input.Best, s.Lengths.Input.Fits[1].Law.Params()[0].Value)
	fmt.Printf("output: %s\n", s.Lengths.Output.Best)
	// Output:
	// 2000 requests, 1.97/s
	// gaps: gamma of shape 0.47, good
	// input: gamma, of shape 1.96
	// output: exponential
}

// A model is enough to make more of the traffic that it was fitted to.
func ExampleFit_generate() {
	data := recorded()
	open := func() (*trace.Reader, error) {
		return trace.NewReader(bytes.NewReader(data), int64(len(data)), "recorded")
	}
	w, err := synth.Fit(context.Background(), open, synth.FitOptions{})
	if err != nil {
		log.Fatal(err)
	}
	var rows int
	g := synth.Generation{Requests: 5000, Rate: 10, Seed: 1}
	_, err = g.Run(context.Background(), w, func(b *trace.Batch) error {
		rows += b.Len()
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows, "requests at 10/s")
	// Output:
	// 5000 requests at 10/s
}
