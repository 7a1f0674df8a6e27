package trace

import "time"

// A Tick finds the effective resolution of arrival times: the greatest common
// divisor of their distances. The zero value has seen none.
type Tick struct {
	first int64
	gcd   int64
	any   bool
}

// Add takes one arrival into account.
func (t *Tick) Add(at time.Duration) {
	if !t.any {
		t.first, t.any = int64(at), true
		return
	}
	a, b := int64(at)-t.first, t.gcd
	if a < 0 {
		a = -a
	}
	for a != 0 {
		a, b = b%a, a
	}
	t.gcd = b
}

// NS returns the tick in nanoseconds; unknown for fewer than two distinct times.
func (t *Tick) NS() Optional[int64] {
	if t.gcd == 0 {
		return Optional[int64]{}
	}
	return Some(t.gcd)
}
