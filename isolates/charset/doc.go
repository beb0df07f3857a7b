// Package charset decodes the legacy encodings of the Encoding standard, as TextDecoder has them. The tables are those of
// golang.org/x/text; what is done about bytes that fit no table, and at the borders of pieces of a stream, follows the standard
// step by step, which a transformer does not. Functions may be called from any goroutine and keep nothing.
package charset
