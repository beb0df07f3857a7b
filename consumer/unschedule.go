package consumer

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// Bounds of requests to cancel delayed events.
const (
	// unscheduleWait bounds what one request may take.
	unscheduleWait = 10 * time.Second
	// unschedulesPerSecond is how many requests of an owner, and events that these find, a process works at in a second.
	unschedulesPerSecond = 100
	// unscheduleBurst is how many of them may come at once.
	unscheduleBurst = 200
)

// unschedules takes requests to cancel delayed events, from those who may not touch the stream. Each costs requests to JetStream, the more the
// more events have its id. So those of an owner are carried out one after the other, at a rate, and hold up nobody else's.
type unschedules struct {
	c         *Consumer
	schedules *Schedules
	sub       *nats.Subscription
	steps     rates
	life      context.Context //nolint:containedctx // of the requests: from open to close
	end       context.CancelFunc
	running   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	of     map[string][]unschedule // requests by owner; the first is under way
}

// unschedule is a request: what is kept of its message.
type unschedule struct{ worker, id, replyTo string }

// openUnschedule subscribes to the requests.
func (c *Consumer) openUnschedule() (*unschedules, error) {
	u := &unschedules{
		c: c, schedules: NewSchedules(c.js, c.cfg.Prefix), of: make(map[string][]unschedule),
		steps: rates{perSecond: unschedulesPerSecond, burst: unscheduleBurst},
	}
	u.life, u.end = context.WithCancel(context.Background())
	var err error
	if u.sub, err = c.nc.QueueSubscribe(c.cfg.Prefix.AllUnschedules(), callQueue, u.take); err != nil {
		u.end()
		return nil, fmt.Errorf("consumer: subscribe to cancellations of delayed events: %w", err)
	}
	return u, nil
}

// close takes no more requests; those that have arrived are answered.
func (u *unschedules) close() {
	_ = u.sub.Unsubscribe() // not connected: nothing arrives
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.end()
	u.running.Wait()
}

// take queues one request, or says at once why not. Who is answered by nobody is not charged: NATS has its own answers sent anywhere.
func (u *unschedules) take(m *nats.Msg) {
	owner, worker, _ := u.c.cfg.Prefix.ParseUnschedule(m.Subject)
	if m.Reply == "" || u.c.decoder.CheckReplyTo(m.Reply, owner) != nil {
		return
	}
	r := unschedule{worker, string(m.Data[:min(len(m.Data), events.MaxEventID+1)]), m.Reply}
	if err := checkCancel(owner, worker, r.id); err != nil {
		u.answer(r, 0, err)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	queue := u.of[owner]
	if len(queue) >= unscheduleBurst && !guard.RequestRates.Off() || !u.steps.take(owner, time.Now()) || u.closed {
		u.c.metrics.unschedulesLimited.Inc()
		u.answer(r, 0, events.Fail(events.ReasonRate, "a process cancels %d delayed events of owner %s in a second: try again", unschedulesPerSecond, owner))
		return
	}
	u.of[owner] = append(queue, r)
	if len(queue) == 0 {
		u.running.Go(func() { u.work(owner) })
	}
}

// work carries out the requests of an owner until there are none.
func (u *unschedules) work(owner string) {
	limiter := u.steps.limiter(owner, time.Now())
	pace := limiter.Wait
	if guard.RequestRates.Off() {
		pace = context.Cause
	}
	for r, ok := u.first(owner), true; ok; r, ok = u.next(owner) {
		ctx, cancel := context.WithTimeout(u.life, unscheduleWait)
		n, err := u.schedules.cancel(ctx, owner, r.worker, r.id, pace)
		cancel()
		u.answer(r, n, err)
	}
}

func (u *unschedules) first(owner string) unschedule {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[owner][0]
}

// next is the request after the one that is done; ok is false when there is none.
func (u *unschedules) next(owner string) (r unschedule, ok bool) {
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

// answer answers one request. Not connected: whoever asks asks again.
func (u *unschedules) answer(r unschedule, cancelled int, err error) {
	a := events.Unscheduled{Cancelled: cancelled}
	if err != nil {
		a.Error = err.Error()
	}
	body, _ := json.Marshal(a) // a number and a string cannot fail
	_ = u.c.nc.Publish(r.replyTo, body)
}
