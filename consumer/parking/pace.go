package parking

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// parkRound is the maximum number of events that are parked at once.
	parkRound = 64
	// The pause before the next round is 1/parkRest of the round's time.
	parkRest = 2
	// parkRoundWait is the longest time that the next round waits for a round's answers: an answer may be lost.
	parkRoundWait = 2 * time.Second
)

// pace parks a backlog in rounds. A round begins a little after all events of the round before are stored. Parking at
// full speed keeps nats-server and this process so busy that each step of every other owner's events has to wait (ADR
// 0014). It belongs to the loop of the client.
type pace struct {
	waiting []parkable
	round   uint64    // number of the current round, from 1
	out     int       // events of the round without an answer
	began   time.Time // of the current round
	next    time.Time // no round before
	armed   bool      // a timer fires when it is time for next
}

// parkable is an event that is to be parked.
type parkable struct {
	e      *events.Event
	m      *nats.Msg
	absent bool // it is certainly not stored
	tries  *jsapi.Retrier
	goOn   func() bool
	done   func(stored bool, err error)
}

// take returns the next round, or nothing when it is not time for one.
func (p *pace) take(now time.Time) []parkable {
	if p.out > 0 && now.Sub(p.began) < parkRoundWait || now.Before(p.next) {
		return nil
	}
	n := min(len(p.waiting), parkRound)
	batch := append([]parkable(nil), p.waiting[:n]...)
	rest := copy(p.waiting, p.waiting[n:])
	clear(p.waiting[rest:])
	p.waiting = p.waiting[:rest]
	p.round++
	p.out, p.began = n, now
	return batch
}

// answered notes the answer to one event of a round.
func (p *pace) answered(round uint64, now time.Time) {
	if round != p.round || p.out == 0 {
		return
	}
	if p.out--; p.out == 0 {
		p.next = now.Add(now.Sub(p.began) / parkRest)
	}
}
