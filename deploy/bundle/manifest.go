package bundle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	pathpkg "path"
	"path/filepath"
	"strings"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// ManifestSuffix follows the source's base name in the manifest's file name.
const ManifestSuffix = ".pinwheel.json"

func manifestPath(source string) string {
	return filepath.Join(filepath.Dir(source), baseName(source)+ManifestSuffix)
}

// layout is what a path that is deployed names: a source, and the manifest that says how it runs.
type layout struct {
	source   string             // as the author would name it
	name     string             // of the worker
	manifest *manifest.Manifest // nil = there is none
	file     string             // of the manifest
	base     string             // directory from which the paths of a manifest lead that a build has made; "" = that of file
	routes   *routeFiles        // files with routes; nil = none
	inputs   []string           // absolute paths of the files that may be the manifest, also of those that do not exist
}

// ofFile is a source with the manifest next to it. Without one there is no error. With an error, all but the manifest
// is valid.
func (p *project) ofFile(path string) (layout, error) {
	l := layout{source: path, name: baseName(path), file: manifestPath(path)}
	abs, err := filepath.Abs(l.file)
	if err != nil {
		return l, err
	}
	l.inputs = []string{abs}
	if l.manifest, err = p.manifest(manifest.JSON, l.file); errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil || l.manifest == nil {
		return l, err
	}
	l.name = cmp.Or(l.manifest.Name, l.name)
	for _, of := range []struct{ field, value string }{{"main", l.manifest.Main}, {"fileRoutes", l.manifest.FileRoutes}} {
		if of.value != "" {
			return l, l.manifest.Fault(of.field, "%s is for the manifest of a directory: this one is of %s", of.field, path)
		}
	}
	return l, nil
}

// manifest reads a manifest. It is nil for a package.json without one.
func (p *project) manifest(format manifest.Format, path string) (*manifest.Manifest, error) {
	most := int64(manifest.MaxBytes)
	if format == manifest.Package {
		most = maxConfig
	}
	text, err := p.read(path, most)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", path, err)
	}
	return manifest.Parse(format, path, text, p.environment)
}

// builtFile is where the build of a framework says where it has put its configuration of wrangler. Cloudflare's plugin
// for Vite writes it, and wrangler reads that configuration instead of the author's.
const builtFile = ".wrangler/deploy/config.json"

// builtManifest is the path of the configuration that a build has left, from the directory; "" = there is none.
func (p *project) builtManifest(dir string) (string, error) {
	file := filepath.Join(dir, filepath.FromSlash(builtFile))
	if !exists(file) {
		return "", nil
	}
	fault := func(format string, args ...any) error {
		return &SourceError{Diagnostics: []Diagnostic{{File: file, Text: fmt.Sprintf(format, args...)}}}
	}
	text, err := p.read(file, maxConfig)
	if err != nil {
		return "", fault("it cannot be read: %v", err)
	}
	var built struct {
		Path string `json:"configPath"`
	}
	if err = json.Unmarshal(text, &built); err != nil || built.Path == "" {
		return "", fault("it is a JSON object whose configPath is the path of the configuration that a build has made")
	}
	path := pathpkg.Join(pathpkg.Dir(builtFile), built.Path)
	if why := wrongPath(path); why != "" || pathpkg.IsAbs(built.Path) {
		return "", fault("configPath is %.200q: it does not lead to a file in the directory %s", built.Path, dir)
	}
	if pathpkg.Ext(path) != ".json" {
		return "", fault("configPath is %.200q: a configuration that a build has made ends in .json", built.Path)
	}
	return path, nil
}

// fromBuilt reads the configuration that a build has left at path, from the directory. Its paths lead from its own
// directory; here they lead from the directory of the project, because the files for browsers are beside those for the
// server.
func (p *project) fromBuilt(l layout, dir, path string) (layout, error) {
	l.file, l.base = filepath.Join(dir, filepath.FromSlash(path)), dir
	abs, err := filepath.Abs(l.file)
	if err != nil {
		return l, err
	}
	l.inputs = append(l.inputs, abs)
	m, err := p.manifest(manifest.WranglerJSON, l.file)
	var refused *refusalOfFile
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text := fmt.Sprintf("configPath leads to %s, and there is no such file: run the build again", l.file)
		return l,
			&SourceError{Diagnostics: []Diagnostic{{File: filepath.Join(dir, filepath.FromSlash(builtFile)), Text: text}}}
	case errors.As(err, &refused):
		return l, &SourceError{Diagnostics: []Diagnostic{{File: l.file, Text: "the manifest cannot be read: " + refused.why}}}
	case err != nil:
		return l, err
	}
	from := pathpkg.Dir(path)
	if m.Main != "" {
		m.Main = pathpkg.Join(from, m.Main)
	}
	if m.Assets != nil && m.Assets.Directory != "" {
		m.Assets.Directory = pathpkg.Join(from, m.Assets.Directory)
	}
	l.manifest, l.name = m, m.Name
	return l, nil
}

// environment is where ${NAME} comes from. The author of a manifest chooses the name. So there is no environment for a
// project of others, which is deployed with roots.
func (p *project) environment(name string) (string, error) {
	if p.rooted {
		return "", errors.New("the environment is not read with --root: --var NAME=VALUE sets a var")
	}
	value, ok := os.LookupEnv(name)
	if !ok {
		return "", fmt.Errorf("the environment of this command has no variable %s", name)
	}
	return value, nil
}

// spec is what manifest and comments say together.
func (l layout) spec(comments manifest.Comments) (workers.Spec, error) {
	if l.manifest == nil {
		return comments.Spec, comments.Check(comments.Spec)
	}
	spec, key, err := comments.With(l.manifest.Spec)
	if err != nil {
		return spec, l.manifest.Fault(key, "%v in %s: say it once", err, l.source)
	}
	var socketErr error
	if l.routes != nil {
		if spec, err = l.routes.spec(l, spec); err != nil {
			return spec, err
		}
		socketErr = l.routes.said.Check(spec)
	}
	spec = l.manifest.WithPublic(spec)
	return spec, joinSourceErrors(l.manifest.Check(spec), comments.Check(spec), socketErr)
}

// risks warn of what works as it is written, and lets in whom the author may not think of.
func (l layout) risks(spec workers.Spec, comments manifest.Comments) []Diagnostic {
	if spec.HTTP == nil || spec.HTTP.CORS == nil || !spec.HTTP.CORS.Credentials ||
		spec.HTTP.CORS.Origins[0] != workers.OriginReflective {
		return nil
	}
	const risk = "pages of every site may send requests with the cookies of who looks at them, and read the answers: " +
		"name the origins in http.cors.origins, or leave out credentials"
	if l.manifest != nil && l.manifest.HTTP != nil && l.manifest.HTTP.CORS != nil {
		return l.manifest.Fault("http.cors", risk).Diagnostics
	}
	if l.routes != nil && comments.Spec.HTTP == nil {
		comments = l.routes.said
	}
	return comments.Fault("cors", risk).Diagnostics
}

// notes name the keys that make no difference here, and say what others mean.
func (l layout) notes() (list []Diagnostic) {
	switch {
	case l.base != "":
		return []Diagnostic{{File: l.file, Text: "this is the configuration, as the build has written into " + builtFile}}
	case l.manifest == nil:
		return nil
	case len(l.manifest.Ignored) > 0:
		text := "these keys make no difference here: " + strings.Join(l.manifest.Ignored, ", ")
		list = append(list, Diagnostic{File: l.file, Text: text})
	}
	for _, text := range l.manifest.Notes {
		list = append(list, Diagnostic{File: l.file, Text: text})
	}
	return list
}

// ParseManifest reads a manifest file and validates it. Unknown keys, doubled keys, wrong types and values out of
// bounds are refused. ${NAME} in vars stays. The error is a *SourceError with file:line:column and what is allowed.
func ParseManifest(file string, text []byte) (workers.Spec, error) {
	m, err := manifest.Parse(manifest.JSON, file, text, nil)
	if err == nil {
		err = m.Check(m.Spec)
	}
	if err != nil {
		return workers.Spec{}, err
	}
	return m.Spec, nil
}
