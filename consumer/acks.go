package consumer

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/bodies"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
)

// Bodies of messages to an ack subject. An empty body acks.
var (
	nakBody      = []byte("-NAK")
	progressBody = []byte("+WPI")
)

// group is acks of one source that are confirmed together. The server handles the acks of one connection to one
// consumer in order, so its confirmation of the last ack confirms all. That holds only within one connection and one
// life of the consumer; see confirmed and send.
type group struct {
	events     []*entry
	reconnects uint64 // of the connection when it was sent
	tries      *jsapi.Retrier
}

// acks sends acks, and asks the server to confirm them. Its methods run on the settle goroutine, except open.
//
// Nobody waits for a confirmation as long as the window has room: the settle goroutine handles it when it is awake for
// something else, or at its next tick. So an event wakes two goroutines less.
type acks struct {
	api            *jsapi.Client
	requests       *jsapi.Requester
	answers        chan *nats.Msg
	waits          func() bool // see demand
	inflight       *inflight
	metrics        *metrics
	cfg            Config
	attempts       *attempts.Store
	parts          *bodies.Parts
	republishReply func(h *entry) // publishes the reply to h again
	lost           func(h *entry) // the lease of h is over
	step           func(Step)
	sources        []*source // scratch: sources with acks to send
	subjects       []string  // scratch
}

// open subscribes to confirmations.
func (a *acks) open(window int) error {
	a.answers = make(chan *nats.Msg, window) // each is of at least one event in flight
	return a.requests.OpenTo(a.answers)
}

// awaited returns where confirmations arrive, or nil while they can wait.
func (a *acks) awaited() <-chan *nats.Msg {
	if a.waits() {
		return a.answers
	}
	return nil
}

// take handles the confirmations that have arrived.
func (a *acks) take() {
	for range len(a.answers) {
		a.requests.Answer(<-a.answers)
	}
}

// expire handles the confirmations that have arrived, and gives up those that should have arrived before now.
func (a *acks) expire(now time.Time) {
	a.take()
	a.requests.Expire(now)
}

// queue queues the ack of h; send sends it.
func (a *acks) queue(h *entry) {
	if len(h.from.acks) == 0 {
		a.sources = append(a.sources, h.from)
	}
	h.from.acks = append(h.from.acks, h)
}

// send sends the queued acks.
func (a *acks) send() {
	for _, s := range a.sources {
		g := &group{events: make([]*entry, 0, len(s.acks))}
		epoch := s.epoch.Load()
		for _, h := range s.acks {
			switch {
			case h.is(orphaned): // since it was queued
			case h.epoch == epoch: // may race with adopt: harmless, either order is correct
				g.events = append(g.events, h)
			case a.inflight.unsure(h):
				a.api.DoIn(unsureWait, func() { a.queue(h) })
			default:
				a.sendGroup(&group{events: []*entry{h}})
			}
		}
		if len(g.events) > 0 {
			a.sendGroup(g)
		}
		clear(s.acks)
		s.acks = s.acks[:0]
	}
	a.sources = a.sources[:0]
}

// sendGroup sends the acks of a group, the last of them as a request.
func (a *acks) sendGroup(g *group) {
	g.reconnects = a.api.NC.Stats().Reconnects
	a.republish(g)
	last := len(g.events) - 1
	subjects := a.ackSubjects(g.events)
	for _, subject := range subjects[:last] {
		if err := a.api.NC.Publish(subject, nil); err != nil {
			a.unconfirmed(g)
			return
		}
	}
	a.metrics.acks.Add(float64(len(g.events)))
	a.requests.Ask(&nats.Msg{Subject: subjects[last]}, a.api.Wait, time.Now(), func(_ *nats.Msg, err error) {
		a.confirmed(g, err)
	})
	a.step(StepAcked)
}

// republish publishes again the replies that were sent on an earlier connection: its buffers are lost. Publishers
// recognize duplicates by their id.
func (a *acks) republish(g *group) {
	for _, h := range g.events {
		if h.reply != nil && h.repliedOn != g.reconnects {
			h.repliedOn = g.reconnects
			a.republishReply(h)
		}
	}
}

// ackSubjects returns the ack subjects of events. The settle goroutine reuses the slice.
func (a *acks) ackSubjects(batch []*entry) []string {
	a.subjects = a.subjects[:0]
	a.inflight.mu.Lock()
	for _, h := range batch {
		h.acked = h.ack
		a.subjects = append(a.subjects, h.ack)
	}
	a.inflight.mu.Unlock()
	return a.subjects
}

// confirmed ends the events of a group whose acks the server has handled.
func (a *acks) confirmed(g *group, err error) {
	if err != nil || a.api.NC.Stats().Reconnects != g.reconnects {
		if errors.Is(err, nats.ErrNoResponders) { // the consumer no longer exists
			a.api.Missing()
		}
		a.unconfirmed(g)
		return
	}
	a.step(StepConfirmed)
	for _, h := range g.events {
		if h.record != nil && h.is(acking) {
			a.attempts.Forget(&h.event.Event)
		}
		if !h.dead { // a replay needs its body
			a.parts.Drop(&h.event)
		}
	}
	now := time.Now()
	until := now.Add(knownFor * a.cfg.AckWait)
	if g.tries != nil {
		a.inflight.remember(g.events, now, until)
	}
	if again := a.inflight.confirmed(g.events, g.reconnects, now, until); len(again) > 0 {
		a.sendEach(again, g.tries)
	}
}

// unconfirmed sends a group again after a while, with its replies, until the leases are over.
func (a *acks) unconfirmed(g *group) {
	if g.tries == nil {
		g.tries = jsapi.NewRetrier(a.cfg.AckWait)
	}
	if a.api.Retry(g.tries, func() { a.resend(g) }) {
		return
	}
	for _, h := range g.events {
		if !h.is(orphaned) {
			a.lost(h)
		}
	}
}

func (a *acks) resend(g *group) {
	if !a.api.NC.IsConnected() {
		a.unconfirmed(g)
		return
	}
	a.metrics.ackRetries.Inc()
	a.sendEach(g.events, g.tries)
}

// sendEach sends acks again, one by one: an ack that the server refuses must not hold up the others.
func (a *acks) sendEach(batch []*entry, tries *jsapi.Retrier) {
	for _, h := range batch {
		if !h.is(orphaned) {
			a.sendGroup(&group{events: []*entry{h}, tries: tries})
		}
	}
}

// unsureWait is how long an ack waits between two checks whether its stream is still the same.
const unsureWait = 50 * time.Millisecond
