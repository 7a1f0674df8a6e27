package replay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"reprise/trace"
)

// A Cancel says which requests are given up on purpose. They are booked as
// cancelled, not as failed. The zero value gives up none.
type Cancel struct {
	Recorded bool          // as the trace says
	Share    float64       // of the requests, drawn by seed and id
	After    time.Duration // since sent, for Share
}

// ParseCancel reads none, recorded, after=2s or share=5%,after=2s.
func ParseCancel(text string) (Cancel, error) {
	usage := "use none, recorded, after=2s or share=5%,after=2s"
	switch text {
	case "", "none":
		return Cancel{}, nil
	case "recorded":
		return Cancel{Recorded: true}, nil
	}
	c := Cancel{Share: 1, After: -1}
	for _, part := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch key {
		case "after":
			if c.After, err = time.ParseDuration(value); err != nil {
				err = fmt.Errorf("%q is no time", value)
			}
		case "share":
			number, percent := strings.CutSuffix(value, "%")
			if c.Share, err = strconv.ParseFloat(number, 64); err != nil {
				err = fmt.Errorf("%q is no share", value)
			}
			if percent {
				c.Share /= 100
			}
		default:
			err = errors.New("unknown part")
		}
		if err != nil {
			return Cancel{}, trace.WithFix(fmt.Errorf("%q: %s: %w", text, part, err), usage)
		}
	}
	if c.After < 0 || !(c.Share > 0 && c.Share <= 1) {
		return Cancel{}, trace.WithFix(fmt.Errorf("%q: needs after=DURATION, and a share above 0 and not above 100%%", text), usage)
	}
	return c, nil
}

// after returns when to give up the request id, since it was sent; no if it is
// not to be given up.
func (c Cancel) after(seed uint64, id int64, recorded trace.Optional[time.Duration]) (d time.Duration, yes bool) {
	switch {
	case c.Recorded:
		return recorded.Value, recorded.Known
	case c.Share == 0:
		return 0, false
	}
	r := rand.New(rand.NewPCG(seed^streamCancel, uint64(id)))
	return c.After, r.Float64() < c.Share
}
