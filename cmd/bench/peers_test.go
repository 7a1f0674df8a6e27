package main

import (
	"testing"
	"time"

	"reprise/replay/mock"
)

func TestHoldIsTheArrivalsDistanceFromDue(t *testing.T) {
	s := shape{rate: 100, requests: 200, tokens: 1}
	arrivals := func(late func(i int) time.Duration) []mock.Record {
		var all []mock.Record
		for i := range s.requests {
			all = append(all, mock.Record{Arrival: 7*time.Second + s.due(i) + late(i)}) // what all share is no error
		}
		return all
	}
	for _, c := range []struct {
		name    string
		account []mock.Record
		p99     float64
		onTime  bool
	}{
		{"all at their times", arrivals(func(int) time.Duration { return 0 }), 0, true},
		{"one of 200 late", arrivals(func(i int) time.Duration { return time.Duration(i/199) * time.Second }), 0, true},
		{"every tenth late", arrivals(func(i int) time.Duration { return time.Duration(i%10/9) * 20 * time.Millisecond }), 20, false},
		{"slower than the schedule", arrivals(func(i int) time.Duration { return time.Duration(i) * time.Millisecond }), 99, false},
		{"one missing", arrivals(func(int) time.Duration { return 0 })[:199], 0, false},
	} {
		if h := s.hold(c.account); h.OffP99 != c.p99 || h.OnTime != c.onTime {
			t.Errorf("%s: p99 %v ms, on time %v; want %v, %v", c.name, h.OffP99, h.OnTime, c.p99, c.onTime)
		}
	}
}

func TestTruthIsAgainstTheServersStamps(t *testing.T) {
	ms := time.Millisecond
	account := []mock.Record{{RequestID: "a", Arrival: 5 * ms, SentTokens: 3, Chunks: []mock.ChunkSent{{At: 9 * ms, Tokens: 1}, {At: 14 * ms, Tokens: 1}, {At: 21 * ms, Tokens: 1}}}}
	for _, said := range []reported{{id: "a", ttft: 6 * ms, itl: 7 * ms}, {ttft: 6 * ms, itl: 7 * ms}} {
		got, err := compareTruth(account, []reported{said})
		if want := (truth{N: 1, TTFT: 2000, TTFTP99: 2000, ITL: 1000, ITLP99: 1000}); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", said.id, got, err, want)
		}
	}
	if _, err := compareTruth(account, []reported{{id: "b"}}); err == nil {
		t.Error("a request that the server never saw is accepted")
	}
}
