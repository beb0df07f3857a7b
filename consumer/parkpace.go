package consumer

import (
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// parkRound is how many events are being stored among the parked at once.
	parkRound = 64
	// parkRest is the part of a round's time that passes before the next begins: half of it.
	parkRest = 2
	// parkRoundWait is how long a round may keep the next waiting: an answer may be lost.
	parkRoundWait = 2 * time.Second
)

// parkPace lets a backlog be parked in rounds: the next begins when all of the one before are stored, and a little later. Parking as fast
// as it goes keeps nats-server and us so busy that each step of everybody else's events waits its turn (ADR 0014). It belongs to the
// settle goroutine.
type parkPace struct {
	waiting []parkable
	round   uint64    // the present one, from 1
	out     int       // of it that have no answer
	began   time.Time // the present round
	next    time.Time // no round before
	armed   bool      // somebody will ask when it is time for next
}

// parkable is an event that is to be parked.
type parkable struct {
	h      *held
	m      *nats.Msg
	absent bool // it is certain that it is not stored
}

// take is the next round, or nothing when it is not time for one.
func (p *parkPace) take(now time.Time) []parkable {
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

// answered notes an answer to one of a round.
func (p *parkPace) answered(round uint64, now time.Time) {
	if round != p.round || p.out == 0 {
		return
	}
	if p.out--; p.out == 0 {
		p.next = now.Add(now.Sub(p.began) / parkRest)
	}
}

// parkInTurn parks an event when it is its turn.
func (c *Consumer) parkInTurn(p parkable) {
	c.pace.waiting = append(c.pace.waiting, p)
	c.parkRound(time.Now())
}

// parkRound begins a round if it is time for one, and else sees to it that it begins when it is. Without a connection that is some tick
// of the settle goroutine after there is one again.
func (c *Consumer) parkRound(now time.Time) {
	if len(c.pace.waiting) == 0 || !c.nc.IsConnected() {
		return
	}
	for _, p := range c.pace.take(now) {
		c.publishParked(p, c.pace.round)
	}
	if p := &c.pace; len(p.waiting) > 0 && p.out == 0 && !p.armed {
		p.armed = true
		c.doIn(p.next.Sub(now), func() { p.armed = false; c.parkRound(time.Now()) })
	}
}
