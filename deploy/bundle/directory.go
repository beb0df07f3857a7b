package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	pathpkg "path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pinwheel-run/pinwheel/deploy/fileroutes"
	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// directoryManifests are the files that may be the manifest of a directory. A package.json is one if it has the key
// pinwheel.
var directoryManifests = []struct {
	file   string
	format manifest.Format
}{
	{"pinwheel.json", manifest.JSON}, {"pinwheel.jsonc", manifest.JSON}, {"pinwheel.yaml", manifest.YAML},
	{"manifest.yaml", manifest.Buntime},
	{"wrangler.jsonc", manifest.WranglerJSON}, {"wrangler.json", manifest.WranglerJSON},
	{"wrangler.toml", manifest.WranglerTOML},
	{"package.json", manifest.Package},
}

// misnamed are files whose author surely means them to be the manifest.
var misnamed = map[string]string{"pinwheel.yml": "pinwheel.yaml", "pinwheel.toml": "pinwheel.json or pinwheel.yaml"}

// defaultEntries are where the source of a directory is, if its manifest does not say.
var defaultEntries = []string{"index.ts", "index.js", "src/index.ts", "src/index.js"}

// ManifestsOf are the paths of the files that may be the manifest of the directory, also of those that do not exist.
func ManifestsOf(dir string) []string {
	paths := make([]string, len(directoryManifests), len(directoryManifests)+1)
	for i, m := range directoryManifests {
		paths[i] = filepath.Join(dir, m.file)
	}
	return append(paths, filepath.Join(dir, filepath.FromSlash(builtFile)))
}

// NameOf is the name of the worker that path is, and whether path is one worker: a source, or a directory with a
// manifest. A manifest with faults gives no name: the name is then that of the file or directory. Other directories may
// have a worker in each file.
func NameOf(path string, roots ...string) (name string, one bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() {
		p, err := openProject(abs, roots)
		if err != nil {
			return baseName(path), true
		}
		l, _ := p.ofFile(path)
		return l.name, true
	}
	p, err := openProject(filepath.Join(abs, "index.js"), roots)
	if err != nil {
		return filepath.Base(abs), false
	}
	l, err := p.findManifest(path)
	return cmp.Or(l.name, filepath.Base(abs)), err != nil || l.manifest != nil
}

// InstallsPackages reports whether the manifest of a directory says that a deploy installs its packages first.
func InstallsPackages(dir string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	p, err := openProject(filepath.Join(abs, "index.js"), nil)
	if err != nil {
		return false
	}
	l, err := p.findManifest(dir) // Build says what is wrong
	return err == nil && l.manifest != nil && l.manifest.AutoInstall
}

// ofDirectory finds the manifest and the source of a directory.
func (p *project) ofDirectory(dir string) (layout, error) {
	l, err := p.findManifest(dir)
	if err != nil {
		return l, err
	}
	abs, err := realDir(dir)
	if err != nil {
		return l, err
	}
	l.name = cmp.Or(l.name, filepath.Base(abs))
	if l.routes, err = l.routeFiles(p, abs); err != nil {
		return l, err
	}
	if l.source, err = l.entry(dir, abs); err != nil {
		return l, err
	}
	if l.source == "" {
		return l, nil
	}
	// The manifest of a single file counts here too, but not beside another one.
	own, err := p.ofFile(l.source)
	switch {
	case err != nil:
		return l, err
	case own.manifest != nil && l.manifest != nil:
		return l, twoManifests(l.file, own.file)
	case own.manifest != nil:
		l.manifest, l.file, l.name = own.manifest, own.file, cmp.Or(own.manifest.Name, l.name)
	}
	l.inputs = append(l.inputs, own.inputs...)
	return l, nil
}

func twoManifests(one, other string) error {
	return &SourceError{Diagnostics: []Diagnostic{{File: other, Text: fmt.Sprintf("there are two manifests, this one and %s: keep one",
		one)}}}
}

// findManifest reads the manifest of a directory, if there is one.
func (p *project) findManifest(dir string) (l layout, err error) {
	for _, path := range ManifestsOf(dir) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return l, err
		}
		l.inputs = append(l.inputs, abs)
	}
	for wrong, right := range misnamed {
		if path := filepath.Join(dir, wrong); exists(path) {
			return l, &SourceError{Diagnostics: []Diagnostic{{File: path, Text: "a manifest has another name: " + right}}}
		}
	}
	built, err := p.builtManifest(dir)
	if err != nil {
		return l, err
	}
	for _, c := range directoryManifests {
		path := filepath.Join(dir, c.file)
		wranglers := c.format == manifest.WranglerJSON || c.format == manifest.WranglerTOML
		if !exists(path) || wranglers && built != "" {
			continue
		}
		m, err := p.manifest(c.format, path)
		var refused *refusalOfFile
		switch {
		case l.file != "" && (m != nil || c.format != manifest.Package):
			return l, twoManifests(l.file, path)
		case errors.As(err, &refused):
			return l, &SourceError{Diagnostics: []Diagnostic{{File: path, Text: "the manifest cannot be read: " + refused.why}}}
		case err != nil:
			return l, err
		case m != nil:
			l.manifest, l.file, l.name = m, path, m.Name
		}
	}
	if built != "" && l.manifest == nil {
		return p.fromBuilt(l, dir, built)
	}
	return l, nil
}

// exists reports whether there is something at path, be it a link that leads nowhere.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// entry is the path of the source. dir is the directory as the author named it, and real without links.
func (l layout) entry(dir, real string) (string, error) {
	if l.manifest != nil && l.manifest.Main != "" {
		main := l.manifest.Main
		if why := wrongMain(real, main); why != "" {
			return "", l.manifest.Fault("main", "main is %.200q: %s", main, why)
		}
		return filepath.Join(dir, filepath.FromSlash(pathpkg.Clean(main))), nil
	}
	if l.routes != nil {
		return "", nil
	}
	if l.manifest != nil && l.manifest.Page != "" {
		return "", nil
	}
	for _, main := range defaultEntries {
		if l.base != "" || !exists(filepath.Join(real, filepath.FromSlash(main))) {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(main))
		if why := wrongMain(real, main); why != "" {
			return "",
				&SourceError{Diagnostics: []Diagnostic{{File: path, Text: "it is the source of the directory, and " + why}}}
		}
		return path, nil
	}
	if l.manifest != nil && l.manifest.FindsPage && exists(filepath.Join(real, pageName)) {
		l.manifest.ServePage(pageName)
	}
	if l.manifest != nil && l.manifest.Assets != nil {
		return "", nil // files alone
	}
	why := "no manifest names the source, and there is none of " + strings.Join(defaultEntries, ", ")
	if exists(filepath.Join(real, pageName)) {
		why += `. index.html is no source: "assets": {"directory": "."} in a manifest serves the files of the directory`
	}
	return "", &SourceError{Diagnostics: []Diagnostic{{File: dir, Text: why}}}
}

// routeFiles are the files of a directory that have routes.
type routeFiles struct {
	*fileroutes.Tree
	words    []Diagnostic        // comments with a word that means nothing
	comments []manifest.Comments // of the files with routes
	around   []manifest.Comments // of pre and post
	said     manifest.Comments   // what they say together
	dir      string              // as the author would name it
	rel      string              // of dir from the directory of the manifest
	real     string              // absolute
}

// routeFiles reads the directory that the manifest names; nil = it names none. base is the directory of the manifest,
// without links.
func (l layout) routeFiles(p *project, base string) (*routeFiles, error) {
	if l.manifest == nil || l.manifest.FileRoutes == "" {
		return nil, nil
	}
	given := l.manifest.FileRoutes
	if why := wrongDirectory(base, given); why != "" {
		return nil, l.manifest.Fault("fileRoutes", "fileRoutes is %.200q: %s", given, why)
	}
	f := &routeFiles{rel: pathpkg.Clean(given)}
	f.dir, f.real = filepath.Join(filepath.Dir(l.file), filepath.FromSlash(f.rel)), filepath.Join(base,
		filepath.FromSlash(f.rel))
	root, err := os.OpenRoot(f.real)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f.Tree, err = fileroutes.Read(root.FS(), IsSource, func(path string) (bool, error) { return f.isOff(p, path) })
	var fault *fileroutes.Error
	if errors.As(err, &fault) {
		return nil, &SourceError{Diagnostics: []Diagnostic{{File: filepath.Join(f.dir, fault.File), Text: fault.Text}}}
	}
	return f, err
}

// isOff reports whether the comments of a file say that it has no route, and keeps what they say otherwise.
func (f *routeFiles) isOff(p *project, path string) (bool, error) {
	source, err := p.read(filepath.Join(f.real, filepath.FromSlash(path)), maxSource)
	if err != nil {
		return false, nil //nolint:nilerr // the bundler says why, and where it is imported
	}
	c, err := manifest.ParseComments(filepath.Join(f.dir, filepath.FromSlash(path)), source)
	if err != nil {
		return false, err
	}
	if room := maxRouteWarnings - len(f.words); room > 0 {
		f.words = append(f.words, c.Warnings[:min(room, len(c.Warnings))]...)
	}
	switch {
	case !c.Spec.HTTP.On():
		return true, nil
	case fileroutes.IsAround(path):
		f.around = append(f.around, c)
	default:
		f.comments = append(f.comments, c)
	}
	return false, nil
}

// spec adds what the comments of the files say of the worker.
func (f *routeFiles) spec(l layout, spec workers.Spec) (workers.Spec, error) {
	for _, c := range slices.Concat(f.comments, f.around) {
		if _, key, err := c.With(spec); err != nil {
			return spec, l.manifest.Fault(key, "%v in %s: say it once", err, c.File())
		}
	}
	var err error
	if f.said, err = manifest.Together(spec, f.comments, f.around); err != nil {
		return spec, err
	}
	spec, _, err = f.said.With(spec)
	return spec, err
}

// maxRouteWarnings is the most warnings about comments in files with routes.
const maxRouteWarnings = 10

// inputs are the absolute paths of the directories, each with AnyName behind it: a new file there is a new route. Files
// that are left out are among them.
func (f *routeFiles) inputs() (list []string) {
	for _, path := range f.Off {
		list = append(list, filepath.Join(f.real, filepath.FromSlash(path)))
	}
	for _, dir := range f.Dirs {
		list = append(list, filepath.Join(f.real, filepath.FromSlash(dir), AnyName))
	}
	return list
}

// entryOf is what is bundled: the source, or a module that is made of the files with routes and the source.
func (l layout) entryOf() (e entry, err error) {
	e.files, e.scripts = alwaysImported, l.scripts()
	if l.manifest != nil {
		e.files, e.node = e.files.with(l.manifest.Files), l.manifest.Node
	}
	if l.routes == nil {
		e.path = l.source
		e.abs, err = filepath.Abs(l.source)
		return e, err
	}
	e.path = filepath.Join(filepath.Dir(l.file), "routes.js")
	if e.abs, err = filepath.Abs(e.path); err != nil {
		return e, err
	}
	main := ""
	if l.source != "" {
		if main, err = filepath.Rel(filepath.Dir(l.file), l.source); err != nil {
			return e, err
		}
	}
	e.text = l.routes.Entry(l.routes.rel, filepath.ToSlash(main))
	return e, nil
}

const noFiles = `it is a page: "assets" names the directory of pages and other files`

var driveLetter = regexp.MustCompile(`^[A-Za-z]:`)

// wrongPath says why path does not lead from a directory to something in it; "" = it does, as far as its text says.
func wrongPath(path string) string {
	clean := pathpkg.Clean(path)
	switch {
	case strings.ContainsFunc(path, unicode.IsControl) || len(path) > 1024:
		return "it is a path without control characters, at most 1024 bytes long"
	case strings.Contains(path, `\`):
		return `directories are separated by /, not by \`
	case pathpkg.IsAbs(path) || driveLetter.MatchString(path):
		return "it is a path from the directory of the manifest, not an absolute one"
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return "it leads out of the directory"
	}
	return ""
}

// wrongMain says why main is not the path of a source in the directory dir, which is without links; "" = it is.
func wrongMain(dir, main string) string {
	clean := pathpkg.Clean(main)
	switch {
	case wrongPath(main) != "":
		return wrongPath(main)
	case strings.EqualFold(pathpkg.Ext(main), ".html"):
		return noFiles
	case !IsSource(main):
		return "a source ends in one of " + strings.Join(extensions, " ")
	}
	real, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(clean)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file; if a build makes it, run that first"
	case err != nil:
		return "it cannot be read"
	case !within(dir, real):
		return "a link on it leads out of the directory"
	}
	info, err := os.Stat(real)
	if err == nil && !info.Mode().IsRegular() {
		return notRegular(info).Error()
	}
	return ""
}
