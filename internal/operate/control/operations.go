package control

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
)

// Operations are the operations that work through what a fleet stores. Every process can do them, and so can every
// program that may use the fleet's NATS.
type Operations struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	subjects events.Subjects
	node     string // this process

	workers   *deploy.Store
	policies  *deploy.Policies
	dead      *deadletter.Store
	schedules *schedule.Store
}

// None is the request of an operation that has no parameters.
type None struct{}

// maxListed is the highest number of letters or workers in a list. The request field after asks for the rest.
const maxListed = 1000

// listed returns how many a request asks for.
func listed(limit int) (int, error) {
	if limit < 0 || limit > maxListed {
		return 0, refused("limit is %d: it is 1 to %d, or 0 for 100", limit, maxListed)
	}
	if limit == 0 {
		limit = 100
	}
	return limit, nil
}

// answerRoom is how many bytes of data an answer may have, without its envelope.
func (o *Operations) answerRoom() int { return int(o.nc.MaxPayload()) - 4096 }
