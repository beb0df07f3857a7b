package manifest

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// Diagnostic is one fault in a file of the author.
type Diagnostic struct {
	File     string // as the author named it: relative if the given path was
	Line     int    // from 1; 0 = the file as a whole
	Column   int    // from 1, in UTF-16 units, as JavaScript counts
	LineText string // the line, without its end
	Text     string // what is wrong and what is allowed
	Notes    []string
}

// String is "file:line:column: text", then the line with a mark under the column, then the notes.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", d.Line, d.Column)
	}
	b.WriteString(": " + d.Text)
	if strings.TrimSpace(d.LineText) != "" && len(d.LineText) <= maxLineText {
		b.WriteString("\n    " + d.LineText + "\n    " + pad(d.LineText, d.Column) + "^")
	}
	for _, n := range d.Notes {
		b.WriteString("\n    note: " + n)
	}
	return b.String()
}

// maxLineText keeps lines of minified files out of messages, bytes.
const maxLineText = 300

// pad is white space as wide as the text before column on the line. Tabs stay tabs.
func pad(line string, column int) string {
	var b strings.Builder
	units := 1
	for _, r := range line {
		if units >= column {
			break
		}
		units += max(1, utf16.RuneLen(r))
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// SourceError has all faults of a source file, its imports and its manifest. It has at least one diagnostic.
type SourceError struct{ Diagnostics []Diagnostic }

// Error lists all diagnostics, one after the other.
func (e *SourceError) Error() string {
	texts := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		texts[i] = d.String()
	}
	return strings.Join(texts, "\n")
}

// Fault is a SourceError with one diagnostic at offset bytes into text. A negative offset means the whole file.
func Fault(file string, text []byte, offset int64, format string, args ...any) *SourceError {
	d := Diagnostic{File: file, Text: fmt.Sprintf(format, args...)}
	if offset >= 0 {
		d.Line, d.Column, d.LineText = Locate(text, offset)
	}
	return &SourceError{[]Diagnostic{d}}
}

// Locate converts an offset in bytes to line and column.
func Locate(text []byte, offset int64) (line, column int, lineText string) {
	n := min(int(offset), len(text))
	before := string(text[:n])
	start := strings.LastIndexByte(before, '\n') + 1
	lineText, _, _ = strings.Cut(string(text[start:]), "\n")
	return strings.Count(before, "\n") + 1, UTF16Len(before[start:]) + 1, strings.TrimSuffix(lineText, "\r")
}

// UTF16Len is the length of s in UTF-16 units.
func UTF16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}
