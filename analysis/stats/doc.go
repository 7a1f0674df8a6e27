// Package stats is numbers in, numbers out: laws and their estimators, ticks,
// counts over windows, distances, dependence, intervals, random streams. It
// knows no trace.
//
// Times are seconds and rates are per second unless a name says otherwise;
// lengths are tokens. Logarithms are natural unless a name says log10. A value
// that cannot be had (a variance of one number, a shape that the data do not
// determine) is an error or false, never NaN, an infinity or 0.
package stats
