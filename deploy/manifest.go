package deploy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events"
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
	routes   *routeFiles        // files with routes; nil = none
	inputs   []string           // absolute paths of the files that may be the manifest, also of those that do not exist
}

// ofFile is a source with the manifest next to it. Without one there is no error. With an error, all but the manifest is
// valid.
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
func (l layout) spec(comments manifest.Comments) (events.Spec, error) {
	if l.manifest == nil {
		return comments.Spec, nil
	}
	spec, key, err := comments.With(l.manifest.Spec)
	if err != nil {
		return spec, l.manifest.Fault(key, "%v in %s: say it once", err, l.source)
	}
	return spec, l.manifest.Check(spec)
}

// notes name the keys that make no difference here.
func (l layout) notes() []Diagnostic {
	if l.manifest == nil || len(l.manifest.Ignored) == 0 {
		return nil
	}
	return []Diagnostic{{File: l.file, Text: "these keys make no difference here: " + strings.Join(l.manifest.Ignored, ", ")}}
}

// ParseManifest reads a manifest file and validates it. Unknown keys, doubled keys, wrong types and values out of
// bounds are refused. ${NAME} in vars stays. The error is a *SourceError with file:line:column and what is allowed.
func ParseManifest(file string, text []byte) (events.Spec, error) {
	m, err := manifest.Parse(manifest.JSON, file, text, nil)
	if err == nil {
		err = m.Check(m.Spec)
	}
	if err != nil {
		return events.Spec{}, err
	}
	return m.Spec, nil
}

// validate checks all of a specification. The error begins with the path of the field that is wrong.
func validate(spec events.Spec) error { return manifest.Validate(spec) }
