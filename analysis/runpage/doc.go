// Package runpage makes the HTML report of a replay: one file that needs no
// network. Its numbers are those of the run's [analysis.Summary]; what it draws
// beyond them, curves and planes over time, a [Collector] gathers in the same pass
// over the results, in memory that does not grow with them.
//
// Curves over time are time-weighted: a request counts for the part of a bin during
// which it was in flight. Planes are counts in cells whose sides are at most 3 %
// wide, so that a median over time is at most 1.6 % off; tables say so.
package runpage
