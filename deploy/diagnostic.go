package deploy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/evanw/esbuild/pkg/api"
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

// sourceError is a SourceError with one diagnostic at offset bytes into text. A negative offset means the whole file.
func sourceError(file string, text []byte, offset int64, format string, args ...any) *SourceError {
	d := Diagnostic{File: file, Text: fmt.Sprintf(format, args...)}
	if offset >= 0 {
		d.Line, d.Column, d.LineText = locate(text, offset)
	}
	return &SourceError{[]Diagnostic{d}}
}

// locate converts an offset in bytes to line and column.
func locate(text []byte, offset int64) (line, column int, lineText string) {
	n := min(int(offset), len(text))
	before := string(text[:n])
	start := strings.LastIndexByte(before, '\n') + 1
	lineText, _, _ = strings.Cut(string(text[start:]), "\n")
	return strings.Count(before, "\n") + 1, utf16Len(before[start:]) + 1, strings.TrimSuffix(lineText, "\r")
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// diagnostics converts esbuild's messages. dir is the directory of the source as the author gave it. esbuild's file
// names are relative to it.
func diagnostics(dir, file string, messages []api.Message) []Diagnostic {
	ds := make([]Diagnostic, len(messages))
	for i, m := range messages {
		d := Diagnostic{File: file, Text: m.Text}
		if l := m.Location; l != nil {
			d.File = filepath.Join(dir, filepath.FromSlash(l.File))
			d.Line, d.LineText = l.Line, l.LineText
			d.Column = utf16Len(l.LineText[:min(l.Column, len(l.LineText))]) + 1
		}
		for _, n := range m.Notes {
			d.Notes = append(d.Notes, noteText(dir, n))
		}
		if name, ok := nodeModule(d.Text, d.Notes); ok {
			d.Text, d.Notes = refuseNode(d.Text, name)
		}
		if scheme, name, ok := platformModule(d.Text); ok {
			d.Text, d.Notes = refusePlatform(scheme, name)
		}
		ds[i] = d
	}
	return ds
}

// noteText is one line. It replaces advice on esbuild's own options, which an author cannot set.
func noteText(dir string, n api.Note) string {
	text := strings.ReplaceAll(n.Text, "\n", " ")
	switch {
	case strings.Contains(text, "built into node"):
		return text // nodeModule searches for it
	case strings.Contains(text, "mark the path"):
		return "import a file by a path that begins with ./ or ../, or install the npm package next to the source"
	}
	if l := n.Location; l != nil {
		text = fmt.Sprintf("%s:%d:%d: %s", filepath.Join(dir, filepath.FromSlash(l.File)), l.Line, l.Column+1, text)
	}
	return text
}

// withhold removes from esbuild's messages what they quote of files that the bundle may not have, and removes repeated
// messages. abs is the source.
func (p *project) withhold(abs string, messages []api.Message) []api.Message {
	hidden := func(l *api.Location) bool {
		if p.open || l == nil || l.Namespace != "" && l.Namespace != "file" {
			return false
		}
		file := filepath.FromSlash(l.File)
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(abs), file)
		}
		real, err := filepath.EvalSymlinks(file)
		return err == nil && p.treeOf(real) == ""
	}
	kept := make([]api.Message, 0, len(messages))
	for _, m := range messages {
		if hidden(m.Location) {
			m = api.Message{Text: "a file that is not quoted here has a fault: " + p.outside().why}
		}
		m.Notes = slices.DeleteFunc(slices.Clone(m.Notes), func(n api.Note) bool { return hidden(n.Location) })
		if !slices.ContainsFunc(kept, func(k api.Message) bool { return k.Text == m.Text && sameLocation(k.Location, m.Location) }) {
			kept = append(kept, m)
		}
	}
	return kept
}

func sameLocation(a, b *api.Location) bool { return a == b || a != nil && b != nil && *a == *b }
