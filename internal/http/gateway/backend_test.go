package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// backend is a Workers and a Publisher. Each worker exists in version activeVersion, unless installed says otherwise.
type backend struct {
	installed map[string]workers.Installation // by "owner/worker"
	secrets   map[string]string
	taken     atomic.Int64 // how many of the next events have an id that is taken

	mu      sync.Mutex
	refuses *events.Failure
	stored  []client.Request
	bodies  []string
	reply   func(r client.Request, body string) (*events.Reply, io.ReadCloser, error)
}

const activeVersion = "3-0123456789ab"

func (h *backend) Installed(owner, name string) (workers.Installation, bool) {
	if h.installed == nil {
		return workers.Only(&workers.Worker{Owner: owner, Name: name, Version: activeVersion, Number: 3}), true
	}
	in, ok := h.installed[owner+"/"+name]
	return in, ok
}

func (h *backend) Secret(w *workers.Worker, name string) (string, error) {
	if s, ok := h.secrets[name]; ok {
		return s, nil
	}
	return "", errors.New("secret " + name + " of " + w.Target() + " is not set")
}

func (h *backend) Admit(string, int) *events.Failure { return h.refuses }

func (h *backend) take(r client.Request) (string, error) {
	body := r.Body
	if r.BodyFrom != nil {
		b, err := io.ReadAll(r.BodyFrom)
		if err != nil {
			return "", err
		}
		body = b
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored, h.bodies = append(h.stored, r), append(h.bodies, string(body))
	return string(body), nil
}

func (h *backend) Publish(_ context.Context, r client.Request) (*client.Ack, error) {
	_, err := h.take(r)
	return &client.Ack{Duplicate: h.taken.Add(-1) >= 0}, err
}

func (h *backend) Open(_ context.Context, r client.Request) (*events.Reply, io.ReadCloser, error) {
	body, err := h.take(r)
	if err == nil && h.taken.Add(-1) >= 0 {
		err = fmt.Errorf("event: %w, as S:1", client.ErrDuplicate)
	}
	if err != nil {
		return nil, nil, err
	}
	return h.reply(r, body)
}

// worker makes a version of acme/shop that answers HTTP as h says.
func version(number int, h *workers.HTTP) *workers.Worker {
	name := map[int]string{1: "1-aaaaaaaaaaaa", 2: "2-bbbbbbbbbbbb"}[number]
	return &workers.Worker{Owner: "acme", Name: "shop", Version: name, Number: number, Spec: workers.Spec{HTTP: h}}
}

// only installs acme/shop in versions, the last of which has all events.
func (h *backend) only(versions ...*workers.Worker) *backend {
	last := versions[len(versions)-1]
	h.installed = map[string]workers.Installation{"acme/shop": {
		Owner: "acme", Name: "shop", Versions: versions, Deployment: workers.Deployment{Number: 1,
			Split: []workers.Share{{Version: last.Version, Percent: 100}}},
	}}
	return h
}

var testPreviews = NewPreviews([][]byte{[]byte("a key")})

// previewed is the host that shows a version, for a minute at least.
func (h *backend) previewed(t *testing.T, w *workers.Worker) string {
	t.Helper()
	host, err := testPreviews.Host(w, nil, domain.Domain, time.Now().Add(2*time.Minute))
	require.NoError(t, err)
	return host
}

// in has the gateway find workers in h.
func (h *backend) in(g *Gateway) { g.Workers, g.Stored = h, h }

func newGateway(t testing.TB, cfg Config, r Runner) *Gateway {
	t.Helper()
	h := &backend{}
	g, err := New(cfg, Rooms{Runner: r, Workers: h, Routes: NewRoutes(cfg.Paths), Stored: h, Previews: testPreviews},
		zerolog.New(zerolog.NewTestWriter(t)), prometheus.NewRegistry())
	require.NoError(t, err)
	return g
}
