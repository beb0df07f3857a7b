package gateway

import (
	"errors"
	"net/http"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assetserver"
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
	w, escaped := x.service.worker, x.path
	a := w.Assets
	if a == nil || a.Files == "" {
		return false
	}
	runs := slices.Contains(w.Handlers, events.Fetch)
	reads := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	switch {
	case runs && (!reads || x.upgrades || a.First(escaped)):
		return false
	case !reads:
		x.w.Header()["Allow"] = []string{"GET, HEAD"}
		x.refuse(noMethod)
		return true
	}
	x.version = w.Version
	site, err := assetserver.Open(x.r.Context(), x.g.Files, w)
	if err != nil {
		x.unreadable(err)
		return true
	}
	if site.Prefix = x.prefix; x.service.Base != "" {
		site.Base = x.prefix
	}
	if found, ok := site.Find(escaped, x.r.URL.RawQuery); ok {
		x.file(site, found)
		return true
	}
	if x.former(escaped) {
		return true
	}
	navigates := x.r.Header.Get("Sec-Fetch-Mode") == "navigate"
	if runs && (a.NotFound != events.NotFoundSPA || !navigates) {
		x.version = ""
		return false
	}
	if page, ok := site.NotFound(escaped); ok {
		x.file(site, page)
	} else {
		x.refuse(noFile)
	}
	return true
}

// unreadable refuses a request because its file, or the list of files, cannot be read.
func (x *exchange) unreadable(err error) {
	if x.r.Context().Err() == nil {
		x.g.log.Error().Err(err).Str("worker", x.service.worker.Target()).Msg("a file cannot be read")
	}
	x.refuse(noFiles)
}

// former answers with the file of another version, if that has one at exactly this path: a page of one version asks for
// files that only this version has. Pages are not looked for, nor the files of a version that wants another token.
func (x *exchange) former(escaped string) bool {
	if _, ok := assetserver.Path(escaped); !ok {
		return false
	}
	for _, other := range x.service.others() {
		site, err := assetserver.Open(x.r.Context(), x.g.Files, other)
		if err != nil {
			continue
		}
		if found, ok := site.Exactly(escaped); ok {
			x.version = other.Version
			x.file(site, found)
			return true
		}
	}
	return false
}

// maxOthers is the most versions whose files are looked for, beside the one that answers. A client can ask for any
// number of paths that no version has.
const maxOthers = 2

// others are versions with other files: those that share the events with the one that answers, and then the last ones
// before it.
func (s service) others() (list []*events.Worker) {
	add := func(w *events.Worker) {
		same := func(o *events.Worker) bool { return o.Assets.Files == w.Assets.Files }
		if len(list) < maxOthers && w.Assets != nil && !same(s.worker) && !slices.ContainsFunc(list, same) &&
			(w.HTTP == nil || w.HTTP.Auth == "" || w.HTTP.Auth == s.Auth) {
			list = append(list, w)
		}
	}
	for _, share := range s.installed.Deployment.Split {
		if w := s.installed.Version(share.Version); w != nil {
			add(w)
		}
	}
	for _, w := range slices.Backward(s.installed.Versions) {
		if w.Number < s.worker.Number {
			add(w)
		}
	}
	return list
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
