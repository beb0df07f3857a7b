package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// MaxBundle is the largest bundle, in bytes of code.
const MaxBundle = 10 << 20

// extensions are the file name extensions of sources.
var extensions = []string{".js", ".mjs", ".ts", ".mts", ".jsx", ".tsx"}

// IsSource reports whether path has the extension of a source file: .js, .mjs, .ts, .mts, .jsx or .tsx, and no .d.ts.
func IsSource(path string) bool {
	return slices.Contains(extensions, filepath.Ext(path)) &&
		!strings.HasSuffix(path, ".d.ts") && !strings.HasSuffix(path, ".d.mts")
}

// Bundle is a source file with everything it imports, as one ES module, and its manifest.
type Bundle struct {
	Code      string // ES2024 module without imports, ASCII
	File      string // what stacks call the code: the source's base name with .js
	SourceMap []byte // version 3 JSON with the sources' text; names are relative to the source's directory

	Manifest Manifest
	Inputs   []string     // absolute paths of all files that went in, the manifest's too, whether it exists or not
	Warnings []Diagnostic // what esbuild thinks is a mistake, though it bundles
}

// Build bundles the source file at path and reads the manifest next to it. The error is a
// *SourceError when the author has something to mend. path is used as given in messages.
//
// Files are read from the project of the source only, or, if there are any, from roots, directories: whatever is imported, named by a configuration, or
// linked. The project is the nearest directory from the source's upwards that has a package.json, or the root of the workspaces around that; without
// one, the source's directory. Packages are taken from node_modules in it and above it.
func Build(ctx context.Context, path string, roots ...string) (*Bundle, error) {
	if !IsSource(path) {
		return nil, fmt.Errorf("%s: a worker is a file that ends in one of %s", path, strings.Join(extensions, " "))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	project, err := openProject(abs, roots)
	if err != nil {
		return nil, fmt.Errorf("read worker: %w", err)
	}
	source, err := project.read(abs, maxSource)
	if err != nil {
		return nil, fmt.Errorf("read worker %s: %w", path, err)
	}
	manifest, manifestErr := readManifest(project, path, source)
	if err := project.checkConfigs(); err != nil {
		return nil, err
	}
	b, err := bundle(ctx, project, path, abs)
	if err := joinSourceErrors(err, manifestErr); err != nil {
		return nil, err
	}
	b.Manifest = manifest
	b.Inputs = append(b.Inputs, manifestPath(abs))
	return b, nil
}

// joinSourceErrors makes one list of what several steps found wrong; an error that is about anything else wins.
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

func bundle(ctx context.Context, p *project, path, abs string) (*Bundle, error) {
	build, ctxErr := api.Context(buildOptions(p, abs))
	if ctxErr != nil {
		return nil, &SourceError{diagnostics(filepath.Dir(path), path, p.withhold(abs, ctxErr.Errors))}
	}
	defer build.Dispose()
	stop := context.AfterFunc(ctx, build.Cancel)
	result := build.Rebuild()
	stop()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	dir := filepath.Dir(path)
	if len(result.Errors) > 0 {
		messages := p.withhold(abs, result.Errors)
		ds := diagnostics(dir, path, messages)
		p.explain(ctx, dir, abs, ds, messages)
		return nil, &SourceError{ds}
	}
	meta, err := parseMetafile(result.Metafile)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	b := &Bundle{
		File: baseName(abs) + ".js", Inputs: meta.inputs(filepath.Dir(abs)),
		Warnings: diagnostics(dir, path, p.withhold(abs, result.Warnings)),
	}
	for _, out := range result.OutputFiles {
		switch filepath.Ext(out.Path) {
		case ".js":
			b.Code = string(out.Contents)
		case ".map":
			b.SourceMap = out.Contents
		}
	}
	if len(b.Code) > MaxBundle {
		return nil, fmt.Errorf("%s: the bundle has %d bytes: at most %d are allowed; the largest of its files are %s",
			path, len(b.Code), MaxBundle, meta.largest(3))
	}
	return b, nil
}

func buildOptions(p *project, abs string) api.BuildOptions {
	dir := filepath.Dir(abs)
	plugins := []api.Plugin{builtins(), refuseImports()}
	if !p.open {
		plugins = append(plugins, p.plugin())
	}
	return api.BuildOptions{
		EntryPoints: []string{abs}, AbsWorkingDir: dir, Outfile: filepath.Join(dir, baseName(abs)+".js"),
		Bundle: true, Metafile: true, Format: api.FormatESModule, Target: api.ES2024,
		// What an npm package offers to a browser or to other worker runtimes fits us best. Only with this platform esbuild also follows
		// the maps of files that packages have for browsers ("browser": {"./node.js": "./web.js", "fs": false}).
		Platform: api.PlatformBrowser, TreeShaking: api.TreeShakingTrue,
		MainFields: []string{"browser", "module", "main"},
		Conditions: []string{"workerd", "worker", "browser"},
		// Names stay as written (no minify), so KeepNames would only add a call to every function.
		// Output is ASCII (the default), which V8 keeps in one byte a character.
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentInclude, LegalComments: api.LegalCommentsNone,
		// Bundlers define it, and many packages do not load without it.
		Define: map[string]string{"process.env.NODE_ENV": `"production"`},
		Loader: map[string]api.Loader{
			".css": api.LoaderText, ".html": api.LoaderText, ".md": api.LoaderText, ".csv": api.LoaderText, ".sql": api.LoaderText,
		},
		LogLevel: api.LogLevelSilent, Plugins: plugins,
	}
}

// refuseImports refuses what esbuild would leave in the code to be imported at run time, where nothing can be.
func refuseImports() api.Plugin {
	refuse := func(text, note string) func(api.OnResolveArgs) (api.OnResolveResult, error) {
		return func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			m := api.Message{Text: fmt.Sprintf(text, a.Path), Notes: []api.Note{{Text: note}}}
			return api.OnResolveResult{Errors: []api.Message{m}}, nil
		}
	}
	return api.Plugin{Name: "pinwheel", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^(https?:)?//`},
			refuse("import of %q: a worker cannot import from a URL", "download the module, or install its npm package, and import that"))
		b.OnResolve(api.OnResolveOptions{Filter: `\.wasm(\?.*)?$`},
			refuse("import of %q: a worker has no WebAssembly, since nothing bounds the memory that a module of it takes",
				"use JavaScript that does the same: many packages have it as a separate entry or as another package"))
	}}
}

// metafile is the part of esbuild's description of a build that we read.
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

// inputs are the absolute paths of the input files. Names with a namespace ("data:…") are no files.
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

// baseName is the file's name without directory and extension: the worker's name unless another is given.
func baseName(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
