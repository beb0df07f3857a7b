package bundle

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

// run has esbuild bundle the source. Its errors are in the result.
func run(ctx context.Context, p *project, e entry, web *webFiles) (result api.BuildResult, err error) {
	o, done := buildOptions(p, e, web)
	defer done()
	build, ctxErr := api.Context(o)
	if ctxErr != nil {
		ds := diagnostics(filepath.Dir(e.path), e.path, p.withhold(e.abs, ctxErr.Errors))
		return result, &SourceError{Diagnostics: ds}
	}
	defer build.Dispose()
	stop := context.AfterFunc(ctx, build.Cancel)
	result = build.Rebuild()
	stop()
	if err := ctx.Err(); err != nil {
		return result, fmt.Errorf("bundle %s: %w", e.path, err)
	}
	return result, nil
}

// buildOptions are the options of esbuild. done must be called after the build.
func buildOptions(p *project, e entry, web *webFiles) (o api.BuildOptions, done func()) {
	abs, dir := e.abs, filepath.Dir(e.abs)
	plugins := []api.Plugin{builtins(e.node), refuseImports(), e.files.data(), e.scripts.plugin(p),
		e.modules.plugin(p, e.files)}
	if !p.open {
		plugins = append(plugins, p.plugin())
	}
	points, stdin := []string{abs}, (*api.StdinOptions)(nil)
	if e.text != "" {
		points, stdin = nil, &api.StdinOptions{Contents: e.text, ResolveDir: dir, Sourcefile: abs}
	}
	o = api.BuildOptions{
		EntryPoints: points, Stdin: stdin, AbsWorkingDir: dir, Outfile: filepath.Join(dir, baseName(abs)+".js"),
		Bundle: true, Metafile: true, Format: api.FormatESModule, Target: api.ES2024,
		// Only with this platform esbuild follows the maps of files that packages have for browsers ("browser": {"./node.js":
		// "./web.js", "fs": false}).
		Platform: api.PlatformBrowser, TreeShaking: api.TreeShakingTrue,
		MainFields: []string{"browser", "module", "main"},
		Conditions: conditions,
		// Nothing is minified. keepClassNames gives classes their names back. A function that shares its name with another
		// one keeps its number: KeepNames would cost a call for each function that a handler makes
		// (docs/guides/write-workers.md has figures). The output is ASCII (the default), which V8 keeps in one byte per
		// character.
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentInclude, LegalComments: api.LegalCommentsNone,
		// Bundlers define this, and many packages do not load without it.
		Define:   map[string]string{"process.env.NODE_ENV": `"production"`},
		Loader:   e.files.loaders(),
		LogLevel: api.LogLevelSilent, Plugins: plugins,
	}
	if e.node {
		o.Banner = map[string]string{"js": nodeBanner}
	}
	if len(web.packages) == 0 {
		return o, func() {}
	}
	plugin, done := web.plugin(p, o)
	o.Plugins = append(o.Plugins, plugin)
	return o, done
}

// refuseImports refuses imports that esbuild would leave in the code. A worker cannot import at run time.
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
	}}
}
