package assetserver

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events"
)

// Files reads the files of workers. Any goroutine may call its methods.
type Files interface {
	// List returns a list of files. Callers must not change it.
	List(ctx context.Context, owner, hash string) (*assets.List, error)
	// Stored says in which encodings a file is stored.
	Stored(ctx context.Context, owner, hash string) (assets.Stored, error)
	// Part returns a part of a file, from 0. Callers must not change it.
	Part(ctx context.Context, owner, hash string, e assets.Encoding, n int) ([]byte, error)
}

// Site is the files of a version of a worker.
type Site struct {
	files  Files
	worker *events.Worker
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
func Open(ctx context.Context, files Files, w *events.Worker) (*Site, error) {
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
	// file is the path of the file in the list, and path that of the request, which decides what _headers add.
	file, path string
}

// Path is the path of a request, without escapes. ok is false if no file can be at it.
func Path(escaped string) (path string, ok bool) {
	path, err := url.PathUnescape(escaped)
	return path, err == nil && !events.DotSegment(escaped)
}

// Find says what is at a path: a file, or a redirect. ok is false if there is nothing. query is that of the URL.
func (s *Site) Find(escaped, query string) (a Answer, ok bool) {
	path, ok := Path(escaped)
	if !ok {
		return a, false
	}
	if query != "" {
		query = "?" + query
	}
	switch to, status := s.list.Location(path, query); status {
	case 0:
	case http.StatusOK:
		file := s.list.At(to)
		return Answer{Status: status, file: file, path: path}, file != ""
	default:
		if strings.HasPrefix(to, "/") {
			to = s.Prefix + to
		}
		return Answer{Location: to, Status: status}, true
	}
	f, ok := s.list.Find(path, s.worker.Assets.HTML)
	if f.Redirect != "" {
		return Answer{Location: s.Prefix + (&url.URL{Path: f.Redirect}).EscapedPath() + query, Status: http.StatusTemporaryRedirect}, true
	}
	return Answer{Status: http.StatusOK, file: f.File, path: path}, ok
}

// Exactly is the file at exactly this path. ok is false if there is none, or a page.
func (s *Site) Exactly(escaped string) (a Answer, ok bool) {
	path, ok := Path(escaped)
	if !ok || strings.HasSuffix(path, ".html") || !s.list.Has(path) {
		return a, false
	}
	return Answer{Status: http.StatusOK, file: path, path: path}, true
}

// NotFound is the page that answers where there is no file. ok is false if there is none.
func (s *Site) NotFound(escaped string) (a Answer, ok bool) {
	path, err := url.PathUnescape(escaped)
	if err != nil {
		path = "/"
	}
	how := s.worker.Assets.NotFound
	a = Answer{Status: http.StatusOK, path: path, file: s.list.NotFound(path, how)}
	if how == events.NotFoundPage {
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
