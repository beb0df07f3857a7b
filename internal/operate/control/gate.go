package control

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

const (
	// maxOwners is how many requests of all owners a process handles at once, and maxPerOwner those of one owner. They do
	// not count in maxControl. maxOwnersWaiting wait for their turn, with maxOwnersBytes.
	maxOwners, maxPerOwner           = 32, 4
	maxOwnersWaiting, maxOwnersBytes = 256, 32 << 20
	// ownerRate is how many requests of an owner a process handles in a second, and ownerBurst how many at once.
	ownerRate, ownerBurst = 50, 100
	// ownerTime is how much CPU time the requests of an owner may take in a second, and ownerTimeBurst how much of it at
	// once.
	ownerTime, ownerTimeBurst = 100 * time.Millisecond, 5 * time.Second
)

// ownerRequest is a request to the owner API.
type ownerRequest struct {
	row
	micro.Request
	owner string
	at    time.Time // when it came
}

// gate decides which requests of owners are handled, by their subjects alone. It bounds how many of each owner there
// are, and how much CPU time these and the jobs that they start take. A request that is refused costs a few hundred
// nanoseconds, so that a flood of one owner does not delay the requests of others, which come by the same subscription.
type gate struct {
	queue    *perowner.Queue[ownerRequest]
	requests perowner.Rates
	refusals perowner.Rates // answers to requests that are not handled
	time     perowner.Rates // microseconds of CPU time

	handled, refused, dropped prometheus.Counter
}

// newGate returns a gate that passes requests to handle.
func newGate(handle func(ownerRequest), metrics prometheus.Registerer) *gate {
	g := &gate{
		requests: perowner.Rates{PerSecond: ownerRate, Burst: ownerBurst},
		refusals: perowner.Rates{PerSecond: ownerRate, Burst: ownerBurst},
		time:     perowner.Rates{PerSecond: int(ownerTime.Microseconds()), Burst: int(ownerTimeBurst.Microseconds())},
	}
	results := RegisterMetrics(metrics)
	g.handled, g.refused, g.dropped = results.WithLabelValues("handled"), results.WithLabelValues(
		"refused"), results.WithLabelValues("dropped")
	bounds := perowner.Bounds{Most: maxOwnersWaiting, MostBytes: maxOwnersBytes, Workers: maxOwners, PerOwner: maxPerOwner}
	g.queue = perowner.NewQueue(bounds, func(r ownerRequest) {
		g.handled.Inc()
		g.charge(r.owner, perowner.CPU(func() { handle(r) }))
	})
	return g
}

// charge charges an owner for CPU time. It returns how long the owner has to wait for more.
func (g *gate) charge(owner string, used time.Duration) (owes time.Duration) {
	now := time.Now()
	g.time.Charge(owner, int(used.Microseconds()), now)
	return g.time.Owes(owner, now)
}

// chargedAt is how much CPU time a job has used when its owner is charged for it.
const chargedAt = time.Millisecond

// job calls do, which works for an owner after a request was answered, and charges the owner for the CPU time. do calls
// wait before each piece of its work: it returns when the owner has time left, or with the error of ctx. Jobs of
// operators, whose owner is "", are neither charged nor held.
func (g *gate) job(owner string, do func(wait func(context.Context) error)) {
	if owner == "" {
		do(context.Context.Err)
		return
	}
	perowner.Metered(func(lap func() time.Duration) {
		used := time.Duration(0)
		defer func() { g.charge(owner, used+lap()) }()
		do(func(ctx context.Context) error {
			if used += lap(); used >= chargedAt {
				g.charge(owner, used)
				used = 0
			}
			for owes := g.time.Owes(owner, time.Now()); owes > 0; owes = g.time.Owes(owner, time.Now()) {
				select {
				case <-ctx.Done():
				case <-time.After(owes):
				}
				if ctx.Err() != nil {
					break
				}
			}
			return ctx.Err()
		})
	})
}

// RegisterMetrics registers the metrics of this package, unless metrics is nil: requests of owners by their result.
func RegisterMetrics(metrics prometheus.Registerer) *prometheus.CounterVec {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_owner_requests_total",
		Help: "Requests to the owner API, by result: handled, refused (answered with 429 or 503), dropped (not answered).",
	}, []string{"result"})
	if metrics != nil {
		metrics.MustRegister(results)
	}
	return results
}

// enter passes a request on, or returns why it is not handled. answer reports whether the sender may be told: an owner
// gets a few refusals in a second, and nothing for further requests.
func (g *gate) enter(r ownerRequest) (err error, answer bool) { //nolint:revive // the error says what is answered
	switch owes := g.time.Owes(r.owner, r.at); {
	case !g.requests.Take(r.owner, r.at):
		err = &Error{Code: http.StatusTooManyRequests, Text: fmt.Sprintf("rate: owner %s asks more than %d times in a second", r.owner,
			ownerRate)}
	case owes > 0:
		err = &Error{Code: http.StatusTooManyRequests, Text: fmt.Sprintf(
			"rate: requests of owner %s took more than %s of CPU time in a second: try again in %s", r.owner, ownerTime, max(time.Second, owes.Round(time.Second)))}
	case !g.queue.Push(r.owner, len(r.Subject())+len(r.Data()), r):
		err = &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("owner %s has too many requests under way in this process: try again",
			r.owner)}
	default:
		return nil, false
	}
	if !g.refusals.Take(r.owner, r.at) {
		g.dropped.Inc()
		return err, false
	}
	g.refused.Inc()
	return err, true
}
