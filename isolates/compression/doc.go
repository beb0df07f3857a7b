// Package compression compresses and decompresses streams step by step, for CompressionStream and DecompressionStream: what
// comes in and what goes out of one step is bounded, whatever the data is. A stream is used by one goroutine at a time; Close may
// come from any.
package compression
