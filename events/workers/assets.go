package workers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
)

// Assets says which files of a worker answer HTTP requests. The files are stored beside the worker.
type Assets struct {
	// Directory has the files: a path from the directory of the manifest.
	Directory string `json:"directory"`
	// NotFound is what answers where there is no file, if the worker has no fetch handler or a browser navigates.
	NotFound NotFound `json:"notFound,omitempty"`
	// HTML says at which paths pages are.
	HTML HTMLHandling `json:"html,omitempty"`
	// WorkerFirst are paths that the fetch handler answers, also where there is a file. * stands at the end. A ! before
	// one takes its paths out again.
	WorkerFirst []string `json:"workerFirst,omitempty"`
	// Binding is a name in env: env.NAME.fetch(request) answers a handler with these files. "" = none.
	Binding string `json:"binding,omitempty"`
	// Files is the SHA-256 of the list of files, in hex. The deploy sets it.
	Files string `json:"files,omitempty" manifest:"-"`
}

// NotFound is what answers where there is no file.
type NotFound string

// What answers where there is no file. The zero NotFound means NotFoundNone.
const (
	NotFoundNone NotFound = "none"                    // 404 without a page
	NotFoundPage NotFound = "404-page"                // the nearest 404.html
	NotFoundSPA  NotFound = "single-page-application" // index.html, with 200
)

// HTMLHandling says at which paths pages are: /about.html and /docs/index.html.
type HTMLHandling string

// Where pages are. The zero HTMLHandling means HTMLAuto.
const (
	HTMLAuto  HTMLHandling = "auto-trailing-slash"  // /about and /docs/
	HTMLForce HTMLHandling = "force-trailing-slash" // /about/ and /docs/
	HTMLDrop  HTMLHandling = "drop-trailing-slash"  // /about and /docs
	HTMLNone  HTMLHandling = "none"                 // where the files are
)

// maxWorkerFirst is the most paths in Assets.WorkerFirst.
const maxWorkerFirst = 100

func (a *Assets) validate() error {
	if a == nil {
		return nil
	}
	if a.Directory == "" {
		return fmt.Errorf("assets.directory is missing: it is the path of the directory with the files")
	}
	if a.NotFound != "" && !slices.Contains([]NotFound{NotFoundNone, NotFoundPage, NotFoundSPA}, a.NotFound) {
		return fmt.Errorf("assets.notFound is %q: it is one of %s, %s, %s", a.NotFound, NotFoundNone, NotFoundPage, NotFoundSPA)
	}
	if a.HTML != "" && !slices.Contains([]HTMLHandling{HTMLAuto, HTMLForce, HTMLDrop, HTMLNone}, a.HTML) {
		return fmt.Errorf("assets.html is %q: it is one of %s, %s, %s, %s", a.HTML, HTMLAuto, HTMLForce, HTMLDrop, HTMLNone)
	}
	if len(a.WorkerFirst) > maxWorkerFirst {
		return fmt.Errorf("assets.workerFirst has %d paths: at most %d are allowed", len(a.WorkerFirst), maxWorkerFirst)
	}
	for i, path := range a.WorkerFirst {
		if why := wrongPublicPath(strings.TrimPrefix(path, except)); why != "" {
			return fmt.Errorf("assets.workerFirst[%d] is %q: %s; a ! may stand before it", i, path, why)
		}
	}
	if len(a.WorkerFirst) > 0 && !slices.ContainsFunc(a.WorkerFirst, func(path string) bool { return path[0] == '/' }) {
		return fmt.Errorf("assets.workerFirst has only paths with a !, which take paths out: at least one is without")
	}
	if a.Binding != "" {
		if err := events.CheckEnvName(a.Binding); err != nil {
			return fmt.Errorf("assets.binding %w", err)
		}
	}
	if a.Files != "" && strings.Trim(a.Files, "0123456789abcdef") != "" || a.Files != "" && len(a.Files) != 64 {
		return fmt.Errorf("assets.files is %q: it is 64 hex digits", a.Files)
	}
	return nil
}

// validateFilesBinding checks that the binding of the files is no other thing in env too.
func (s Spec) validateFilesBinding() error {
	if s.Assets == nil || s.Assets.Binding == "" {
		return nil
	}
	name, noun := s.Assets.Binding, ""
	for _, k := range bindingKinds {
		if _, both := k.of(&s.Bindings).get()[name]; both {
			noun = k.noun
		}
	}
	if slices.Contains(s.Secrets, name) {
		noun = "secret"
	}
	if noun != "" {
		return fmt.Errorf("assets.binding %s is a %s too: a name in env is one thing", name, noun)
	}
	return nil
}

// except stands before a path of WorkerFirst that is taken out.
const except = "!"

// First reports whether the fetch handler answers a path, also where there is a file; or a file that has several paths.
// What is taken out wins.
func (a *Assets) First(paths ...Path) bool {
	first := false
	for _, pattern := range a.WorkerFirst {
		pattern, out := strings.CutPrefix(pattern, except)
		switch found := slices.ContainsFunc(paths, func(p Path) bool { return p.matches(pattern) }); {
		case found && out:
			return false
		case found:
			first = true
		}
	}
	return first
}
