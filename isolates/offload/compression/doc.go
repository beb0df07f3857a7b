// Package compression compresses and decompresses streams step by step, for CompressionStream and DecompressionStream.
// The input and the output of one step are bounded, whatever the data is. One goroutine at a time uses a stream. Any
// goroutine may call Close.
package compression
