package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

// find lists the sources that paths name. A directory stands for the sources in it.
func (d *dev) find(paths []string) error {
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return usage("%s: no such file or directory", p)
		case err != nil:
			return err
		case info.IsDir():
			if _, one := bundle.NameOf(p, d.roots...); one {
				d.files = append(d.files, p)
			} else {
				d.dirs = append(d.dirs, p)
			}
		case !bundle.IsSource(p):
			return usage("%s: a worker is a .js, .mjs, .ts, .mts, .jsx or .tsx file, or a directory", p)
		default:
			d.files = append(d.files, p)
		}
	}
	sources := d.sources()
	if len(sources) == 0 {
		return usage("%s: no .js or .ts files there", strings.Join(paths, ", "))
	}
	named := map[string]string{}
	for _, p := range sources {
		name, _ := bundle.NameOf(p, d.roots...)
		if other, ok := named[name]; ok {
			return usage("%w", duplicateError(other, p, name))
		}
		named[name] = p
	}
	return nil
}

// duplicate returns an error if another source is the worker with this name too.
func (d *dev) duplicate(source, name string) error {
	for _, other := range d.sources() {
		if other == source {
			continue
		}
		if same, _ := bundle.NameOf(other, d.roots...); same == name {
			return duplicateError(other, source, name)
		}
	}
	return nil
}

func duplicateError(one, other, name string) error {
	return fmt.Errorf("%s and %s are both the worker %s: give one another name, in its manifest or of its file", one, other, name)
}

// sources returns what to deploy now: what was named, and the files in the directories that are not one worker.
func (d *dev) sources() []string {
	list := slices.Clone(d.files)
	for _, dir := range d.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it may be missing while it is being renamed
		}
		for _, e := range entries {
			if p := filepath.Join(dir, e.Name()); e.Type().IsRegular() && mayBeWorker(p) && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// test is the name of a source that is a test, or the configuration of a tool.
var test = regexp.MustCompile(`\.(test|spec|config)\.[^.]+$`)

// Sources with exports of which none can be a handler only help others.
var (
	exports  = regexp.MustCompile(`(?m)^\s*export\b`)
	handlers = regexp.MustCompile(`\bdefault\b|\baddEventListener\b|\bexport\s*\*`)
)

// mayBeWorker reports whether a file of a directory may be a worker. That it has a handler is known when it is loaded.
func mayBeWorker(path string) bool {
	if !bundle.IsSource(path) || test.MatchString(filepath.Base(path)) {
		return false
	}
	text, err := os.ReadFile(path)
	return err != nil || !exports.Match(text) || handlers.Match(text)
}

// unresolved is an import of a bundle that found nothing.
var unresolved = regexp.MustCompile(`^Could not resolve "([^"]+)"`)

// missingFiles are the files whose coming may mend a source that was not bundled: what it imports, and where that was
// written.
func missingFiles(err error) (list []string) {
	var wrong *bundle.SourceError
	if !errors.As(err, &wrong) {
		return nil
	}
	for _, fault := range wrong.Diagnostics {
		file, err := filepath.Abs(fault.File)
		if err != nil || fault.File == "" {
			continue
		}
		list = append(list, file)
		found := unresolved.FindStringSubmatch(fault.Text)
		if found == nil {
			continue
		}
		dir, name := filepath.Dir(file), filepath.FromSlash(found[1])
		if strings.HasPrefix(found[1], ".") {
			at := filepath.Join(dir, name)
			list = append(list, filepath.Join(filepath.Dir(at), bundle.AnyName), filepath.Join(at, bundle.AnyName))
			continue
		}
		for up := dir; ; up = filepath.Dir(up) {
			list = append(list, filepath.Join(up, "node_modules", name, "package.json"))
			if up == filepath.Dir(up) {
				break
			}
		}
	}
	return list
}

// portTaken names the flag for a port that another program has.
func portTaken(err error, httpAddr string) error {
	var taken *net.OpError
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &taken) {
		return err
	}
	flag := "--nats-port"
	if taken.Addr != nil && taken.Addr.String() == httpAddr {
		flag = "--port"
	}
	return fmt.Errorf("%w; %s names another port for dev, and -1 takes a free one", err, flag)
}

// concerns reports whether a change of these files changes the worker of source.
func (d *dev) concerns(source string, changed []string) bool {
	abs, _ := filepath.Abs(source)
	tree := abs + string(filepath.Separator)
	return slices.ContainsFunc(changed, func(c string) bool {
		holds := func(input string) bool { return strings.HasPrefix(input, c+string(filepath.Separator)) }
		return c == abs || slices.ContainsFunc(d.inputs[source], holds) || slices.Contains(d.inputs[source], c) ||
			slices.Contains(d.inputs[source], filepath.Join(filepath.Dir(c), bundle.AnyName)) ||
			strings.HasPrefix(c, tree)
	})
}

// deployAll deploys sources and watches what they import. It deploys again what was saved after it was read and before
// it was watched.
func (d *dev) deployAll(ctx context.Context, sources []string) error {
	for {
		began := time.Now()
		for _, p := range sources {
			d.deploy(ctx, p)
		}
		if err := d.follow(); err != nil {
			return err
		}
		sources = slices.DeleteFunc(sources, func(p string) bool { return !d.savedSince(p, began) })
		if len(sources) == 0 || ctx.Err() != nil {
			return nil
		}
	}
}

// savedSince reports whether a file that the worker of source was made of has changed since then. A time that is still
// to come says nothing.
func (d *dev) savedSince(source string, began time.Time) bool {
	now := time.Now()
	saved := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.ModTime().After(began) && info.ModTime().Before(now)
	}
	return slices.ContainsFunc(d.inputs[source], func(path string) bool {
		dir, name := filepath.Split(path)
		if name != bundle.AnyName {
			return saved(path)
		}
		files, _ := os.ReadDir(dir) // what is gone now changed the directory
		return saved(dir) ||
			slices.ContainsFunc(files, func(f fs.DirEntry) bool { return saved(filepath.Join(dir, f.Name())) })
	})
}

// follow watches the sources and what they import.
func (d *dev) follow() error {
	files, dirs := slices.Clone(d.files), slices.Clone(d.dirs)
	for _, inputs := range maps.All(d.inputs) {
		files = append(files, inputs...)
	}
	for _, p := range d.files { // what a directory imports is unknown until it was built once
		if isDir(p) {
			files = append(files, bundle.ManifestsOf(p)...)
			dirs = append(dirs, p)
			if src := filepath.Join(p, "src"); isDir(src) {
				dirs = append(dirs, src)
			}
		}
	}
	return d.watch.Set(files, dirs)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
