package analysis

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"reprise/trace/results"
)

func TestCIReports(t *testing.T) {
	slo, err := ParseSLO("e2e_p50<1h; ttft_p95<1ms; error_rate<1%")
	if err != nil {
		t.Fatal(err)
	}
	rows := ramped(60, time.Millisecond, func(int) time.Duration { return 10 * time.Millisecond })
	s, err := SummarizeSLO(t.Context(), results.InMemory(results.Run{Label: `closed loop: 4 in flight & <more>`, Ended: &results.Ended{Sent: 60}}, rows), slo)
	if err != nil {
		t.Fatal(err)
	}
	var markdown, junit bytes.Buffer
	if err := WriteMarkdown(&markdown, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"closed loop: 4 in flight", "| `e2e_p50<1h` | 2,000 ms | met |", "| `ttft_p95<1ms` | 10 ms | **not met** |", "| `error_rate<1%` | 0 % | met |", "| ttft | 60 |", "60 requests sent, 60 successful"} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("no %q in\n%s", want, markdown.String())
		}
	}
	two := *s
	two.Verdict.Reasons = []string{"the first", "the second"}
	markdown.Reset()
	if err := WriteMarkdown(&markdown, &two); err != nil || !strings.Contains(markdown.String(), "<more>. the first; the second\n") {
		t.Errorf("error %v; two reasons are not kept apart in\n%s", err, markdown.String())
	}
	if err := WriteJUnit(&junit, s); err != nil {
		t.Fatal(err)
	}
	var suite junitSuite
	if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil || suite.Tests != 5 || suite.Failures != 1 || len(suite.Cases) != 5 || suite.Cases[3].Failure == nil || !strings.Contains(suite.Cases[3].Failure.Message, "ttft_p95<1ms does not hold: 10 ms") {
		t.Errorf("%v, %+v", err, suite)
	}
}
