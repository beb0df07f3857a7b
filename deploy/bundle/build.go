package bundle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// MaxBundle is the largest bundle, bytes of code.
const MaxBundle = 10 << 20

// extensions are the file name extensions of sources.
var extensions = []string{".js", ".mjs", ".ts", ".mts", ".jsx", ".tsx"}

// IsSource reports whether path has the extension of a source file: .js, .mjs, .ts, .mts, .jsx or .tsx, but not .d.ts.
func IsSource(path string) bool {
	return slices.Contains(extensions, filepath.Ext(path)) &&
		!strings.HasSuffix(path, ".d.ts") && !strings.HasSuffix(path, ".d.mts")
}

// Bundle is a source file with all its imports, as one ES module, and its manifest.
type Bundle struct {
	Code      string // ES2024 module, ASCII; it imports nothing, or only modules of the runtime
	File      string // its name in stack traces: the source's base name with .js
	SourceMap []byte // version 3 JSON with the text of the sources; names are relative to the source's directory

	workers.Spec // what the manifest and the comments of the source say

	// the worker's, if the caller has no other: of the manifest, the directory or the source; it may be invalid
	Name   string
	Source string // path of the source, as the author would name it

	Files   *assets.Folder    // those of Assets; nil = none
	Modules []*workers.Module // of WebAssembly, which Code gets from pinwheel:wasm; in the order of their hashes

	manifest *manifest.Manifest // that it was built with; nil = none

	Plain []string // vars that look like secrets and are none, as the manifest says. It is not stored

	// Inputs are the absolute paths of all files of the bundle, of the manifests even if they do not exist, and of the
	// directories of Files with AnyName behind them.
	Inputs   []string
	Warnings []Diagnostic // likely mistakes
	Notes    []Diagnostic // what a manifest says that makes no difference here
}

// WorkerName is the name of the worker if the caller has no other: Name, or else the base name of File. It may be
// invalid.
func (b *Bundle) WorkerName() string { return cmp.Or(b.Name, baseName(b.File)) }

// Place returns a fault at the place of the manifest's field that text begins with, or nil if there is none.
func (b *Bundle) Place(text string) *SourceError {
	if b.manifest == nil {
		return nil
	}
	return b.manifest.Place(text)
}

// Refuse returns err, which begins with the path of a wrong field, at the place of that field in the manifest. It
// returns nil if there is no manifest.
func (b *Bundle) Refuse(err error) error {
	if b.manifest == nil {
		return nil
	}
	return b.manifest.Refuse(err)
}

// AnyName stands for any file of a directory in Bundle.Inputs.
const AnyName = assets.AnyName

// Build bundles the source file at path and reads the manifest next to it. path may also be a directory: its manifest
// names the source (see docs/reference/manifest.md). The error is a *SourceError when the author must correct
// something. Messages have path as it is given. ${NAME} in the manifest's vars is replaced from the environment of this
// process.
//
// Build reads files only from the project of the source or, if roots are given, from these directories. The same holds
// for files that are imported, named by a configuration, or linked. The project is the nearest directory upwards from
// the source, or from the directory given, that has a package.json, or the root of the workspaces around it. Without a
// package.json, it is the directory of the source, or the directory given. Packages come from node_modules in the
// project and above it. The source of a directory is never outside of that directory.
func Build(ctx context.Context, path string, roots ...string) (*Bundle, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	inside := abs // a path in the directory where the project is looked for
	info, err := os.Stat(abs)
	isDir := path != "" && err == nil && info.IsDir()
	switch {
	case isDir:
		inside = filepath.Join(abs, "index.js")
	case !IsSource(path):
		return nil, fmt.Errorf("%s: a worker is a directory, or a file that ends in one of %s", path, strings.Join(extensions, " "))
	}
	project, err := openProject(inside, roots)
	if err != nil {
		return nil, fmt.Errorf("read worker: %w", err)
	}
	if isDir {
		l, err := project.ofDirectory(path)
		if err != nil {
			return nil, err
		}
		return l.build(ctx, project, nil)
	}
	l, err := project.ofFile(path)
	return l.build(ctx, project, err)
}

// build bundles the source. It adds the faults that it finds to those of the manifest.
func (l layout) build(ctx context.Context, p *project, manifestErr error) (*Bundle, error) {
	b, comments, err := l.code(ctx, p)
	var faults *SourceError
	if err != nil && !errors.As(err, &faults) {
		return nil, err
	}
	spec, specErr := l.spec(comments)
	var files *assets.Folder
	var filesErr error
	if specErr == nil {
		files, filesErr = l.files(spec.Assets)
	}
	if err := joinSourceErrors(err, manifestErr, specErr, filesErr); err != nil {
		return nil, err
	}
	b.Spec, b.Name, b.Source = spec, l.name, cmp.Or(l.source, l.file)
	b.Notes = append(l.notes(), b.Notes...)
	if l.manifest != nil {
		b.Plain, b.manifest = l.manifest.Plain, l.manifest
	}
	b.Warnings = append(append(b.Warnings, comments.Warnings...), l.risks(spec, comments)...)
	b.Inputs = append(b.Inputs, l.inputs...)
	if l.routes != nil {
		b.Inputs = append(b.Inputs, l.routes.inputs()...)
		b.Warnings = append(b.Warnings, l.routes.words...)
		for _, note := range l.routes.Notes {
			b.Notes = append(b.Notes, Diagnostic{File: l.routes.dir, Text: note})
		}
	}
	if files == nil {
		return b, nil
	}
	named := *spec.Assets
	named.Files = files.Hash
	b.Assets, b.Files, b.Inputs = &named, files, append(b.Inputs, files.Inputs()...)
	for _, note := range files.Notes {
		b.Notes = append(b.Notes, Diagnostic{File: files.Name, Text: note})
	}
	return b, nil
}

// code bundles the source, and reads its comments. The error is a *SourceError with the faults of both when the author
// must correct something.
func (l layout) code(ctx context.Context, p *project) (*Bundle, manifest.Comments, error) {
	if l.source == "" && l.routes == nil {
		return site(), manifest.Comments{}, nil
	}
	comments, commentErr, err := l.comments(p)
	if err != nil {
		return nil, comments, err
	}
	e, err := l.entryOf()
	if err != nil {
		return nil, comments, err
	}
	if err := p.checkConfigs(); err != nil {
		return nil, comments, err
	}
	b, err := bundle(ctx, p, e)
	return b, comments, joinSourceErrors(err, commentErr)
}

// comments reads the comments of the source. faults are those that its author must correct.
func (l layout) comments(p *project) (c manifest.Comments, faults, err error) {
	if l.source == "" {
		return c, nil, nil
	}
	abs, err := filepath.Abs(l.source)
	if err != nil {
		return c, nil, err
	}
	source, err := p.read(abs, maxSource)
	var refused *refusalOfFile
	if errors.As(err, &refused) {
		return c, nil,
			&SourceError{Diagnostics: []Diagnostic{{File: l.source, Text: "the source cannot be read: " + refused.why}}}
	}
	if err != nil {
		return c, nil, fmt.Errorf("read worker %s: %w", l.source, err)
	}
	c, faults = manifest.ParseComments(l.source, source)
	return c, faults, nil
}

// entry is the module that is bundled with all its imports.
type entry struct {
	path    string // as the author would name it
	abs     string
	text    string // "" = that of the file
	files   importedFiles
	scripts scripts
	node    bool // it has Node's modules
	modules *importedModules
}

// joinSourceErrors makes one list of the faults that several steps found. An error of another kind is returned instead.
func joinSourceErrors(errs ...error) error {
	joined := &SourceError{}
	for _, err := range errs {
		var se *SourceError
		if errors.As(err, &se) {
			joined.Diagnostics = append(joined.Diagnostics, se.Diagnostics...)
		} else if err != nil {
			return err
		}
	}
	if len(joined.Diagnostics) == 0 {
		return nil
	}
	return joined
}

func bundle(ctx context.Context, p *project, e entry) (*Bundle, error) {
	path, abs := e.path, e.abs
	e.modules = &importedModules{found: map[string]*workers.Module{}}
	dir, web := filepath.Dir(path), &webFiles{}
	result, err := run(ctx, p, e, web)
	for first := result; err == nil && len(result.Errors) > 0; {
		if web.add(ctx, p, e, result.Errors) {
			result, err = run(ctx, p, e, web)
			continue
		}
		messages := p.withhold(abs, first.Errors)
		ds := diagnostics(dir, path, messages)
		p.explain(ctx, dir, e, ds, messages)
		return nil, &SourceError{Diagnostics: ds}
	}
	if err != nil {
		return nil, err
	}
	meta, err := parseMetafile(result.Metafile)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	b := &Bundle{
		File: baseName(abs) + ".js", Inputs: append(meta.inputs(filepath.Dir(abs)), e.modules.paths...),
		Warnings: diagnostics(dir, path, p.withhold(abs, slices.DeleteFunc(result.Warnings, ofBuiltins))),
		Notes:    web.notes(path),
	}
	for _, out := range result.OutputFiles {
		switch filepath.Ext(out.Path) {
		case ".js":
			b.Code = string(out.Contents)
		case ".map":
			b.SourceMap = out.Contents
		}
	}
	b.Code = keepClassNames(b.Code, b.SourceMap)
	if b.Modules, err = e.modules.in(b.Code); err != nil {
		return nil, &SourceError{Diagnostics: []Diagnostic{{File: path, Text: err.Error()}}}
	}
	b.Warnings = append(b.Warnings, p.metadataWarnings(e, b.Inputs)...)
	if len(b.Code) > MaxBundle {
		text := fmt.Sprintf("the bundle has %d bytes: at most %d are allowed; the largest of its files are %s", len(b.Code), MaxBundle, meta.largest(3))
		return nil, &SourceError{Diagnostics: []Diagnostic{{File: path, Text: text}}}
	}
	return b, nil
}

// metafile is the part of esbuild's description of a build that is read here.
type metafile struct {
	Inputs map[string]struct {
		Bytes int `json:"bytes"`
	} `json:"inputs"`
}

func parseMetafile(text string) (*metafile, error) {
	m := &metafile{}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return nil, fmt.Errorf("esbuild's metafile: %w", err)
	}
	return m, nil
}

// inputs are the absolute paths of the input files. Names with a namespace ("data:…") are not files.
func (m *metafile) inputs(dir string) []string {
	paths := make([]string, 0, len(m.Inputs)+1)
	for name := range m.Inputs {
		path := filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// largest names the n largest inputs, for the error of a bundle that is too large.
func (m *metafile) largest(n int) string {
	names := make([]string, 0, len(m.Inputs))
	for name := range m.Inputs {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return m.Inputs[b].Bytes - m.Inputs[a].Bytes })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, m.Inputs[name].Bytes)
	}
	return strings.Join(names[:min(n, len(names))], ", ")
}

// baseName is the file's name without directory and extension. It is the default name of the worker.
func baseName(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
