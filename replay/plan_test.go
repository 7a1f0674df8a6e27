package replay

import (
	"testing"
	"time"

	"reprise/analysis/stats"
)

// TestExpectedRequests: how many requests a plan has is the area under its rate.
func TestExpectedRequests(t *testing.T) {
	for name, c := range map[string]struct {
		s    Selection
		want float64
	}{
		"constant":       {Selection{Arrivals: Arrivals{Kind: "constant", Rate: 5}, Duration: time.Minute}, 300},
		"ramp":           {Selection{Arrivals: Arrivals{Rate: 10, Pieces: []stats.RatePiece{{ToS: 20, To: 10}}}, Duration: time.Minute}, 500},
		"cut in a piece": {Selection{Arrivals: Arrivals{Pieces: []stats.RatePiece{{ToS: 100, From: 4, To: 4}}}, Duration: 25 * time.Second}, 100},
		"a short peak":   {Selection{Arrivals: Arrivals{Rate: 1, Pieces: []stats.RatePiece{{ToS: 1, From: 1e6, To: 1e6}}}, Duration: 1000 * time.Hour}, 1e6 + 3.6e6 - 1},
		"users":          {Selection{Load: Load{Kind: LoadUsers, N: 20, Rate: 3}, Duration: time.Minute}, 180},
		"closed loop":    {Selection{Load: Load{Kind: LoadConcurrency, N: 20}, Duration: time.Minute}, 0},
	} {
		if got := c.s.expected(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
