package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// admin serves /healthz, /readyz, /metrics, /admin/pool and, if asked for, /debug/pprof/ of a process, or of several under a supervisor.
type admin struct {
	listener net.Listener
	server   *http.Server
}

// observed is what an admin port tells of.
type observed interface {
	checkHealth(context.Context) error // nil: worth keeping
	checkReady(context.Context) error  // nil: takes events
	gatherer() prometheus.Gatherer
	poolStats(context.Context) any // for JSON
}

// openAdmin listens where cfg says; nowhere is no admin at all.
func openAdmin(cfg Config, o observed) (*admin, error) {
	if cfg.AdminAddr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", cfg.AdminAddr)
	if err != nil {
		return nil, fmt.Errorf("PINWHEEL_ADMIN_ADDR is %q: %w", cfg.AdminAddr, err)
	}
	return newAdmin(l, o, cfg.Profiling), nil
}

func newAdmin(l net.Listener, o observed, profiling bool) *admin {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", answerHealth(o.checkHealth))
	mux.HandleFunc("GET /readyz", answerHealth(o.checkReady))
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.gatherer(), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("GET /admin/pool", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o.poolStats(r.Context()))
	})
	if profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and by name: heap, allocs, goroutine, mutex, block
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return &admin{l, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}}
}

// answerHealth answers 200 "ok", or 503 with what is wrong.
func answerHealth(check func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	}
}

// run serves until ctx is done.
func (a *admin) run(ctx context.Context) error {
	if a == nil {
		return nil
	}
	defer context.AfterFunc(ctx, func() { _ = a.server.Close() })()
	if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// addr is where it listens, "" for none.
func (a *admin) addr() string {
	if a == nil {
		return ""
	}
	return a.listener.Addr().String()
}
