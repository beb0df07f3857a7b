// Package admin is the HTTP server for operators: /healthz, /readyz, /metrics, /scale, /admin/pool and, if
// configured, Go profiles.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pinwheel-run/pinwheel/internal/http/localhost"
)

// Server serves the admin port of one process, or of several processes under a supervisor. A nil Server serves nothing.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// Source is what an admin port reports on.
type Source interface {
	// CheckHealth returns nil unless the process should be replaced.
	CheckHealth(context.Context) error
	// CheckReady returns nil when the process takes events.
	CheckReady(context.Context) error
	// Gatherer returns the metrics.
	Gatherer() prometheus.Gatherer
	// PoolStats returns figures that are encoded as JSON.
	PoolStats(context.Context) any
	// Scale returns how many processes the fleet needs, to be encoded as JSON. target is how many events may wait for each
	// process; 0 = the default. The error says why that is not known.
	Scale(ctx context.Context, target int) (any, error)
}

// Open listens at addr. It returns nil if addr is empty.
func Open(addr string, s Source, profiling bool) (*Server, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("PINWHEEL_ADMIN_ADDR is %q: %w", addr, err)
	}
	return New(l, s, profiling), nil
}

// New serves on l.
func New(l net.Listener, s Source, profiling bool) *Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", answerHealth(s.CheckHealth))
	mux.HandleFunc("GET /readyz", answerHealth(s.CheckReady))
	mux.Handle("GET /metrics",
		promhttp.HandlerFor(s.Gatherer(), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("GET /admin/pool", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, s.PoolStats(r.Context()))
	})
	mux.HandleFunc("GET /scale", answerScale(s.Scale))
	if profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and profiles by name: heap, allocs, goroutine, mutex, block
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return &Server{l, &http.Server{Handler: local(l, mux), ReadHeaderTimeout: 5 * time.Second}}
}

// local refuses other names than those of this machine where nobody can come from elsewhere: a page of another site
// that has a name of its own point here (DNS rebinding).
func local(l net.Listener, next http.Handler) http.Handler {
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "" && !localhost.Is(r.Host) { // only HTTP/1.0 has no host, and no browser speaks it
			http.Error(w, "this port answers to localhost and to addresses only", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answerHealth answers 200 "ok", or 503 with the reason.
func answerHealth(check func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	}
}

const (
	// maxTarget is the most that the parameter target of /scale may be.
	maxTarget = 1_000_000
	// maxScale is how many requests for /scale may wait at once. They share one answer, which can take seconds.
	maxScale = 64
)

// answerScale answers 200 with JSON, 503 with the reason, or 400 when the parameter target is wrong.
func answerScale(scale func(ctx context.Context, target int) (any, error)) http.HandlerFunc {
	places := make(chan struct{}, maxScale)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("%d requests wait for the fleet's counts: ask again later", maxScale),
				http.StatusServiceUnavailable)
			return
		}
		target := 0
		if query := r.URL.Query(); query.Has("target") {
			n, err := strconv.Atoi(query.Get("target"))
			if err != nil || n < 1 || n > maxTarget {
				http.Error(w, fmt.Sprintf("target is how many events may wait for each process: 1 to %d", maxTarget),
					http.StatusBadRequest)
				return
			}
			target = n
		}
		answer, err := scale(r.Context(), target)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		writeJSON(w, answer)
	}
}

func writeJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// Run serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	if s == nil {
		return nil
	}
	defer context.AfterFunc(ctx, func() { _ = s.server.Close() })()
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Addr is the address where the server listens, or "".
func (s *Server) Addr() string {
	if s == nil {
		return ""
	}
	return s.listener.Addr().String()
}
