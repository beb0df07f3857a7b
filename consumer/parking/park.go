package parking

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Parker parks events. Its methods are for the loop of its Client.
type Parker struct {
	owners *Owners
	api    *jsapi.Client
	usage  *storage.Usage
	prefix events.Subjects
	log    zerolog.Logger
	rounds *jsapi.Rounds
}

// NewParker makes a Parker.
func NewParker(l *Owners, api *jsapi.Client, usage *storage.Usage, log zerolog.Logger) *Parker {
	return &Parker{owners: l, api: api, usage: usage, prefix: l.cfg.Prefix, log: log, rounds: jsapi.NewRounds(api)}
}

// Try is the state of parking an event, which may take several tries. Its zero value is the first try.
type Try struct {
	// GoOn reports whether the event is still to be parked. Park then calls done; otherwise it gives up without.
	GoOn func() bool
	// Held: the event waits until its worker is resumed, apart from those of other workers.
	Held  bool
	tries *jsapi.Retrier
}

// Park stores e with record, of its runs, in the stream of parked events when its turn comes, and calls done with true
// once e is stored and may be acked. After a crash in between, e is parked again, and JetStream recognizes it by its
// message id. If JetStream refuses e, and it is certain that e is not stored, Park calls done with false and the error
// after a while. Dispatch then decides again, because the stream may be full of events that find no room in the window
// while events wait here to be parked.
//
// Park counts e for Owners.Emptied, from the call until just before done.
func (p *Parker) Park(e *lifecycle.Delivery, record string, try *Try, done func(stored bool, err error)) {
	p.owners.places.opened(e)
	if try.tries == nil { // else it was refused before
		try.tries = jsapi.NewRetrier(0)
	}
	m := Message(&e.Event, e.Runs, record, p.prefix, p.api.NC.MaxPayload())
	if try.Held {
		m.Subject = events.Held(m.Subject)
	}
	p.enqueue(parkable{e: e, m: m, absent: true, held: try.Held, tries: try.tries, goOn: try.GoOn, done: done})
}

// Message is e as it is stored among the parked events, with the record of its runs if that is not empty. A message has
// at most maxPayload bytes.
func Message(e *events.Event, runs events.Runs, record string, prefix events.Subjects, maxPayload int64) *nats.Msg {
	header := jsapi.AsideHeader(e, runs, len(record), maxPayload)
	header.Set(events.HeaderMsgID, events.ParkedID(e))
	if record != "" {
		header.Set(events.ParkedRecord, record)
	}
	return &nats.Msg{Subject: prefix.Parked(e), Header: header, Data: e.Body}
}

// parkable is an event that is to be parked.
type parkable struct {
	e      *lifecycle.Delivery
	m      *nats.Msg
	absent bool // it is certainly not stored
	held   bool
	tries  *jsapi.Retrier
	goOn   func() bool
	done   func(stored bool, err error)
}

func (p *Parker) enqueue(x parkable) {
	p.rounds.Add(x.e.Owner, func(answered func()) { p.publish(x, answered) })
}

// Round begins a round if it is time for one. Call it regularly.
func (p *Parker) Round(now time.Time) { p.rounds.Tick(now) }

func (p *Parker) publish(x parkable, answered func()) {
	p.api.Store(x.m, func(ack jsapi.Ack, err error) {
		answered()
		if err != nil {
			p.again(x, err)
			return
		}
		p.usage.Grew(events.StreamParked, len(x.m.Data))
		p.owners.places.closed(x.e, ack.Seq)
		x.done(true, nil)
		if !x.held && p.owners.places.wants(x.e.Owner) {
			p.owners.LookAgain()
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
			p.owners.places.closed(x.e, 0)
			x.done(false, err)
			return
		}
		if !x.goOn() {
			p.owners.places.closed(x.e, 0)
			return
		}
		x.absent = false
		p.enqueue(x)
	})
}
