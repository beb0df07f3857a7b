package assets

import (
	pathpkg "path"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Found is what is at a path. One of the two is set.
type Found struct {
	File     string // its path in the list
	Redirect string // the path where the page is, not escaped
}

// Find returns what is at a path. ok is false if there is nothing.
//
// A page is at one path only, which how says. Other paths of it lead there. That path is made of the name of the file,
// so it never leads to another host.
func (l *List) Find(at workers.Path, how workers.HTMLHandling) (f Found, ok bool) {
	path, ok := at.File()
	if !ok {
		return Found{}, false
	}
	if l.has(path) && (how == workers.HTMLNone || !isPage(path)) {
		return Found{File: path}, true
	}
	if how == workers.HTMLNone {
		return Found{}, false
	}
	page := l.page(path)
	if page == "" {
		return Found{}, false
	}
	// Two pages may want one path. One of them is there, and nobody is sent around in circles.
	if at := pathOf(page, how); at != path && l.page(at) != "" && pathOf(l.page(at), how) == at {
		return Found{Redirect: at}, true
	}
	return Found{File: page}, true
}

// At returns the file that a path means, in whatever way it is written; "" = none.
func (l *List) At(at workers.Path) string {
	path, ok := at.File()
	if !ok || l.has(path) {
		return path
	}
	return l.page(path)
}

// Addresses are the paths that mean a file. What guards one of them guards the file.
func Addresses(file string) []workers.Path {
	texts := []string{file}
	if base, ok := strings.CutSuffix(file, dotHTML); ok {
		texts = append(texts, base, base+"/")
		if dir, ok := strings.CutSuffix(file, index); ok {
			texts = append(texts, dir+"/")
			if dir != "" {
				texts = append(texts, dir, dir+dotHTML)
			}
		}
	}
	paths := make([]workers.Path, len(texts))
	for i, text := range texts {
		paths[i] = workers.PathOfFile(text)
	}
	return paths
}

// has reports whether there is a file at exactly that path.
func (l *List) has(path string) bool {
	_, ok := l.Files[path]
	return ok
}

// NotFound returns the page that answers where there is no file; "" = none.
func (l *List) NotFound(at workers.Path, how workers.NotFound) string {
	path, ok := at.File()
	if !ok || len(path) > MaxPath {
		path = "/"
	}
	switch how {
	case workers.NotFoundSPA:
		if l.has(index) {
			return index
		}
	case workers.NotFoundPage:
		for dir := path; ; {
			if dir = pathpkg.Dir(dir); l.has(pathpkg.Join(dir, "404.html")) {
				return pathpkg.Join(dir, "404.html")
			}
			if dir == "/" || dir == "." {
				return ""
			}
		}
	case workers.NotFoundNone:
	}
	return ""
}

const (
	index   = "/index.html"
	dotHTML = ".html"
)

func isPage(path string) bool { return strings.HasSuffix(path, dotHTML) }

// page is the page that a path means, in any of the ways to write it; "" = none.
func (l *List) page(path string) string {
	for _, candidate := range candidates(path) {
		if isPage(candidate) && l.has(candidate) {
			return candidate
		}
	}
	return ""
}

func candidates(path string) []string {
	dir, slash := strings.CutSuffix(path, "/")
	switch {
	case path == "" || strings.HasSuffix(path, "//"):
		return nil
	case slash:
		return []string{dir + index, dir + dotHTML}
	case isPage(path):
		base := strings.TrimSuffix(path, dotHTML)
		return []string{path, base + index, strings.TrimSuffix(base, "/index") + dotHTML}
	case strings.HasSuffix(path, "/index"):
		return []string{path + dotHTML, path + index, strings.TrimSuffix(path, "/index") + dotHTML}
	}
	return []string{path + dotHTML, path + index}
}

// pathOf is the path of a page.
func pathOf(page string, how workers.HTMLHandling) string {
	dir, isIndex := strings.CutSuffix(page, index)
	switch {
	case isIndex && (dir == "" || how != workers.HTMLDrop):
		return dir + "/"
	case isIndex:
		return dir
	case how == workers.HTMLForce:
		return strings.TrimSuffix(page, dotHTML) + "/"
	}
	return strings.TrimSuffix(page, dotHTML)
}
