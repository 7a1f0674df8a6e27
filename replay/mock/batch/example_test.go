package batch_test

import (
	"fmt"
	"time"

	"reprise/replay/mock/batch"
)

// Two users share an engine: the second waits for the step in progress, and its
// prefill holds up the first one's next token.
func ExampleSimulate() {
	engine := batch.Config{PrefillRate: 10_000, StepBase: 10 * time.Millisecond, StepPerSequence: -1}
	timelines, err := batch.Simulate(engine, []batch.Arrival{
		{At: 0, PromptTokens: 100, OutputTokens: 3},
		{At: 5 * time.Millisecond, PromptTokens: 500, OutputTokens: 1},
	})
	if err != nil {
		panic(err)
	}
	for _, t := range timelines {
		fmt.Println("TTFT", t.TTFT(), "chunks", t.Chunks)
	}
	// Output:
	// TTFT 20ms chunks [{20ms 1} {80ms 1} {90ms 1}]
	// TTFT 75ms chunks [{80ms 1}]
}
