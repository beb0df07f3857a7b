package bundle

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/wasm"
)

// Bounds of the modules of WebAssembly of one version. isolates/wasm bounds each.
const (
	MaxModules     = 64
	MaxModuleBytes = 32 << 20 // of all together
	MaxModule      = wasm.MaxModule
)

// CheckModuleSizes checks how many modules of WebAssembly a version has, and how large they are. next returns the hash
// and the bytes of each of n. The order of the hashes is fixed, so that equal versions are equal.
func CheckModuleSizes(n int, next func(i int) (hash string, size int64)) error {
	if n > MaxModules {
		return fmt.Errorf("the version has %d modules of WebAssembly: at most %d are allowed", n, MaxModules)
	}
	var all int64
	for i, before := 0, ""; i < n; i++ {
		hash, size := next(i)
		switch {
		case !assets.IsHash(hash):
			return fmt.Errorf("module of WebAssembly %.80q: it is named by its SHA-256, 64 hex digits", hash)
		case hash <= before:
			return errors.New("the modules of WebAssembly are in the order of their hashes, each once")
		case size < 1 || size > MaxModule:
			return fmt.Errorf("the module of WebAssembly %s has %d bytes: it has 1 to %d", hash, size, int64(MaxModule))
		}
		if all += size; all > MaxModuleBytes {
			return fmt.Errorf("the modules of WebAssembly have more than %d bytes in all", MaxModuleBytes)
		}
		before = hash
	}
	return nil
}

// CheckModules checks the modules of WebAssembly of a bundle, whoever has made it: their hashes, their sizes, and
// whether V8 may compile them.
func CheckModules(modules []*workers.Module) error {
	err := CheckModuleSizes(len(modules), func(i int) (string, int64) {
		return modules[i].Hash, int64(len(modules[i].Code))
	})
	if err != nil {
		return err
	}
	for _, m := range modules {
		if hash := assets.HashOf(m.Code); hash != m.Hash {
			return fmt.Errorf("the module of WebAssembly %s has the SHA-256 %s", m.Hash, hash)
		}
		if _, err := wasm.Check(m.Code); err != nil {
			return fmt.Errorf("the module of WebAssembly %s is refused: %w", m.Hash, err)
		}
	}
	return nil
}

// wasmRuntime is the module by which a bundle has its modules of WebAssembly. It stays an import of the bundle.
const wasmRuntime = "pinwheel:wasm"

// wasmQuery may follow the name of a module.
const wasmQuery = "?module"

// importedModules are the modules of WebAssembly that a build finds. esbuild calls it on several goroutines.
type importedModules struct {
	mu    sync.Mutex
	found map[string]*workers.Module // by hash
	paths []string                   // absolute
}

// wasmEndings are the extensions of the files that are modules of WebAssembly, as a regular expression.
func (f importedFiles) wasmEndings() string {
	endings := []string{`\.wasm`}
	for _, extension := range slices.Sorted(maps.Keys(f)) {
		if f[extension] == manifest.CompiledWasm {
			endings = append(endings, regexp.QuoteMeta(extension))
		}
	}
	return "(" + strings.Join(endings, "|") + ")$"
}

// plugin has an import of a file of WebAssembly give a WebAssembly.Module, with or without ?module behind its name. The
// bundle names the module by its hash.
func (m *importedModules) plugin(p *project, files importedFiles) api.Plugin {
	ending := files.wasmEndings()
	importer := regexp.MustCompile(strings.TrimSuffix(ending, "$") + `(\?module)?$`)
	return api.Plugin{Name: "pinwheel wasm", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: "^" + wasmRuntime + "$"},
			func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				if !importer.MatchString(a.Importer) {
					return api.OnResolveResult{}, nil // else an author could import it
				}
				return api.OnResolveResult{Path: a.Path, External: true, SideEffects: api.SideEffectsFalse}, nil
			})
		b.OnLoad(api.OnLoadOptions{Filter: ending, Namespace: "file"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
			return m.load(p, a)
		})
	}}
}

func (m *importedModules) load(p *project, a api.OnLoadArgs) (r api.OnLoadResult, err error) {
	refuse := func(format string, args ...any) (api.OnLoadResult, error) {
		r.Errors = []api.Message{{Text: fmt.Sprintf("import of %q: ", filepath.Base(a.Path)+a.Suffix) +
			fmt.Sprintf(format, args...)}}
		return r, nil
	}
	if a.Suffix != "" && a.Suffix != wasmQuery {
		return refuse("a module of WebAssembly is imported as FILE.wasm or FILE.wasm%s", wasmQuery)
	}
	code, err := p.read(a.Path, MaxModule)
	if err != nil {
		return refuse("the module of WebAssembly cannot be read: %v", err)
	}
	if _, err = wasm.Check(code); err != nil {
		return refuse("the module of WebAssembly is refused: %v", err)
	}
	hash := assets.HashOf(code)
	m.mu.Lock()
	m.found[hash] = &workers.Module{Hash: hash, Code: code}
	m.paths = append(m.paths, a.Path)
	m.mu.Unlock()
	text := fmt.Sprintf("import { imported } from %q; export default /* @__PURE__ */ imported(%q);", wasmRuntime, hash)
	r.Contents, r.Loader = &text, api.LoaderJS
	return r, nil
}

// in returns the modules that code names, in the order of their hashes. An import that nothing uses is not in the code.
func (m *importedModules) in(code string) (found []*workers.Module, err error) {
	for _, hash := range slices.Sorted(maps.Keys(m.found)) {
		if strings.Contains(code, hash) {
			found = append(found, m.found[hash])
		}
	}
	return found, CheckModuleSizes(len(found), func(i int) (string, int64) {
		return found[i].Hash, int64(len(found[i].Code))
	})
}
