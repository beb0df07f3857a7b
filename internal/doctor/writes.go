package doctor

import (
	"context"
	"net/http"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// writes looks for streams that nats-server does not write any more, which it tells nobody who publishes there.
func (p *patient) writes(ctx context.Context, all []found) {
	for _, f := range all {
		if f.Asset.Consumer != nil || f.Finding.Stream.Config.Replicas > 1 || f.Finding.Stream.Config.DenyDelete {
			continue // of these nothing can be asked; the monitoring port may tell
		}
		// What cannot be asked is no finding: assets and permissions tell of it.
		if failure, err := stored.Failed(ctx, p.NC, f.Asset.StreamName()); err == nil && failure != nil {
			p.bad("disk", stored.Advice, "%v (%s)", failure, failure.Detail)
		}
	}
}

// health asks the monitoring ports whether their servers are well.
func (p *patient) health(ctx context.Context) {
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
