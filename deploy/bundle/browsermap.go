package bundle

import (
	"encoding/json"
	pathpkg "path"
	"path/filepath"
	"strings"
)

// browserMap says which files and packages are empty modules for the files of a package: "browser": {"./file": false,
// "name": false} in its package.json. esbuild knows it too, but does not tell a plugin which reads the files for it.
type browserMap struct {
	dir   string          // of the package.json
	empty map[string]bool // by path or name as written; false = another module stands for it
}

// isEmpty looks a path or a name up. esbuild adds extensions and the index of a directory to it.
func (m browserMap) isEmpty(path string) (empty, found bool) {
	index := pathpkg.Join(path, "index")
	if strings.HasPrefix(path, "./") {
		index = "./" + index
	}
	for _, base := range []string{path, index} {
		for _, extension := range impliedExtensions {
			if empty, found = m.empty[base+extension]; found {
				return empty, true
			}
		}
	}
	return false, false
}

// impliedExtensions are what esbuild adds to a path, in its order.
var impliedExtensions = []string{"", ".tsx", ".ts", ".jsx", ".js", ".css", ".json"}

// isEmptyFile reports whether the package of a file says that it is an empty module.
func (l *loading) isEmptyFile(path string) bool {
	m := l.browserMapOf(filepath.Dir(path))
	rel, err := filepath.Rel(m.dir, path)
	if err != nil || m.empty == nil {
		return false
	}
	rel = filepath.ToSlash(rel)
	empty, found := m.isEmpty(rel)
	if !found {
		empty, _ = m.isEmpty("./" + rel)
	}
	return empty
}

// isEmptyPackage reports whether the package of a file in dir says that another one is an empty module for it.
func (l *loading) isEmptyPackage(dir, name string) bool {
	empty, _ := l.browserMapOf(dir).isEmpty(name)
	return empty
}

// browserMapOf is the map of the nearest package.json from dir upwards that has one.
func (l *loading) browserMapOf(dir string) browserMap {
	l.mu.Lock()
	m, known := l.browser[dir]
	l.mu.Unlock()
	if known {
		return m
	}
	text, err := l.readModule(filepath.Join(dir, "package.json"))
	var pkg struct {
		Browser json.RawMessage `json:"browser"`
	}
	var files map[string]any
	if err == nil {
		_ = json.Unmarshal(text, &pkg) // esbuild says what is wrong with it
		_ = json.Unmarshal(pkg.Browser, &files)
	}
	switch {
	case files != nil:
		m = browserMap{dir: dir, empty: map[string]bool{}}
		for name, other := range files {
			m.empty[name] = other == false
		}
	case dir != filepath.Dir(dir):
		m = l.browserMapOf(filepath.Dir(dir))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.browser[dir] = m
	return m
}
