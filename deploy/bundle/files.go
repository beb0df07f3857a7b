package bundle

import (
	"cmp"
	"errors"
	"path/filepath"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// noPages are files beside a manifest that are no files of a site.
var noPages = []string{"package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "tsconfig.json", "jsconfig.json"}

const pageName = "index.html"

// files reads the directory that the manifest names; nil = it names none.
func (l layout) files(a *workers.Assets) (*assets.Folder, error) {
	if a == nil {
		return nil, nil
	}
	if a.Binding != "" && l.source == "" && l.routes == nil {
		return nil, l.manifest.Fault("assets.binding", "assets.binding is %.200q: there is no code that could read the files; main names it", a.Binding)
	}
	base := cmp.Or(l.base, filepath.Dir(l.file))
	real, err := realDir(base)
	if err != nil {
		return nil, err
	}
	if why := wrongDirectory(real, a.Directory); why != "" {
		return nil, l.manifest.Fault("assets.directory", "assets.directory is %.200q: %s", a.Directory, why)
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(real, filepath.FromSlash(a.Directory)))
	if err != nil {
		return nil, err
	}
	if page := l.manifest.Page; page != "" && !isFile(filepath.Join(dir, pageName)) {
		return nil, l.manifest.Fault("assets", "entrypoint is %.200q: there is no such file", page)
	}
	var skip []string
	if dir == real {
		for _, m := range directoryManifests {
			skip = append(skip, m.file)
		}
		skip = append(append(skip, noPages...), filepath.Base(l.file))
	}
	source := l.sourceIn(dir)
	if source != "" {
		skip = append(skip, source)
	}
	name := filepath.Join(base, filepath.FromSlash(a.Directory))
	f, err := assets.Open(dir, name, skip...)
	var fault *assets.Error
	if errors.As(err, &fault) {
		return nil,
			&SourceError{Diagnostics: []Diagnostic{{File: filepath.Join(name, fault.File), Line: fault.Line,
				Column: fault.Column, Text: fault.Text}}}
	}
	if err == nil && source != "" {
		f.Notes = append(f.Notes, source+" is not served: it is the source of the worker")
	}
	return f, err
}

// sourceIn is the path of the source from a directory of files, which is without links; "" = it is not there. Some
// builds put it among the files, and it may contain what nobody else should read.
func (l layout) sourceIn(dir string) string {
	real, err := realPath(l.source)
	if l.source == "" || err != nil || !within(dir, real) {
		return ""
	}
	rel, err := filepath.Rel(dir, real)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(rel)
}

// wrongDirectory says why path is no directory of files in the directory dir, which is without links; "" = it is.
func wrongDirectory(dir, path string) string {
	if why := wrongPath(path); why != "" {
		return why
	}
	real, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(path)))
	switch {
	case err != nil:
		return "there is no such directory"
	case !within(dir, real):
		return "a link on it leads out of the directory of the manifest"
	}
	if _, err = realDir(real); err != nil {
		return "it is no directory"
	}
	return ""
}

// site is the code of a worker that has files only.
func site() *Bundle { return &Bundle{Code: "export default {};\n", File: "index.js"} }
