package bundle

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Conditions of the exports of packages. The files for other worker runtimes fit best. Some of those for workerd
// presume what Cloudflare's runtime has of Node.
var (
	conditions    = []string{conditionWorkerd, "worker", "browser"}
	webConditions = conditions[1:]
)

const conditionWorkerd = "workerd"

// webFiles are packages of which the files for the conditions worker and browser are bundled, because those for workerd
// presume what a worker does not have.
type webFiles struct {
	packages []webPackage
}

type webPackage struct {
	packageDir
	wants string // the first module that is not there
}

// packageDir is a directory with a package.json that has a name.
type packageDir struct{ dir, name string }

// maxWebPackages bounds how often one bundle is built.
const maxWebPackages = 10

// add adds the package that has led to the first of esbuild's errors about a module of another runtime: the nearest on
// the way from the source that has files for workerd. It reports whether there is one more.
func (w *webFiles) add(ctx context.Context, p *project, e entry, errs []api.Message) bool {
	var found map[string]importer
	for _, m := range errs {
		wants, ok := missingModule(m)
		path := fileOf(e.abs, m)
		if !ok || path == "" || len(w.packages) == maxWebPackages {
			continue
		}
		if found == nil {
			found = importers(ctx, p, e, w)
		}
		for range len(found) + 1 {
			pkg, forWorkerd := p.packageOf(path)
			if forWorkerd && !w.has(pkg) {
				w.packages = append(w.packages, webPackage{pkg, wants})
				return true
			}
			by, known := found[path]
			if !known {
				break
			}
			path = by.path
		}
	}
	return false
}

func (w *webFiles) has(pkg packageDir) bool {
	return slices.ContainsFunc(w.packages, func(one webPackage) bool { return one.dir == pkg.dir })
}

// mayMean reports whether an import in dir may lead to one of the packages.
func (w *webFiles) mayMean(p *project, path, dir string) bool {
	if strings.HasPrefix(path, "#") {
		pkg, _ := p.packageOf(filepath.Join(dir, "x"))
		return w.has(pkg)
	}
	name := packageName(path)
	return slices.ContainsFunc(w.packages, func(one webPackage) bool { return one.name == name })
}

// notes say which files were taken.
func (w *webFiles) notes(file string) (notes []Diagnostic) {
	for _, pkg := range w.packages {
		text := fmt.Sprintf("package %s: its files for %s are bundled, because those for %s import %q, which a worker does "+
			"not have", pkg.name, strings.Join(webConditions, " and "), conditionWorkerd, pkg.wants)
		notes = append(notes, Diagnostic{File: file, Text: text})
	}
	return notes
}

// plugin resolves imports of these packages by the other conditions. o are the options of the build that it is for.
// done must be called after the build.
func (w *webFiles) plugin(p *project, o api.BuildOptions) (plugin api.Plugin, done func()) {
	var other func(string, api.ResolveOptions) api.ResolveResult
	o.Conditions = webConditions
	o.Plugins = []api.Plugin{{Name: "pinwheel resolver", Setup: func(b api.PluginBuild) { other = b.Resolve }}}
	resolver, err := api.Context(o) // it builds nothing
	if err != nil {
		return api.Plugin{Name: "none", Setup: func(api.PluginBuild) {}}, func() {} // the build has the same fault
	}
	resolve := func(a api.OnResolveArgs) (r api.OnResolveResult, err error) {
		if a.ResolveDir == "" || !isPackagePath(a.Path) || !w.mayMean(p, a.Path, a.ResolveDir) {
			return r, nil
		}
		to := other(a.Path, api.ResolveOptions{
			Importer: a.Importer, Namespace: a.Namespace, ResolveDir: a.ResolveDir, Kind: a.Kind, With: a.With,
		})
		pkg, _ := p.packageOf(to.Path)
		if len(to.Errors) > 0 || to.Namespace != "file" || !w.has(pkg) {
			return r, nil
		}
		r.Path, r.Suffix = to.Path, to.Suffix
		if !to.SideEffects {
			r.SideEffects = api.SideEffectsFalse
		}
		return r, nil
	}
	return api.Plugin{Name: "pinwheel web files", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `.`}, resolve)
	}}, resolver.Dispose
}

// packageOf is the package of a file, and whether its package.json has files for workerd.
func (p *project) packageOf(path string) (pkg packageDir, forWorkerd bool) {
	for d := filepath.Dir(path); d != filepath.Dir(d); d = filepath.Dir(d) {
		text, err := p.read(filepath.Join(d, "package.json"), maxConfig)
		if err != nil {
			continue
		}
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(text, &named) == nil && named.Name != "" {
			return packageDir{d, named.Name}, slices.Contains(stringsOf(text), conditionWorkerd)
		}
	}
	return packageDir{}, false
}

// fileOf is the path of the file that a message of esbuild is about; "" = none. abs is the source.
func fileOf(abs string, m api.Message) string {
	if m.Location == nil || m.Location.Namespace != "" && m.Location.Namespace != "file" {
		return ""
	}
	path := filepath.FromSlash(m.Location.File)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(abs), path)
	}
	if strings.Contains(path, "\x00") {
		return ""
	}
	return path
}

// missingModule is the module of Node or of another runtime that an error of esbuild is about.
func missingModule(m api.Message) (name string, ok bool) {
	notes := make([]string, len(m.Notes))
	for i, n := range m.Notes {
		notes[i] = n.Text
	}
	if name, ok := nodeModule(m.Text, notes); ok {
		return "node:" + name, true
	}
	if scheme, name, ok := platformModule(m.Text); ok {
		return scheme + ":" + name, true
	}
	return "", false
}
