package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// Bounds of requests to cancel delayed events.
const (
	// unscheduleWait is the maximum time that one request may take.
	unscheduleWait = 10 * time.Second
	// unschedulesPerSecond is how many of an owner's requests, and of the events that these find, a process handles per
	// second.
	unschedulesPerSecond = 100
	// unscheduleBurst is how many of them may come at once.
	unscheduleBurst = 200
)

// Cancels takes requests to cancel delayed events, from clients that may not access the stream. Each request costs
// requests to JetStream; the more events have its id, the more. So an owner's requests are carried out one after the
// other, at a limited rate, and do not delay those of other owners. Make it with NewCancels.
type Cancels struct {
	nc      *nats.Conn
	decoder events.Decoder
	store   *Store
	sub     *nats.Subscription
	steps   perowner.Rates
	refuse  perowner.Rates // answers to requests that are not carried out
	limited prometheus.Counter
	life    context.Context //nolint:containedctx // context of the requests, from Open to Close
	end     context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	of     map[string][]unschedule // requests by owner; the first is under way
}

// unschedule is the part of a request's message that is kept.
type unschedule struct{ worker, id, replyTo string }

// NewCancels makes a Cancels. It takes no requests before Open.
func NewCancels(js jetstream.JetStream, d events.Decoder) *Cancels {
	return &Cancels{
		nc: js.Conn(), decoder: d, store: NewStore(js, d.Subjects), of: make(map[string][]unschedule),
		steps:  perowner.Rates{PerSecond: unschedulesPerSecond, Burst: unscheduleBurst},
		refuse: perowner.Rates{PerSecond: unschedulesPerSecond, Burst: unscheduleBurst},
		limited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pinwheel_unschedules_limited_total", Help: "Requests to cancel delayed events that were refused because their owner made too many.",
		}),
	}
}

// Collectors are the metrics of the requests.
func (u *Cancels) Collectors() []prometheus.Collector { return []prometheus.Collector{u.limited} }

// Open subscribes to the requests.
func (u *Cancels) Open() (err error) {
	u.life, u.end = context.WithCancel(context.Background())
	if u.sub, err = u.nc.QueueSubscribe(u.decoder.Subjects.AllUnschedules(), jsapi.Queue, u.take); err != nil {
		u.end()
		return fmt.Errorf("consumer: subscribe to cancellations of delayed events: %w", err)
	}
	return nil
}

// Close takes no more requests; those that have arrived are answered.
func (u *Cancels) Close() {
	if u.sub == nil {
		return
	}
	_ = u.sub.Unsubscribe() // not connected: nothing arrives
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.end()
	u.running.Wait()
}

// take queues one request, or answers at once why not. A request without a reply subject is not counted: NATS sends its
// own answers to any subject.
func (u *Cancels) take(m *nats.Msg) {
	owner, worker, _ := u.decoder.Subjects.ParseUnschedule(m.Subject)
	if m.Reply == "" || u.decoder.CheckReplyTo(m.Reply, owner) != nil {
		return
	}
	r := unschedule{worker, string(m.Data[:min(len(m.Data), events.MaxEventID+1)]), m.Reply}
	if err := checkCancel(owner, worker, r.id); err != nil {
		if u.refuse.Take(owner, time.Now()) {
			u.answer(r, 0, err)
		}
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	queue := u.of[owner]
	if len(queue) >= unscheduleBurst && !guard.RequestRates.Off() || !u.steps.Take(owner, time.Now()) || u.closed {
		u.limited.Inc()
		if !u.refuse.Take(owner, time.Now()) {
			return // an owner gets a few such answers in a second
		}
		u.answer(r, 0, events.Fail(events.ReasonRate, "a process cancels %d delayed events of owner %s in a second: try again", unschedulesPerSecond, owner))
		return
	}
	u.of[owner] = append(queue, r)
	if len(queue) == 0 {
		u.running.Go(func() { u.work(owner) })
	}
}

// work carries out the requests of an owner until there are none.
func (u *Cancels) work(owner string) {
	pace := func(ctx context.Context) error { return u.steps.Wait(ctx, owner) }
	if guard.RequestRates.Off() {
		pace = context.Cause
	}
	for r, ok := u.first(owner), true; ok; r, ok = u.next(owner) {
		ctx, cancel := context.WithTimeout(u.life, unscheduleWait)
		n, err := u.store.cancel(ctx, owner, r.worker, r.id, pace)
		cancel()
		u.answer(r, n, err)
	}
}

func (u *Cancels) first(owner string) unschedule {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[owner][0]
}

// next removes the request that is done and returns the one after it. ok is false when there is none.
func (u *Cancels) next(owner string) (r unschedule, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	queue := u.of[owner]
	queue[0] = unschedule{}
	if queue = queue[1:]; len(queue) == 0 {
		delete(u.of, owner)
		return r, false
	}
	u.of[owner] = queue
	return queue[0], true
}

// answer answers one request. Not connected: the client asks again.
func (u *Cancels) answer(r unschedule, cancelled int, err error) {
	a := events.Unscheduled{Cancelled: cancelled}
	if err != nil {
		a.Error = err.Error()
	}
	body, _ := json.Marshal(a) // a number and a string cannot fail
	_ = u.nc.Publish(r.replyTo, body)
}
