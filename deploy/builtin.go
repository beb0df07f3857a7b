package deploy

import (
	_ "embed"

	"github.com/evanw/esbuild/pkg/api"
)

//go:embed types/runtime.d.ts
var types string

// Types is the text of runtime.d.ts: declarations in TypeScript of what a worker has beside the web platform.
func Types() string { return types }

//go:embed builtin/async_hooks.js
var asyncHooks string

// builtins provides the modules of Node that a worker may import. They are bundled like any other module.
func builtins() api.Plugin {
	const space = "node" // as in node:async_hooks: messages use this name
	return api.Plugin{Name: "pinwheel builtins", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^(node:)?async_hooks$`}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: "async_hooks", Namespace: space, SideEffects: api.SideEffectsFalse}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: `^async_hooks$`, Namespace: space}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
			return api.OnLoadResult{Contents: &asyncHooks, Loader: api.LoaderJS}, nil
		})
	}}
}
