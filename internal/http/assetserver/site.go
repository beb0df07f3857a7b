package assetserver

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Files reads the files of workers. Any goroutine may call its methods.
type Files interface {
	// List returns a list of files. Callers must not change it.
	List(ctx context.Context, owner, hash string) (*assets.List, error)
	// Stored says in which encodings a file is stored.
	Stored(ctx context.Context, owner, hash string) (assets.Stored, error)
	// Turn does work for an owner when it is its turn, so that owners whose files take long to find delay no others. f
	// computes and waits for nothing. The error is that of ctx, when it ends before f begins.
	Turn(ctx context.Context, owner string, f func()) error
	// Part returns a part of a file, from 0. Callers must not change it.
	Part(ctx context.Context, owner, hash string, e assets.Encoding, n int) ([]byte, error)
}

// Site is the files of a version of a worker.
type Site struct {
	files  Files
	worker *workers.Worker
	list   *assets.List

	// Prefix comes before the paths of the worker where clients see them: escaped, "" or /… without / at the end.
	// Redirects to paths of the worker lead there.
	Prefix string
	// Base is where relative URLs of pages without <base href> begin, whatever path the page is at: as Prefix. "" = they
	// are relative to the page.
	Base string
	// Plain: files are sent as they are, not compressed.
	Plain bool
}

// Open returns the files of a version, which has Assets.
func Open(ctx context.Context, files Files, w *workers.Worker) (*Site, error) {
	list, err := files.List(ctx, w.Owner, w.Assets.Files)
	if err != nil {
		return nil, fmt.Errorf("list of files of %s: %w", w.Target(), err)
	}
	return &Site{files: files, worker: w, list: list}, nil
}

// Answer is what answers a request.
type Answer struct {
	// Location is where a redirect leads; "" = a file answers.
	Location string
	Status   int
	file     string       // the path of the file in the list
	path     workers.Path // of the request, which decides what _headers add
}

// Addresses are the paths that mean the file of an answer; none if it is a redirect. A file may answer at a path that
// is none of them, by a rule of _redirects or as the page for what is not found.
func (a Answer) Addresses() []workers.Path {
	if a.file == "" {
		return nil
	}
	return assets.Addresses(a.file)
}

// IsAt reports whether the answer is a file, and the one at exactly the path of the request.
func (a Answer) IsAt(path workers.Path) bool {
	text, ok := path.File()
	return ok && a.file == text && a.Status == http.StatusOK
}

// Find says what is at a path: a file, or a redirect. ok is false if there is nothing. query is that of the URL. The
// error is that of ctx.
func (s *Site) Find(ctx context.Context, path workers.Path, query string) (a Answer, ok bool, err error) {
	err = s.files.Turn(ctx, s.worker.Owner, func() { a, ok = s.find(path, query) })
	return a, ok && err == nil, err
}

func (s *Site) find(path workers.Path, query string) (a Answer, ok bool) {
	if query != "" {
		query = "?" + query
	}
	switch to, status := s.list.Location(path, query); status {
	case 0:
	case http.StatusOK:
		if _, ok := path.File(); !ok {
			return a, false
		}
		file := s.list.At(workers.NewPath(to))
		return Answer{Status: status, file: file, path: path}, file != ""
	default:
		return s.redirect(path, to, status), true
	}
	f, ok := s.list.Find(path, s.worker.Assets.HTML)
	at := path
	if !ok && strings.Contains(path.URL(), "//") { // an empty segment is none of a file
		at = workers.NewPath(oneSlash(path.URL()))
		f, ok = s.list.Find(at, s.worker.Assets.HTML)
	}
	if f.Redirect != "" {
		return s.canonical(path, (&url.URL{Path: f.Redirect}).EscapedPath()+query), true
	}
	if ok && path.URL() != at.Canonical() { // a handler that compares texts guards the one address that answers
		return s.canonical(path, at.Canonical()+query), true
	}
	return Answer{Status: http.StatusOK, file: f.File, path: path}, ok
}

// Moved says where a rule of _redirects leads, which holds for every method. ok is false if none does, or if another
// file answers. query is that of the URL. The error is that of ctx.
func (s *Site) Moved(ctx context.Context, path workers.Path, query string) (a Answer, ok bool, err error) {
	if query != "" {
		query = "?" + query
	}
	err = s.files.Turn(ctx, s.worker.Owner, func() {
		to, status := s.list.Location(path, query)
		a, ok = s.redirect(path, to, status), status != 0 && status != http.StatusOK
	})
	return a, ok && err == nil, err
}

func (s *Site) redirect(path workers.Path, to string, status int) Answer {
	if strings.HasPrefix(to, "/") {
		to = s.Prefix + to
	}
	return Answer{Location: to, Status: status, path: path}
}

// canonical leads from path to the one way to write it.
func (s *Site) canonical(path workers.Path, to string) Answer {
	return Answer{Location: s.Prefix + to, Status: http.StatusTemporaryRedirect, path: path}
}

// oneSlash makes one slash of several.
func oneSlash(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// Mark sets the headers that _headers says of a path. They are on all that answers for files: files, redirects, and
// that there is no file. The error is that of ctx.
func (s *Site) Mark(ctx context.Context, path workers.Path, h http.Header) error {
	return s.files.Turn(ctx, s.worker.Owner, func() { s.list.Mark(path, h) })
}

// NotFound is the page that answers where there is no file. ok is false if there is none.
func (s *Site) NotFound(path workers.Path) (a Answer, ok bool) {
	how := s.worker.Assets.NotFound
	a = Answer{Status: http.StatusOK, path: path, file: s.list.NotFound(path, how)}
	if how == workers.NotFoundPage {
		a.Status = http.StatusNotFound
	}
	return a, a.file != ""
}

// base is the <base> that goes into a page; "" = none.
func (s *Site) base(f assets.File) string {
	if s.Base == "" || f.BaseAt == 0 {
		return ""
	}
	return `<base href="` + html.EscapeString(s.Base) + `/">`
}
