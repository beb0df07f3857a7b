package bundle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// nodeRuntime is the module by which a bundle has Node's modules. It stays an import of the bundle. Its evaluation,
// which comes before all code of the bundle, gives the context the globals Buffer, process and global.
const nodeRuntime = "pinwheel:node"

// nodeBanner is the first line of a bundle for which the manifest wants Node's modules.
const nodeBanner = `import "` + nodeRuntime + `";`

// ImportsNode reports whether a bundle may have Node's modules: whether it says so anywhere.
func ImportsNode(code string) bool { return strings.Contains(code, nodeRuntime) }

// nodeBuiltins are the modules that isolates/js/node has.
var nodeBuiltins = []string{
	"_stream_duplex", "_stream_passthrough", "_stream_readable", "_stream_transform",
	"_stream_writable", "assert", "assert/strict", "async_hooks", "buffer", "console", "crypto",
	"diagnostics_channel", "dns", "dns/promises", "events", "http", "https", "module", "net", "os",
	"path", "path/posix", "path/win32", "perf_hooks", "process", "punycode", "querystring", "stream",
	"stream/consumers", "stream/promises", "stream/web", "string_decoder", "sys", "timers",
	"timers/promises", "tls", "url", "util", "util/types", "zlib",
}

// nodeAbsent are Node's other modules. They can be imported, and what is used of them throws.
var nodeAbsent = []string{
	"_http_agent", "_http_client", "_http_common", "_http_incoming", "_http_outgoing", "_http_server", "_stream_wrap",
	"_tls_common", "_tls_wrap", "child_process", "cluster", "constants", "dgram", "domain",
	"fs", "fs/promises", "http2", "inspector", "inspector/promises", "readline",
	"readline/promises", "repl", "sea", "sqlite", "test", "test/reporters", "trace_events", "tty", "v8", "vm",
	"wasi", "worker_threads",
}

// onlyPrefixed are modules that Node has only with its prefix.
var onlyPrefixed = []string{"sea", "sqlite", "test", "test/reporters"}

// nodeModules provides Node's modules. A module that is there wins over a package of that name, as in Node and
// wrangler. For one that is not there, a package of that name is taken, or what the importing package names for
// browsers.
//
// Each is a CommonJS module for the bundle: require() of Node's modules returns what a default import gives, and only
// what the code comes to is loaded.
func nodeModules(b api.PluginBuild) {
	names := append(slices.Clone(nodeBuiltins), nodeAbsent...)
	b.OnResolve(api.OnResolveOptions{Filter: `^` + nodeRuntime + `$`},
		func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			if a.Namespace != nodeSpace { // else an author could import it
				return api.OnResolveResult{}, nil
			}
			return api.OnResolveResult{Path: a.Path, External: true, SideEffects: api.SideEffectsFalse}, nil
		})
	b.OnResolve(api.OnResolveOptions{Filter: `^cloudflare:node$`},
		func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: a.Path, Namespace: nodeSpace, SideEffects: api.SideEffectsFalse}, nil
		})
	filter := `^(node:)?(` + strings.Join(names, "|") + `)$`
	b.OnResolve(api.OnResolveOptions{Filter: filter}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		name, prefixed := strings.CutPrefix(a.Path, "node:")
		found := api.OnResolveResult{Path: name, Namespace: nodeSpace, SideEffects: api.SideEffectsFalse}
		switch {
		case a.PluginData == asPackage, !prefixed && slices.Contains(onlyPrefixed, name):
			return api.OnResolveResult{}, nil
		case prefixed, slices.Contains(nodeBuiltins, name):
			return found, nil
		}
		pkg := b.Resolve(a.Path, api.ResolveOptions{
			Importer: a.Importer, Namespace: a.Namespace, ResolveDir: a.ResolveDir, Kind: a.Kind, PluginData: asPackage,
		})
		if len(pkg.Errors) == 0 {
			return api.OnResolveResult{}, nil // esbuild finds it again
		}
		return found, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: `.`, Namespace: nodeSpace}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		text := fmt.Sprintf("import { builtin } from %q; module.exports = builtin(%q);", nodeRuntime, a.Path)
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
	})
}

// asPackage marks the search for a package.
const asPackage = "as a package"
