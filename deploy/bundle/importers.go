package bundle

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

// importer is the first file that imports another file.
type importer struct {
	path string // absolute
	text string // the specifier as written
}

// importers finds out which file imports which. It builds a second time, so call it only when a message needs it.
func importers(ctx context.Context, p *project, e entry, web *webFiles) map[string]importer {
	var mu sync.Mutex
	found := map[string]importer{}
	note := api.Plugin{Name: "pinwheel importers", Setup: func(b api.PluginBuild) {
		type seen struct{}
		b.OnResolve(api.OnResolveOptions{Filter: `.`}, func(a api.OnResolveArgs) (r api.OnResolveResult, err error) {
			if _, again := a.PluginData.(seen); again || a.Importer == "" || a.Namespace != "file" {
				return r, nil
			}
			to := b.Resolve(a.Path, api.ResolveOptions{
				Importer: a.Importer, Namespace: a.Namespace, ResolveDir: a.ResolveDir, Kind: a.Kind, With: a.With,
				PluginData: seen{},
			})
			mu.Lock()
			defer mu.Unlock()
			if _, known := found[to.Path]; !known && len(to.Errors) == 0 && !to.External && to.Namespace == "file" &&
				to.Path != e.abs {
				found[to.Path] = importer{a.Importer, a.Path}
			}
			return r, nil
		})
	}}
	o, done := buildOptions(p, e, web)
	defer done()
	o.Plugins = append([]api.Plugin{note}, o.Plugins...)
	build, err := api.Context(o)
	if err != nil {
		return nil
	}
	defer build.Dispose()
	defer context.AfterFunc(ctx, build.Cancel)()
	build.Rebuild()
	return found
}

// maxImporters is the most importers in the notes on one file.
const maxImporters = 10

// chain explains how the source at abs imports the file at path: a note for each importer, the nearest first. dir is
// the source's directory as the author named it.
func (p *project) chain(found map[string]importer, dir, abs, path string) (notes []string) {
	for path != abs {
		by, ok := found[path]
		if !ok {
			return nil // unknown
		}
		if len(notes) == maxImporters {
			return append(notes, "and so on")
		}
		notes = append(notes, "imported by "+p.place(by, dir, abs))
		path = by.path
	}
	return notes
}

// place is where by imports the file, as "file:line:column" if the text of by shows it.
func (p *project) place(by importer, dir, abs string) string {
	name := by.path
	if rel, err := filepath.Rel(filepath.Dir(abs), by.path); err == nil {
		name = filepath.Join(dir, rel)
	}
	file, inside := physical(by.path)
	if inside != "" {
		return name
	}
	text, err := p.read(file, maxSource)
	if err != nil {
		return name
	}
	for _, quote := range []string{`"`, `'`, "`"} {
		if i := bytes.Index(text, []byte(quote+by.text+quote)); i >= 0 {
			line, column, _ := manifest.Locate(text, int64(i))
			return fmt.Sprintf("%s:%d:%d", name, line, column)
		}
	}
	return name
}

// explain adds to each of ds that is about another file than the source how that file is imported.
func (p *project) explain(ctx context.Context, dir string, e entry, ds []Diagnostic, messages []api.Message) {
	var found map[string]importer
	abs := e.abs
	for i, m := range messages {
		path := fileOf(abs, m)
		if path == "" || path == abs {
			continue
		}
		if found == nil {
			found = importers(ctx, p, e, &webFiles{})
		}
		ds[i].Notes = append(ds[i].Notes, p.chain(found, dir, abs, path)...)
	}
}

// globStart is the beginning of an import() or require() of a path that is computed at run time. esbuild bundles all
// files that may be meant.
var globStart = regexp.MustCompile("(?:import|require)\\s*\\(\\s*(?:\"(\\.\\.?/[^\"\\\\\n]*)\"\\s*\\+|'(\\.\\.?/[^'\\\\\n]*)'\\s*\\+|`(\\.\\.?/[^`$\\\\]*)\\$\\{)")

// globBeyond is the beginning of such a path in code in dir, if it leads out of the project; "" = no such path. So
// esbuild does not search there for files that it must not read.
func (l *loading) globBeyond(text []byte, dir string) string {
	for _, m := range globStart.FindAllSubmatch(text, -1) {
		for _, start := range m[1:] {
			if len(start) > 0 && l.treeOf(filepath.Join(dir, filepath.Dir(string(start)+"x"))) == "" {
				return string(start)
			}
		}
	}
	return ""
}
