package bundle

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

// Diagnostic is one fault in a file of the author.
type Diagnostic = manifest.Diagnostic

// SourceError has all faults of a source file, its imports and its manifest. It has at least one diagnostic.
type SourceError = manifest.SourceError

// diagnostics converts esbuild's messages. dir is the directory of the source as the author gave it. esbuild's file
// names are relative to it.
func diagnostics(dir, file string, messages []api.Message) []Diagnostic {
	ds := make([]Diagnostic, len(messages))
	for i, m := range messages {
		d := Diagnostic{File: file, Text: m.Text}
		if l := m.Location; l != nil {
			d.File = filepath.Join(dir, filepath.FromSlash(l.File))
			d.Line, d.LineText = l.Line, l.LineText
			d.Column = manifest.UTF16Len(l.LineText[:min(l.Column, len(l.LineText))]) + 1
		}
		for _, n := range m.Notes {
			d.Notes = append(d.Notes, noteText(dir, n))
		}
		if name, ok := nodeModule(d.Text, d.Notes); ok {
			d.Text, d.Notes = refuseNode(d.Text, name)
		}
		if name, ok := workersName(d.Text); ok {
			d.Text, d.Notes = refuseWorkersName(name)
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
		if !slices.ContainsFunc(kept, func(k api.Message) bool {
			return k.Text == m.Text &&
				sameLocation(k.Location, m.Location)
		}) {
			kept = append(kept, m)
		}
	}
	return kept
}

func sameLocation(a, b *api.Location) bool { return a == b || a != nil && b != nil && *a == *b }
