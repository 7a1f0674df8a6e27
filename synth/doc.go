// Package synth makes workloads: it scales a canonical trace by whole sessions,
// spreads quantised arrivals, fits models and generates from them.
//
// Randomness is counter-based: what a session of a copy gets is a function of
// the seed, the copy, the session and the purpose alone, so that another copy, a
// larger fraction or a subset changes nothing else, and one seed gives one file.
package synth
