package config

import (
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// terminal is a Writer for text that people or programs read, and in which workers and publishers may have written.
type terminal struct {
	w    io.Writer
	mu   sync.Mutex
	rest []byte // the beginning of a character, of the last Write
	text []byte // scratch
}

// Printable returns a Writer to w that writes each character that could control a terminal, or changes the direction of
// what follows, as \uXXXX. Line breaks and tabs stay, carriage returns are left out, and bytes that are no UTF-8 become
// U+FFFD. JSON stays the same JSON. Any goroutine may call the Writer.
func Printable(w io.Writer) io.Writer { return &terminal{w: w} }

// Write writes p.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = t.text[:0]
	from := append(t.rest, p...)
	for len(from) > 0 && utf8.FullRune(from) {
		r, size := utf8.DecodeRune(from)
		t.text = appendPrintable(t.text, r)
		from = from[size:]
	}
	t.rest = append([]byte(nil), from...) // at most three bytes
	if _, err := t.w.Write(t.text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// PrintableText is s as Printable writes it.
func PrintableText(s string) string {
	text := make([]byte, 0, len(s))
	for _, r := range s { // bytes that are no UTF-8 are U+FFFD
		text = appendPrintable(text, r)
	}
	return string(text)
}

func appendPrintable(to []byte, r rune) []byte {
	switch {
	case r == '\r':
		return to
	case unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r):
		return fmt.Appendf(to, `\u%04x`, r)
	}
	return utf8.AppendRune(to, r)
}

// printableFields makes the strings of a message printable. The writer of messages for people adds colors to them.
func printableFields(fields map[string]any) error {
	for name, v := range fields {
		fields[name] = printableField(v)
	}
	return nil
}

func printableField(v any) any {
	switch v := v.(type) {
	case string:
		return PrintableText(v)
	case []any:
		for i := range v {
			v[i] = printableField(v[i])
		}
	case map[string]any:
		_ = printableFields(v)
	}
	return v
}
