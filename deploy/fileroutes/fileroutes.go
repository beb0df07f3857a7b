// Package fileroutes makes the entry point of a worker whose routes are files: api/users/[id].ts answers /users/:id.
package fileroutes

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	pathpkg "path"
	"regexp"
	"slices"
	"strings"
)

//go:embed compose.js
var compose string

// MaxFiles is the most files with routes.
const MaxFiles = 2000

// Error is a fault of a file.
type Error struct {
	File string // path from the directory
	Text string
}

// Error is the fault with its file.
func (e *Error) Error() string { return e.File + ": " + e.Text }

// Tree is a directory of files with routes.
type Tree struct {
	Files []string // paths of all modules, those of pre and post too
	Dirs  []string // paths of the directories, "." included
	Off   []string // paths of modules that are left out
	Notes []string // what is no route, and why

	routes map[string]string // path → file
	pre    map[string]string // directory → file
	post   map[string]string
}

// Read finds the routes of a directory. isSource says which files are modules, and isOff which of them are left out.
// The error is an *Error when the author must correct something, or that of isOff.
func Read(dir fs.FS, isSource func(path string) bool, isOff func(path string) (bool, error)) (*Tree, error) {
	t := &Tree{routes: map[string]string{}, pre: map[string]string{}, post: map[string]string{}}
	err := fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return &Error{path, "it cannot be read"}
		case path != "." && (name[0] == '.' || name[0] == '_' || name == "node_modules"):
			t.note(path + " has no route: its name begins with . or _, or it is node_modules")
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			t.Dirs = append(t.Dirs, path)
			return nil
		case !isSource(path):
			t.note(path + " has no route: it is no source")
			return nil
		}
		off, err := isOff(path)
		switch {
		case err != nil:
			return err
		case off && len(t.Off) == MaxFiles:
			return &Error{".", fmt.Sprintf("it has more than %d sources that are left out", MaxFiles)}
		case off:
			t.Off = append(t.Off, path)
			t.note(path + " is left out: // @enabled false")
			return nil
		}
		return t.add(path)
	})
	if err != nil {
		return nil, err
	}
	if len(t.routes) == 0 {
		return nil, &Error{".", "it has no file with a route"}
	}
	return t, nil
}

// maxNotes is the most Notes: a directory may have any number of files.
const maxNotes = 10

func (t *Tree) note(text string) {
	if len(t.Notes) < maxNotes {
		t.Notes = append(t.Notes, text)
	}
}

// IsAround reports whether a file is pre or post: it has no route, and stands around those beside it.
func IsAround(path string) bool { return nameOf(path) == before || nameOf(path) == after }

const before, after = "pre", "post"

// nameOf is the name of a file without its extension.
func nameOf(path string) string { return strings.TrimSuffix(pathpkg.Base(path), pathpkg.Ext(path)) }

func (t *Tree) add(path string) error {
	if len(t.Files) == MaxFiles {
		return &Error{".", fmt.Sprintf("it has more than %d sources", MaxFiles)}
	}
	t.Files = append(t.Files, path)
	place := t.routes
	key, err := routeOf(strings.TrimSuffix(path, pathpkg.Ext(path)))
	switch nameOf(path) {
	case before:
		place, key, err = t.pre, pathpkg.Dir(path), nil
	case after:
		place, key, err = t.post, pathpkg.Dir(path), nil
	}
	if err != nil {
		return &Error{path, err.Error()}
	}
	if other := place[key]; other != "" {
		return &Error{path, fmt.Sprintf("%s is the same: keep one of them", other)}
	}
	place[key] = path
	return nil
}

var (
	parameter = regexp.MustCompile(`^\[[A-Za-z_][A-Za-z0-9_]*\]$`)
	rest      = regexp.MustCompile(`^\[\.\.\.[A-Za-z_][A-Za-z0-9_]*\]$`)
)

// routeOf is the path that a file answers. file has no extension.
func routeOf(file string) (string, error) {
	segments := strings.Split(file, "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case parameter.MatchString(s):
			segments[i] = ":" + s[1:len(s)-1]
		case rest.MatchString(s) && last:
			segments[i] = ":" + s[4:len(s)-1] + "+"
		case rest.MatchString(s):
			return "", fmt.Errorf("%s is the name of a file, at the end of the path", s)
		case strings.ContainsAny(s, `[]:*?#%\`) ||
			strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }):
			return "", fmt.Errorf("the name %.100q is none of a route: it is NAME, [PARAMETER] or [...PARAMETER], and has none of : * ? # %%", s)
		}
	}
	if segments[len(segments)-1] == "index" {
		segments = segments[:len(segments)-1]
	}
	return "/" + strings.Join(segments, "/"), nil
}

// Entry is the source of the worker's module. dir is the path of the directory from that of the module, and main that
// of the source with other handlers; "" = there is none.
func (t *Tree) Entry(dir, main string) string {
	var b strings.Builder
	names := map[string]string{}
	name := func(file string) string {
		if file == "" {
			return "null"
		}
		if names[file] == "" {
			names[file] = fmt.Sprint("module", len(names))
			fmt.Fprintf(&b, "import * as %s from %s;\n", names[file], quoted("./"+pathpkg.Join(dir, file)))
		}
		return names[file]
	}
	exported := "undefined"
	if main != "" {
		fmt.Fprintf(&b, "import * as source from %s;\n", quoted("./"+main))
		exported = "source.default"
	}
	paths := make([]string, 0, len(t.routes))
	for path := range t.routes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var list strings.Builder
	for _, path := range paths {
		file := t.routes[path]
		at := pathpkg.Dir(file)
		fmt.Fprintf(&list, "  [%s, %s, %s, %s, %s],\n", quoted(path), quoted(pathpkg.Join(dir, file)), name(file),
			name(t.pre[at]), name(t.post[at]))
	}
	return b.String() + compose + "export default around(" + exported + ", compose([\n" + list.String() + "]));\n"
}

// quoted is a string literal of JavaScript.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a form
	}
	return string(b)
}
