package jsapi

import (
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

const (
	// roundMost is the maximum number of messages that are stored at once.
	roundMost = 64
	// The pause before the next round is 1/roundRest of the round's time.
	roundRest = 2
	// roundWait is the longest time that the next round waits for a round's answers: an answer may be lost.
	roundWait = 2 * time.Second
)

// Rounds stores a backlog of messages in rounds. A round begins a little after all messages of the round before are
// stored. Storing at full speed keeps nats-server and this process so busy that each step of every other owner's events
// has to wait (ADR 0014). The owners of a backlog take turns. Rounds belongs to the loop of its Client. Make it with
// NewRounds.
type Rounds struct {
	api   *Client
	lines perowner.Lines[Storing] // messages that wait
	round uint64                  // number of the current round, from 1
	out   int                     // messages of the round without an answer
	began time.Time               // of the current round
	next  time.Time               // no round before
	armed bool                    // a timer fires when it is time for next
}

// Storing begins to store a message. It calls answered once, on the loop, when the server has answered or when nothing
// is stored after all.
type Storing func(answered func())

// NewRounds makes Rounds.
func NewRounds(api *Client) *Rounds { return &Rounds{api: api} }

// Add queues a message of an owner. begin is called when its turn comes: at once if nothing else waits.
func (r *Rounds) Add(owner string, begin Storing) {
	r.lines.Push(owner, begin)
	r.Tick(time.Now())
}

// Tick begins a round if it is time for one, and otherwise sets a timer for it. Without a connection it does nothing.
// The first call after the reconnect begins the round, so call it regularly.
func (r *Rounds) Tick(now time.Time) {
	if r.lines.Owners() == 0 || !r.api.NC.IsConnected() {
		return
	}
	if batch := r.take(now); len(batch) > 0 {
		round := r.round
		answered := func() {
			now := time.Now()
			r.answered(round, now)
			r.Tick(now)
		}
		for _, begin := range batch {
			begin(answered)
		}
	}
	if r.lines.Owners() > 0 && r.out == 0 && !r.armed {
		r.armed = true
		r.api.DoIn(r.next.Sub(now), func() { r.armed = false; r.Tick(time.Now()) })
	}
}

// take returns the next round, or nothing when it is not time for one.
func (r *Rounds) take(now time.Time) (batch []Storing) {
	if r.out > 0 && now.Sub(r.began) < roundWait || now.Before(r.next) {
		return nil
	}
	for len(batch) < roundMost {
		begin, ok := r.lines.Pop()
		if !ok {
			break
		}
		batch = append(batch, begin)
	}
	r.round++
	r.out, r.began = len(batch), now
	return batch
}

// answered notes the answer to one message of a round.
func (r *Rounds) answered(round uint64, now time.Time) {
	if round != r.round || r.out == 0 {
		return
	}
	if r.out--; r.out == 0 {
		r.next = now.Add(now.Sub(r.began) / roundRest)
	}
}
