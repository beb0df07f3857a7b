package gateway

import (
	"errors"
	"net/http"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/http/assetserver"
)

// Files reads the files of workers.
type Files = assetserver.Files

var (
	noFiles  = &refusal{http.StatusServiceUnavailable, "the files of this worker cannot be read"}
	noFile   = &refusal{http.StatusNotFound, "there is no file at this path"}
	noMethod = &refusal{http.StatusMethodNotAllowed, "a file has the methods GET and HEAD"}
)

// answer answers a request with a file of the worker. It reports false if the worker must run.
func (x *exchange) answer() bool {
	w := x.service.worker
	a := w.Assets
	if a == nil || a.Files == "" {
		return false
	}
	runs := slices.Contains(w.Handlers, events.Fetch)
	reads, first := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead, a.First(x.path)
	switch {
	case runs && (x.upgrades || first):
		return false
	case first && reads:
		x.refuse(noFile)
		return true
	case first:
		x.onlyRead()
		return true
	}
	site, err := assetserver.Open(x.r.Context(), x.g.Files, w)
	if err != nil {
		x.version = w.Version
		x.unreadable(err)
		return true
	}
	if site.Prefix = x.prefix; x.service.Base != "" {
		site.Base = x.prefix
	}
	if !reads {
		return x.moved(site, runs)
	}
	found, ok, err := site.Find(x.r.Context(), x.path, x.r.URL.RawQuery)
	switch {
	case err != nil:
		x.version = w.Version
		x.unreadable(err)
		return true
	case ok && guarded(w, found.Addresses()):
		return noneAnswers(x, site, runs)
	case ok:
		if x.version = w.Version; !withheld(x, found.Addresses()) {
			x.file(site, found)
		}
		return true
	case former(x):
		return true
	}
	return missing(x, site, runs)
}

// moved answers a request that reads no file: by a rule of _redirects. It reports false if the worker must run.
func (x *exchange) moved(site *assetserver.Site, runs bool) bool {
	found, ok, err := site.Moved(x.r.Context(), x.path, x.r.URL.RawQuery)
	switch {
	case err != nil:
		x.version = x.service.worker.Version
		x.unreadable(err)
	case ok:
		x.version = x.service.worker.Version
		x.file(site, found)
	case runs:
		return false
	default:
		x.marked(site, x.onlyRead)
	}
	return true
}

// marked refuses a request with the headers that _headers says of its path.
func (x *exchange) marked(site *assetserver.Site, refuse func()) {
	if err := site.Mark(x.r.Context(), x.path, x.w.Header()); err != nil {
		x.unreadable(err)
		return
	}
	refuse()
}

func (x *exchange) onlyRead() {
	x.w.Header()["Allow"] = []string{"GET, HEAD"}
	x.refuse(noMethod)
}

// missing answers where there is no file. It reports false if the worker must run.
func missing(x *exchange, site *assetserver.Site, runs bool) bool {
	w := x.service.worker
	_, possible := x.path.File()
	navigates := x.r.Header.Get("Sec-Fetch-Mode") == "navigate" && possible
	if runs && (w.Assets.NotFound != workers.NotFoundSPA || !navigates) {
		return false
	}
	page, ok := site.NotFound(x.path)
	if !ok || guarded(w, page.Addresses()) {
		return noneAnswers(x, site, runs)
	}
	x.version = w.Version
	x.file(site, page)
	return true
}

// noneAnswers is for a request that no file may answer: the handler does, or nothing.
func noneAnswers(x *exchange, site *assetserver.Site, runs bool) bool {
	if !runs {
		x.version = x.service.worker.Version
		x.marked(site, func() { x.refuse(noFile) })
	}
	return !runs
}

// guarded reports whether the handler of w answers for a file that has these paths: no other path leads around it.
func guarded(w *workers.Worker, addresses []workers.Path) bool { return w.Assets.First(addresses...) }

// withheld refuses a request of a path that needs no token, if it leads to a file that needs it.
func withheld(x *exchange, addresses []workers.Path) bool {
	w := x.service.worker
	if !x.open || len(addresses) == 0 || publicIn(w, x.r.Method, addresses) {
		return false
	}
	no := x.g.authorize(x.r, w)
	if no != nil {
		x.refuse(no)
	}
	return no != nil
}

func publicIn(w *workers.Worker, method string, addresses []workers.Path) bool {
	return w.HTTP != nil && slices.ContainsFunc(addresses,
		func(p workers.Path) bool { return w.HTTP.Public.Match(method, p) })
}

// unreadable refuses a request because its file, or the list of files, cannot be read.
func (x *exchange) unreadable(err error) {
	if x.r.Context().Err() == nil {
		x.g.log.Error().Err(err).Str("worker", x.service.worker.Target()).Msg("a file cannot be read")
	}
	x.refuse(noFiles)
}

// file answers with a file, or with a redirect to one.
func (x *exchange) file(site *assetserver.Site, a assetserver.Answer) {
	x.header()
	switch err := site.Write(fileWriter{x}, x.r, a, fileMemory{x}); {
	case errors.Is(err, assetserver.ErrMemory):
		x.refuse(noMemory)
	case err != nil:
		x.unreadable(err)
	}
}

// fileMemory is the assetserver.Memory of an exchange.
type fileMemory struct{ x *exchange }

func (m fileMemory) Hold(n int64) bool { return m.x.g.owners.hold(m.x.service.worker.Owner, n) }
func (m fileMemory) Drop(n int64)      { m.x.g.owners.drop(m.x.service.worker.Owner, n) }

// fileWriter has net/http write the response to an exchange.
type fileWriter struct{ x *exchange }

func (w fileWriter) Header() http.Header    { return w.x.w.Header() }
func (w fileWriter) WriteHeader(status int) { w.x.head(status) }
func (w fileWriter) Write(data []byte) (int, error) {
	if err := w.x.send(data); err != nil {
		return 0, err
	}
	return len(data), nil
}
