package fleet

import (
	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// openTails returns the tails of a process that publishes on nc. While NATS is away, lines are left out: the client
// library would keep them in the memory that events and replies need then.
func openTails(nc *nats.Conn, cfg config.Config, observers *lifecycle.Observers) *tail.Hub {
	return tail.New(tail.Config{Node: nodeName(), Subjects: events.Subjects(cfg.Prefix), Observers: observers,
		Publish: func(subject string, data []byte) error {
			if !nc.IsConnected() {
				return nats.ErrConnectionReconnecting
			}
			return nc.Publish(subject, data)
		}})
}
