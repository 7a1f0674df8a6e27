// Package trace defines the canonical trace: the rows of recorded or generated
// LLM requests, their column batches, the Parquet file that holds them
// (schema 1), its metadata and history, and the checks every file must pass.
//
// Unknown is null in Parquet and an unknown [Optional] in Go; it is never 0 or
// "". Times are [time.Duration] in Go and int64 nanoseconds in Parquet.
package trace
