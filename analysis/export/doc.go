// Package export writes what a run measured for other programs: AIPerf's three
// files, the Go benchmark format that benchstat reads, and one flat row per request
// as CSV or Parquet.
package export
