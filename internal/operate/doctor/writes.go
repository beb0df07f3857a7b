package doctor

import (
	"context"
	"net/http"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// writes looks for streams that nats-server no longer writes to disk. nats-server does not report that to publishers.
func (p *checker) writes(ctx context.Context, all []found) {
	for _, f := range all {
		if f.Resource.Consumer != nil || f.Finding.Stream.Config.Replicas > 1 || f.Finding.Stream.Config.DenyDelete {
			continue // Failed cannot check these; the monitoring port may report it
		}
		// An error here is no finding: the checks assets and permissions report it.
		if failure, err := stored.Failed(ctx, p.NC, f.Resource.StreamName()); err == nil && failure != nil {
			p.bad("disk", stored.Advice, "%v (%s)", failure, failure.Detail)
		}
	}
}

// health asks the monitoring ports whether their servers are healthy.
func (p *checker) health(ctx context.Context) {
	for _, url := range p.Monitors {
		var h struct {
			Status, Error string
		}
		name, err := getMonitor(ctx, url, "/healthz", http.StatusServiceUnavailable, &h)
		switch {
		case err != nil:
			p.warn("server", "see that PINWHEEL_NATS_MONITOR names the monitoring ports of all servers", "%v", err)
		case strings.Contains(h.Error, "write error"):
			p.bad("disk", stored.Advice, "%s: %s", name, h.Error)
		case h.Status != "ok":
			p.bad("server", "see nats-server's log", "%s: %s", name, h.Error)
		}
	}
}
