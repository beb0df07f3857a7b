package gateway

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/eventid"
	"github.com/pinwheel-run/pinwheel/internal/lib/repeats"
)

// Runner runs direct events.
type Runner interface {
	// Submit takes events. Each one's Caller gets its reply.
	Submit(batch []*lifecycle.Delivery)
}

// Rooms are what a Gateway works with.
type Rooms struct {
	Runner  Runner
	Workers Workers
	Routes  *Routes
	Stored  Publisher
	Files   Files
	Output  Output
	// Previews checks the hosts of versions; nil = versions have no hosts.
	Previews *Previews
}

// Gateway is an http.Handler that answers requests with workers. All methods may be called from any goroutine.
type Gateway struct {
	cfg Config
	Rooms
	log     zerolog.Logger
	often   *repeats.Log // for failures of which there may be very many
	metrics *metrics
	ids     *eventid.Maker
	owners  owners
	sockets *sockets
	lines   *requestLog
	server  *http.Server

	connections *connections
	times       times

	leaving atomic.Bool     // each connection is closed after its response
	ended   context.Context //nolint:containedctx // done when requests that wait get no reply any more
	end     func()
}

// New makes a Gateway.
func New(cfg Config, rooms Rooms, log zerolog.Logger, reg prometheus.Registerer) (*Gateway, error) {
	cfg = cfg.OrDefault()
	g := &Gateway{
		cfg: cfg, Rooms: rooms, log: log, often: repeats.New(log), metrics: newMetrics(), ids: eventid.New("http"),
		times: defaultTimes, sockets: newSockets(), lines: newRequestLog(rooms.Output),
		owners: owners{requests: cfg.OwnerRequests, memory: cfg.Memory, of: map[string]*usage{}},
	}
	g.ended, g.end = context.WithCancel(context.Background())
	g.connections = newConnections(cfg.MaxConnections, g.trusts, func(why string) {
		g.metrics.closed.WithLabelValues(why).
			Inc()
	})
	g.server = g.newServer()
	return g, g.metrics.register(reg)
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestCame(r)
	x := newExchange(g, w, r)
	defer x.record()
	t, no := g.targetOf(r)
	if no == nil && t.preview != "" {
		t.version, no = g.preview(t)
	}
	if no == nil {
		no = checkRequest(r)
	}
	if no != nil {
		x.refuse(no)
		return
	}
	e := g.eventOf(r, t)
	if x.service, no = g.serviceOf(e); no == nil {
		no = x.place(e, t)
	}
	if no != nil {
		x.refuse(no)
		return
	}
	if x.cors = crossOriginOf(x.service.CORS, r); x.cors.preflight(r) {
		x.preflight()
		return
	}
	if x.open, no = g.admit(r, x.path, x.service); no == nil {
		no = x.checkLength()
	}
	if no != nil {
		x.refuse(no)
		return
	}
	if !g.owners.enter(t.owner) {
		x.refuse(&refusal{http.StatusServiceUnavailable, "the owner of this worker has too many requests at the same time"})
		return
	}
	defer func() {
		if !x.upgraded { // else the WebSocket has the owner's place
			g.owners.leave(t.owner)
		}
	}()
	if x.answer() {
		return
	}
	x.event = e
	x.run()
}
