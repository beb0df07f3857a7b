package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/admin"
)

const patience = time.Minute // for facts that must come true

// source is a process whose health the test sets.
type source struct {
	health, ready atomic.Pointer[error]
	metrics       *prometheus.Registry
}

func (s *source) CheckHealth(context.Context) error { return *s.health.Load() }
func (s *source) CheckReady(context.Context) error  { return *s.ready.Load() }
func (s *source) Gatherer() prometheus.Gatherer     { return s.metrics }
func (s *source) PoolStats(context.Context) any     { return map[string]int{"total": 3} }
func (s *source) Scale(_ context.Context, target int) (any, error) {
	return map[string]int{"target": target}, *s.ready.Load()
}

func newSource() *source {
	s := &source{metrics: prometheus.NewRegistry()}
	s.health.Store(new(error))
	s.ready.Store(new(error))
	return s
}

// broken is a metric that cannot be collected.
type broken struct{ *prometheus.Desc }

func (b broken) Describe(to chan<- *prometheus.Desc) { to <- b.Desc }
func (b broken) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(b.Desc, errors.New("cannot be collected"))
}

// At an address of the machine itself, a page of another site reads nothing, whatever name it gives the machine.
func TestHosts(t *testing.T) {
	t.Parallel()
	a := serve(t, newSource(), true)
	for host, want := range map[string]int{"": 200, "localhost:8422": 200, "127.0.0.1": 200, "evil.example": 421,
		"evil.example:8422": 421} {
		for _, path := range []string{"/healthz", "/metrics", "/scale", "/admin/pool", "/debug/pprof/"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr()+path, http.NoBody)
			require.NoError(t, err)
			r.Host = host
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, want, answer.StatusCode, "%s %s", host, path)
		}
	}
}

// serve opens a server, and ends it with the test.
func serve(t *testing.T, s admin.Source, profiling bool) *admin.Server {
	t.Helper()
	a, err := admin.Open("127.0.0.1:0", s, profiling)
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		end()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Error("the server does not end")
		}
	})
	return a
}

func get(t *testing.T, a *admin.Server, method, path string) (status int, contentType, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.Addr()+path, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(text)
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	s := newSource()
	a := serve(t, s, false)
	for path, state := range map[string]*atomic.Pointer[error]{"/healthz": &s.health, "/readyz": &s.ready} {
		status, _, body := get(t, a, http.MethodGet, path)
		require.Equal(t, http.StatusOK, status, path)
		require.Equal(t, "ok\n", body, path)
		reason := errors.New("NATS is closed")
		state.Store(&reason)
		status, _, body = get(t, a, http.MethodGet, path)
		require.Equal(t, http.StatusServiceUnavailable, status, path)
		require.Equal(t, "NATS is closed\n", body, path)
		state.Store(new(error))
		status, _, _ = get(t, a, http.MethodGet, path)
		require.Equal(t, http.StatusOK, status, path)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newSource()
	events := prometheus.NewCounter(prometheus.CounterOpts{Name: "events_total", Help: "Events."})
	s.metrics.MustRegister(events, broken{prometheus.NewDesc("broken", "Cannot be collected.", nil, nil)})
	a := serve(t, s, false)
	for _, want := range []string{"events_total 0\n", "events_total 1\n"} {
		status, contentType, body := get(t, a, http.MethodGet, "/metrics")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, contentType, "text/plain")
		require.Contains(t, body, want, "a metric that cannot be collected does not hide the others")
		events.Inc()
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	status, contentType, body := get(t, serve(t, newSource(), false), http.MethodGet, "/admin/pool")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "application/json", contentType)
	var got map[string]int
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, map[string]int{"total": 3}, got)
}

func TestScale(t *testing.T) {
	t.Parallel()
	s := newSource()
	a := serve(t, s, false)
	for query, want := range map[string]int{"": 0, "?other=1": 0, "?target=1": 1, "?target=1000000": 1_000_000} {
		status, contentType, body := get(t, a, http.MethodGet, "/scale"+query)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "application/json", contentType)
		require.JSONEq(t, fmt.Sprintf(`{"target":%d}`, want), body)
	}
	for _, query := range []string{"?target=", "?target=0", "?target=-1", "?target=1000001", "?target=many"} {
		status, _, body := get(t, a, http.MethodGet, "/scale"+query)
		require.Equal(t, http.StatusBadRequest, status, query)
		require.Equal(t, "target is how many events may wait for each process: 1 to 1000000\n", body)
	}
	reason := errors.New("the fleet's counts are not known: NATS is away")
	s.ready.Store(&reason)
	status, contentType, body := get(t, a, http.MethodGet, "/scale")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, contentType, "text/plain")
	require.Equal(t, reason.Error()+"\n", body)
}

// The port only reports: nothing can be changed through it.
func TestOtherRequestsAreRefused(t *testing.T) {
	t.Parallel()
	a := serve(t, newSource(), false)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/scale", "/admin/pool"} {
		status, _, _ := get(t, a, http.MethodPost, path)
		require.Equal(t, http.StatusMethodNotAllowed, status, path)
	}
	for _, path := range []string{"/", "/admin", "/scale/", "/debug/pprof/", "/debug/pprof/heap"} {
		status, _, _ := get(t, a, http.MethodGet, path)
		require.Equal(t, http.StatusNotFound, status, path)
	}
	status, _, _ := get(t, serve(t, newSource(), true), http.MethodGet, "/debug/pprof/heap")
	require.Equal(t, http.StatusOK, status)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	none, err := admin.Open("", newSource(), false)
	require.NoError(t, err)
	require.Empty(t, none.Addr())
	require.NoError(t, none.Run(t.Context()), "a nil server serves nothing")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = admin.Open(l.Addr().String(), newSource(), false)
	require.ErrorContains(t, err, "PINWHEEL_ADMIN_ADDR is")
}

// slow is a source whose fleet takes its time to answer.
type slow struct {
	*source
	asked  chan struct{}
	answer chan struct{}
}

func (s slow) Scale(context.Context, int) (any, error) {
	s.asked <- struct{}{}
	<-s.answer
	return 1, nil
}

// While a fleet does not answer, no more requests wait for it than a bound says.
func TestFewRequestsWaitForTheFleet(t *testing.T) {
	t.Parallel()
	s := slow{newSource(), make(chan struct{}), make(chan struct{})}
	a := serve(t, s, false)
	const most = 64
	statuses := make(chan int, most)
	for range most {
		go func() { // it ends when the fleet answers
			answer, err := http.Get("http://" + a.Addr() + "/scale")
			if err != nil {
				statuses <- 0
				return
			}
			_ = answer.Body.Close()
			statuses <- answer.StatusCode
		}()
		<-s.asked
	}
	for range 3 {
		status, _, body := get(t, a, http.MethodGet, "/scale")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, "64 requests wait for the fleet's counts: ask again later\n", body)
	}
	close(s.answer)
	for range most {
		require.Equal(t, http.StatusOK, <-statuses)
	}
	go func() { <-s.asked }()
	status, _, _ := get(t, a, http.MethodGet, "/scale")
	require.Equal(t, http.StatusOK, status, "there is room again")
}
