// Package charset decodes the legacy encodings of the Encoding standard, for TextDecoder. The tables come from
// golang.org/x/text. The handling of bytes that are in no table, and of the borders between pieces of a stream, follows
// the standard step by step. A transformer of that library does not do so. Any goroutine may call the functions. They
// keep nothing.
package charset
