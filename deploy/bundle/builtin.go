package bundle

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

//go:embed types/runtime.d.ts
var types string

// Types is the text of runtime.d.ts: declarations in TypeScript of what a worker has beside the web platform.
func Types() string { return types }

//go:embed builtin/async_hooks.js
var asyncHooks string

// nodeSpace is the namespace of Node's modules, as in node:async_hooks: messages use this name.
const nodeSpace = "node"

// builtins provides the modules that a worker may import beside its files and packages. With node these are all of
// Node's. Without, there is async_hooks alone, which is bundled like any other module. cloudflare:workers and
// cloudflare:sockets stay imports of the bundle: the runtime has these modules.
func builtins(node bool) api.Plugin {
	return api.Plugin{Name: builtinsPlugin, Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^cloudflare:(workers|sockets)$`},
			func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				if a.Namespace == cloudflare {
					return api.OnResolveResult{Path: a.Path, External: true, SideEffects: api.SideEffectsFalse}, nil
				}
				name := strings.TrimPrefix(a.Path, cloudflare+":")
				return api.OnResolveResult{Path: name, Namespace: cloudflare, SideEffects: api.SideEffectsFalse}, nil
			})
		b.OnLoad(api.OnLoadOptions{Filter: `^(workers|sockets)$`, Namespace: cloudflare},
			func(a api.OnLoadArgs) (api.OnLoadResult, error) {
				text := fmt.Sprintf("export { %s } from %q;", strings.Join(runtimeNames[a.Path], ", "), cloudflare+":"+a.Path)
				return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
			})
		b.OnResolve(api.OnResolveOptions{Filter: `^pinwheel:script$`},
			func(api.OnResolveArgs) (api.OnResolveResult, error) {
				return api.OnResolveResult{Path: scriptModule, Namespace: "pinwheel"}, nil
			})
		b.OnLoad(api.OnLoadOptions{Filter: `.`, Namespace: "pinwheel"},
			func(api.OnLoadArgs) (api.OnLoadResult, error) {
				return api.OnLoadResult{Contents: &scriptAdapter, Loader: api.LoaderJS}, nil
			})
		if node {
			nodeModules(b)
			return
		}
		b.OnResolve(api.OnResolveOptions{Filter: `^(node:)?async_hooks$`},
			func(api.OnResolveArgs) (api.OnResolveResult, error) {
				return api.OnResolveResult{Path: "async_hooks", Namespace: nodeSpace, SideEffects: api.SideEffectsFalse}, nil
			})
		b.OnLoad(api.OnLoadOptions{Filter: `^async_hooks$`, Namespace: nodeSpace},
			func(api.OnLoadArgs) (api.OnLoadResult, error) {
				return api.OnLoadResult{Contents: &asyncHooks, Loader: api.LoaderJS}, nil
			})
	}}
}

const builtinsPlugin = "pinwheel builtins"

// ofBuiltins reports whether a warning says that an import of such a module alone does nothing. What a framework has
// built has such imports.
func ofBuiltins(m api.Message) bool {
	return m.ID == "ignored-bare-import" && strings.Contains(m.Text, strconv.Quote(builtinsPlugin))
}

// cloudflare is the scheme of the modules of Cloudflare's runtime.
const cloudflare = "cloudflare"

// workersNames are what a worker may import from cloudflare:workers. isolates/js/events/entrypoints.js has the values.
var workersNames = []string{"RpcTarget", "WorkerEntrypoint", "env", "exports", "waitUntil"}

// runtimeNames are what a worker may import from the modules that the runtime has, by the part of their names after
// cloudflare:. isolates/js/fetch/sockets.js has what sockets exports.
var runtimeNames = map[string][]string{"workers": workersNames, "sockets": {"connect"}}

// ImportsSockets reports whether a bundle may open TCP connections: whether it says anywhere that it imports
// cloudflare:sockets, or Node's modules and the name of one that came with them.
func ImportsSockets(code string) bool {
	return strings.Contains(code, `from "cloudflare:sockets"`) || ImportsNode(code) && socketModule.MatchString(code)
}

// socketModule is a string with the name of a module of Node that is about the network.
var socketModule = regexp.MustCompile("[\"'`](?:node:)?(?:net|tls|dns|dns/promises|https?|cloudflare:node)[\"'`]")

// ImportsRuntime reports whether a bundle may import cloudflare:workers: whether it says so anywhere.
func ImportsRuntime(code string) bool { return strings.Contains(code, `from "cloudflare:workers"`) }
