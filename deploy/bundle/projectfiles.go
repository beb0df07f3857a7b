package bundle

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// loading reads the files of a bundle for esbuild, from the project only.
type loading struct {
	*project
	mu       sync.Mutex
	checked  map[string]bool        // directories of packages
	archives map[string]*zip.Reader // of Yarn, by path
	browser  map[string]browserMap  // by directory
}

func (p *project) plugin() api.Plugin {
	l := &loading{project: p, checked: map[string]bool{}, archives: map[string]*zip.Reader{},
		browser: map[string]browserMap{}}
	return api.Plugin{Name: "pinwheel files", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `.`}, l.resolve)
		b.OnLoad(api.OnLoadOptions{Filter: `.`, Namespace: "file"}, l.load)
		b.OnLoad(api.OnLoadOptions{Filter: `.`, Namespace: emptyModule},
			func(api.OnLoadArgs) (api.OnLoadResult, error) {
				text := "module.exports = {};" // any name may be imported from it
				return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
			})
	}}
}

// emptyModule is the namespace of packages that are empty modules for another one.
const emptyModule = "empty"

// resolve refuses a path that leads out of the project because of its name alone. So the author cannot find out whether
// there is such a file.
func (l *loading) resolve(a api.OnResolveArgs) (r api.OnResolveResult, err error) {
	if a.Kind == api.ResolveEntryPoint || a.ResolveDir == "" || virtual(a.ResolveDir) {
		return r, nil
	}
	if !strings.HasPrefix(a.Path, ".") && !strings.HasPrefix(a.Path, "/") {
		if err = l.checkPackage(a.ResolveDir, a.Path); err != nil {
			r.Errors = []api.Message{{Text: fmt.Sprintf("import of %q: a file of the package cannot be read: %v", a.Path, err)}}
			return r, nil
		}
		if l.isEmptyPackage(a.ResolveDir, a.Path) {
			r.Path, r.Namespace = a.Path, emptyModule
		}
		return r, nil
	}
	path := a.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.ResolveDir, path)
	}
	if l.treeOf(filepath.Clean(path)) == "" {
		r.Errors = []api.Message{{Text: fmt.Sprintf("import of %q: %v", a.Path, l.outside())}}
	}
	return r, nil
}

// load reads a file.
func (l *loading) load(a api.OnLoadArgs) (r api.OnLoadResult, err error) {
	if l.isEmptyFile(a.Path) {
		r.Contents, r.Loader = new(string), api.LoaderEmpty
		return r, nil
	}
	text, err := l.readModule(a.Path)
	var refused *refusalOfFile
	switch {
	case errors.As(err, &refused):
		r.Errors = []api.Message{{Text: "import of a file that cannot be read: " + refused.why}}
		return r, nil
	case err != nil: // without an answer, esbuild would read the file itself
		r.Errors = []api.Message{{Text: "import of a file that cannot be read, or is gone"}}
		return r, nil
	}
	if r.Loader, err = loaderFor(a.With); err != nil {
		return r, err
	}
	if r.Loader == api.LoaderDefault && isCode(a.Path) {
		if glob := l.globBeyond(text, filepath.Dir(a.Path)); glob != "" {
			r.Errors = []api.Message{{Text: fmt.Sprintf("import of %q and what follows: %v", glob, l.outside())}}
			return r, nil
		}
		text = l.withMap(a.Path, text)
	}
	contents := string(text)
	r.Contents = &contents
	return r, nil
}

// isCode reports whether a file is JavaScript or TypeScript.
func isCode(path string) bool {
	return IsSource(path) || slices.Contains([]string{".cjs", ".cts"}, filepath.Ext(path)) ||
		strings.HasSuffix(path, ".d.ts")
}

// readModule reads a file, which may be in an archive of Yarn.
func (l *loading) readModule(path string) ([]byte, error) {
	path, inside := physical(path)
	if inside == "" {
		return l.read(path, maxSource)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	archive := l.archives[path]
	if archive == nil {
		text, err := l.read(path, maxSource)
		if err != nil {
			return nil, err
		}
		if archive, err = zip.NewReader(bytes.NewReader(text), int64(len(text))); err != nil {
			return nil, err
		}
		l.archives[path] = archive
	}
	f, err := archive.Open(inside)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if len(text) > maxSource || l.left.Add(-int64(len(text))) < 0 {
		return nil, &refusalOfFile{why: fmt.Sprintf("a file in an archive has at most %d bytes, and all files of a bundle %d",
			maxSource, maxSources)}
	}
	return text, err
}

// loaderFor is the loader for import attributes.
func loaderFor(with map[string]string) (api.Loader, error) {
	for name, value := range with {
		switch {
		case name != "type":
			return 0, fmt.Errorf("importing with the %q attribute is not supported", name)
		case value == "json":
			return api.LoaderJSON, nil
		case value == "bytes":
			return api.LoaderBinary, nil
		case value == "text":
			return api.LoaderText, nil
		default:
			return 0, fmt.Errorf("importing with a type attribute of %q is not supported", value)
		}
	}
	return api.LoaderDefault, nil
}

// virtual reports whether path is a virtual path of Yarn.
func virtual(path string) bool {
	return strings.Contains(path, "/__virtual__/") || strings.Contains(path, "/$$virtual/")
}

// physical is the file for a path. A path may be a virtual one of Yarn, for example /a/__virtual__/HASH/LEVELS/b, which
// means b relative to the directory LEVELS above /a. It may also lead into an archive; inside is then the path in the
// archive.
func physical(path string) (file, inside string) {
	for virtual(path) {
		i := max(strings.Index(path, "/__virtual__/"), strings.Index(path, "/$$virtual/"))
		parts := strings.SplitN(path[i+1:], "/", 4) // __virtual__, hash, levels, rest
		levels, err := -1, error(nil)
		if len(parts) == 4 {
			levels, err = strconv.Atoi(parts[2])
		}
		if err != nil || levels < 0 || levels > 64 {
			return path, ""
		}
		path = filepath.Join(path[:i], strings.Repeat("../", levels), parts[3])
	}
	if i := strings.Index(path, ".zip/"); i >= 0 && isFile(path[:i+4]) {
		return path[:i+4], path[i+5:]
	}
	return path, ""
}
