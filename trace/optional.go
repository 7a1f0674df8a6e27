package trace

// An Optional is a value that may be unknown. The zero value is unknown, which
// is neither 0 nor "".
type Optional[T any] struct {
	Value T    // meaningful only if Known
	Known bool // false means the source did not say
}

// Some returns a known value.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Known: true} }

// Get returns the value and whether it is known.
func (o Optional[T]) Get() (T, bool) { return o.Value, o.Known }

// Or returns the value, or def if it is unknown.
func (o Optional[T]) Or(def T) T {
	if o.Known {
		return o.Value
	}
	return def
}
