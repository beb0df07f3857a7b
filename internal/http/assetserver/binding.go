package assetserver

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// headerForwardedPrefix of an event is the part of the client's path that the worker does not see: the gateway writes
// it.
const headerForwardedPrefix = "X-Forwarded-Prefix"

// ServeBinding answers a request of a handler with a file of its worker, which has Assets: env.ASSETS.fetch. The host
// of the URL means nothing. Only files of version w answer, also at paths of workerFirst, and as they are: a handler
// reads them. follows says that the handler does not see redirects. With an error, the answer has the status 503.
func ServeBinding(rw http.ResponseWriter, r *http.Request, files Files, w *workers.Worker, follows bool) error {
	site, err := Open(r.Context(), files, w)
	if err == nil {
		err = site.serveBinding(rw, r, follows)
	}
	if err != nil {
		text(rw, http.StatusServiceUnavailable, "the files of this worker cannot be read")
	}
	return err
}

func (s *Site) serveBinding(rw http.ResponseWriter, r *http.Request, follows bool) error {
	s.Plain = true
	own := ""
	if s.worker.HTTP != nil {
		own = s.worker.HTTP.Base
	}
	prefix := prefixOf(r, own)
	if own != "" {
		s.Base = prefix
	}
	if !follows { // else the redirect comes back here
		s.Prefix = prefix
	}
	path, find := PathOf(r), s.Find
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !reads {
		find = s.Moved
	}
	a, ok, err := find(r.Context(), path, r.URL.RawQuery)
	if err != nil {
		return err
	}
	if !ok && !reads {
		if err := s.Mark(r.Context(), path, rw.Header()); err != nil {
			return err
		}
		rw.Header()["Allow"] = []string{"GET, HEAD"}
		text(rw, http.StatusMethodNotAllowed, "a file has the methods GET and HEAD")
		return nil
	}
	if !ok {
		a, ok = s.NotFound(path)
	}
	if !ok {
		if err := s.Mark(r.Context(), path, rw.Header()); err != nil {
			return err
		}
		text(rw, http.StatusNotFound, "there is no file at this path")
		return nil
	}
	return s.Write(rw, r, a, nil)
}

// PathOf is the path of a request.
func PathOf(r *http.Request) workers.Path {
	if r.URL.RawPath != "" { // as it came: without it, an escaped slash can be lost
		return workers.NewPath(r.URL.RawPath)
	}
	return workers.NewPath(r.URL.EscapedPath())
}

// prefixOf is the prefix of an event's request that is passed on; otherwise own. A handler can write any: one that
// could lead to another host does not count.
func prefixOf(r *http.Request, own string) string {
	prefix := r.Header.Get(headerForwardedPrefix)
	if _, ok := workers.NewPath(prefix).File(); !ok || workers.DotSegment(prefix) || !strings.HasPrefix(prefix, "/") ||
		strings.HasSuffix(prefix, "/") || strings.Contains(prefix, "//") ||
		strings.ContainsFunc(prefix, func(c rune) bool { return c <= ' ' || c == '\\' || c >= 0x7f }) {
		return own
	}
	return prefix
}

func text(rw http.ResponseWriter, status int, text string) {
	h := rw.Header()
	h["Content-Type"] = []string{"text/plain; charset=utf-8"}
	h["Content-Length"] = []string{strconv.Itoa(len(text) + 1)}
	rw.WriteHeader(status)
	_, _ = io.WriteString(rw, text+"\n")
}
