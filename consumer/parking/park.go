package parking

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
)

// Parker parks events. Its methods are for the loop of its Client.
type Parker struct {
	lot    *Lot
	api    *jsapi.Client
	usage  *storage.Usage
	prefix events.Subjects
	log    zerolog.Logger
	pace   pace
}

// NewParker makes a Parker.
func NewParker(l *Lot, api *jsapi.Client, usage *storage.Usage, log zerolog.Logger) *Parker {
	return &Parker{lot: l, api: api, usage: usage, prefix: l.cfg.Prefix, log: log}
}

// Try is the state of parking an event, which may take several tries. Its zero value is the first try.
type Try struct {
	// GoOn reports whether the event is still to be parked. Park then calls done; otherwise it gives up without.
	GoOn  func() bool
	tries *jsapi.Retrier
}

// Park stores e in the stream of parked events when its turn comes, and calls done with true once e is stored and may
// be acked. After a crash in between, e is parked again, and JetStream recognizes it by its message id. If JetStream
// refuses e, and it is certain that e is not stored, Park calls done with false and the error after a while. Dispatch
// then decides again, because the stream may be full of events that find no room in the window while events wait here
// to be parked.
//
// Park counts e for Lot.Emptied, from the call until just before done.
func (p *Parker) Park(e *events.Event, try *Try, done func(stored bool, err error)) {
	p.lot.places.opened(e)
	if try.tries == nil { // else it was refused before
		try.tries = jsapi.NewRetrier(0)
	}
	p.enqueue(parkable{e: e, m: Message(e, p.prefix, p.api.NC.MaxPayload()), absent: true, tries: try.tries, goOn: try.GoOn, done: done})
}

// Message is e as it is stored among the parked events. A message has at most maxPayload bytes.
func Message(e *events.Event, prefix events.Subjects, maxPayload int64) *nats.Msg {
	header := jsapi.AsideHeader(e, 0, maxPayload)
	header.Set(events.HeaderMsgID, events.ParkedID(e))
	return &nats.Msg{Subject: prefix.Parked(e), Header: header, Data: e.Body}
}

func (p *Parker) enqueue(x parkable) {
	p.pace.waiting = append(p.pace.waiting, x)
	p.Round(time.Now())
}

// Round begins a round if it is time for one, and otherwise sets a timer for it. Without a connection it does nothing.
// The first call after the reconnect begins the round, because Round is called regularly.
func (p *Parker) Round(now time.Time) {
	if len(p.pace.waiting) == 0 || !p.api.NC.IsConnected() {
		return
	}
	for _, x := range p.pace.take(now) {
		p.publish(x, p.pace.round)
	}
	if len(p.pace.waiting) > 0 && p.pace.out == 0 && !p.pace.armed {
		p.pace.armed = true
		p.api.DoIn(p.pace.next.Sub(now), func() { p.pace.armed = false; p.Round(time.Now()) })
	}
}

func (p *Parker) publish(x parkable, round uint64) {
	p.api.Store(x.m, func(ack jsapi.Ack, err error) {
		now := time.Now()
		p.pace.answered(round, now)
		p.Round(now)
		if err != nil {
			p.again(x, err)
			return
		}
		p.usage.Grew(events.StreamParked, len(x.m.Data))
		p.lot.places.closed(x.e, ack.Seq)
		x.done(true, nil)
		if p.lot.places.wants(x.e.Owner) {
			p.lot.LookAgain()
		}
	})
}

func (p *Parker) again(x parkable, err error) {
	p.usage.Published(events.StreamParked, err)
	p.api.Repeats.Warn(err, "event could not be parked; trying again").Str("owner", x.e.Owner).Send()
	_, answered := jsapi.ErrCode(err)
	absent := x.absent && (answered || jsapi.IsRefused(err))
	p.api.Retry(x.tries, func() {
		if absent {
			p.lot.places.closed(x.e, 0)
			x.done(false, err)
			return
		}
		if !x.goOn() {
			p.lot.places.closed(x.e, 0)
			return
		}
		x.absent = false
		p.enqueue(x)
	})
}
