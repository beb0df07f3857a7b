package bundle_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

// Types of what is decorated are not in a bundle: the deploy says so at the option that asks for them.
func TestBuildWarnsOfDecoratorMetadata(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/package.json", `{"name": "w"}`)
	path := write(t, dir+"/w.ts", `import "./lib/a"; import "./lib/b"; export default { task() {} };`)
	write(t, dir+"/lib/a.ts", `console.log(1);`)
	write(t, dir+"/lib/b.ts", `console.log(2);`)
	texts := func() (texts []string) {
		b, err := bundle.Build(t.Context(), path)
		require.NoError(t, err)
		for _, w := range b.Warnings {
			text, _, _ := strings.Cut(w.String(), " has no effect")
			texts = append(texts, strings.TrimPrefix(text, dir))
		}
		return texts
	}
	write(t, dir+"/tsconfig.json", "{\n  \"compilerOptions\": {\n    \"emitDecoratorMetadata\": true }\n}")
	require.Equal(t, []string{"/tsconfig.json:3:5: emitDecoratorMetadata"}, texts())
	write(t, dir+"/tsconfig.json", `{"extends": "./base", "compilerOptions": {"experimentalDecorators": true}}`)
	write(t, dir+"/base.json", `{"compilerOptions": {/* for the tests */ "emitDecoratorMetadata": true}}`)
	require.Equal(t, []string{"/base.json:1:42: emitDecoratorMetadata"}, texts())
	write(t, dir+"/tsconfig.json", `{"extends": "./base", "compilerOptions": {"emitDecoratorMetadata": false}}`)
	require.Empty(t, texts())
	write(t, dir+"/off.json", `{"compilerOptions": {"emitDecoratorMetadata": false}}`)
	write(t, dir+"/lib/tsconfig.json", `{"extends": ["../base.json", "../off.json"]}`)
	require.Empty(t, texts(), "the last that says it counts")
	write(t, dir+"/lib/tsconfig.json", `{"extends": ["../off.json", "../base.json"]}`)
	require.Equal(t, []string{"/base.json:1:42: emitDecoratorMetadata"}, texts())
}
