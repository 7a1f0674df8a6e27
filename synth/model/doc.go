// Package model is the workload model as data, and what a synthesis says of
// itself: JSON with versions, read and written by fits, syntheses and reports.
package model
