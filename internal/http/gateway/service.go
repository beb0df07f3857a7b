package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Workers says what is installed in this process. Any goroutine may call its methods.
type Workers interface {
	// Installed returns what is installed of a worker. ok is false when there is nothing.
	Installed(owner, name string) (in workers.Installation, ok bool)
	// Secret returns the value of a secret that w names.
	Secret(w *workers.Worker, name string) (string, error)
}

// service is what answers a request: a version of a worker.
type service struct {
	workers.HTTP                 // how it wants to answer; the zero HTTP if it does not say
	worker       *workers.Worker // nil = there is no such version
	active       *workers.Worker // the version that has most events; nil = none
	named        bool            // the host of the request names the version
	installed    workers.Installation
}

// serviceOf finds the version that runs e. It is found here, because it says whether e may run. e runs in no other one.
func (g *Gateway) serviceOf(e *lifecycle.Delivery) (service, *refusal) {
	in, ok := g.Workers.Installed(e.Owner, e.Worker)
	if !ok {
		return service{}, notFound
	}
	s := service{worker: in.Of(&e.Event), active: in.Active(), named: e.Version != "", installed: in}
	if s.worker == nil && (!s.named || s.active == nil) {
		return service{}, notFound
	}
	if s.worker != nil && s.worker.HTTP != nil {
		s.HTTP = *s.worker.HTTP
	}
	// An older version must not be a way around what the active one says.
	if !s.On() || s.named && s.active != nil && !s.active.HTTP.On() {
		return service{}, notFound
	}
	return s, nil
}

var (
	noToken    = &refusal{http.StatusUnauthorized, "the worker has a token, and the request does not have it"}
	noSecret   = &refusal{http.StatusServiceUnavailable, "the token of this worker cannot be read here"}
	noVersions = &refusal{http.StatusNotFound, "the worker has no such version"}
)

// admit returns why a client may not use the service; nil = it may. path is what the worker sees. open says that the
// path is public, so the token was not asked for. Who has not the token of a worker does not learn either which
// versions it has.
func (g *Gateway) admit(r *http.Request, path workers.Path, s service) (open bool, no *refusal) {
	asked := s.worker
	if s.named && s.Auth == "" { // an older version must not be a way around the token
		asked = s.active
	}
	if asked != nil && asked.HTTP != nil && asked.HTTP.Auth != "" {
		if open = !s.named && s.Public.Match(r.Method, path); !open {
			if no = g.authorize(r, asked); no != nil {
				return false, no
			}
		}
	}
	if s.worker == nil {
		return false, noVersions
	}
	return open, nil
}

// authorize returns why a request may not use a worker with a token; nil = it has the token.
func (g *Gateway) authorize(r *http.Request, w *workers.Worker) *refusal {
	token, err := g.Workers.Secret(w, w.HTTP.Auth)
	if err != nil {
		g.log.Error().Err(err).Str("worker", w.Target()).Msg("requests are refused")
		return noSecret
	}
	if !hasToken(r, token) {
		return noToken
	}
	return nil
}

// Headers with a token.
const (
	headerAuthorization = "Authorization"
	headerToken         = "X-Token"
)

// hasToken reports whether a request has the token: as a Bearer token, as the password of any user, or in X-Token. The
// time that it takes says nothing about how much of it is right.
func hasToken(r *http.Request, token string) bool {
	want := sha256.Sum256([]byte(token))
	same := func(given string) bool {
		sum := sha256.Sum256([]byte(given))
		return subtle.ConstantTimeCompare(sum[:], want[:]) == 1
	}
	if len(r.Header[headerAuthorization]) == 1 {
		if scheme, given, ok := strings.Cut(r.Header.Get(headerAuthorization), " "); ok &&
			strings.EqualFold(scheme, "Bearer") && same(strings.TrimSpace(given)) {
			return true
		}
		if _, password, ok := r.BasicAuth(); ok && same(password) {
			return true
		}
	}
	return len(r.Header[headerToken]) == 1 && same(r.Header.Get(headerToken))
}
