package consumer

import (
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/janitor"
	"github.com/pinwheel-run/pinwheel/events"
)

// lane is one JetStream consumer as the puller sees it. Its requests share one inbox.
type lane struct {
	src     *source
	subject string // of its requests
	sub     *nats.Subscription
	inbox   string

	credits    int             // messages asked for that were neither delivered nor given back
	target     int             // maximum of credits; grows when they are used up quickly
	most       int             // maximum of target; 0 = what the reserves of the others leave
	pending    uint64          // messages that waited in the stream at the last delivery
	heard      time.Time       // last message from the server, or the first request after credits were 0; see beat
	asked      time.Time       // last request
	retryAt    time.Time       // no request before
	fails      int             // in a row
	owner      string          // for a lane of parked events
	first      int             // for a lane of parked events: maximum of its next request; 0 = none
	size       int             // about the bytes of a message
	least      int             // the least bytes that a request allows, if a message is longer than the server allows now
	changes    uint64          // its flow's changes at the last check
	moved      time.Duration   // by puller.active, when changes last differed
	maxSeq     uint64          // highest stream sequence that came as a first delivery
	anchor     *janitor.Anchor // of its stream, if the stream has one
	backlogged atomic.Bool     // so many messages wait that events may overtake them
}

func newLane(stream, consumer string, target int) *lane {
	return &lane{
		src:     &source{stream: stream, consumer: consumer},
		subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer,
		target:  target,
	}
}

// backOff sets when a lane whose request failed may ask again: 20 ms after the first failure, doubling to 2.5 s.
func (l *lane) backOff(now time.Time) {
	l.retryAt = now.Add(20 * time.Millisecond << min(l.fails, 7))
	l.fails++
}

// Requests of idle lanes live long. Requests of busy lanes soon give back their unused credits, in case the lane
// becomes idle and another lane needs them.
const (
	idleExpiry = 15 // heartbeats
	busyExpiry = 2  // the minimum that the server allows
)

// messageSlack is more than the bytes that the server counts in addition to a message: its subjects.
const messageSlack = 64 << 10

func (l *lane) ready(now time.Time) bool { return !now.Before(l.retryAt) }

// mostBytes is how many bytes the messages of a request for n messages may have together. The server ends a request
// before a message that would exceed it, so that messages that are larger than expected do not exceed the window. One
// message always fits.
func (l *lane) mostBytes(n int, maxPayload int64) int {
	return max(n*PlaceBytes, int(maxPayload)+messageSlack, l.least)
}

// grow notes that the server has ended a request that allowed left more bytes. If every message that the server takes
// now would have fitted, the next one was stored when it took longer ones: from now on the lane's requests allow it.
func (l *lane) grow(left int, maxPayload int64) {
	if left >= int(maxPayload)+messageSlack {
		l.least = 2 * left
	}
}

// sweptLanes lists the lanes whose acked messages the janitor sweeps.
func sweptLanes(lanes []*lane) (swept []janitor.Lane) {
	for _, l := range lanes { // the list never changes
		swept = append(swept, janitor.Lane{Stream: l.src.stream, Consumer: l.src.consumer})
	}
	return swept
}

// dueLanes returns the puller's lanes for events that are due. Each owner uses one of these lanes. Its events that run
// for the second time or later are never parked, so each lane takes at most its part of the window.
func dueLanes(cfg Config, reserve int) []*lane {
	var lanes []*lane
	for i := range events.DueLanes {
		l := newLane(events.StreamSchedules, dueName(i), reserve)
		l.most = max(reserve, cfg.Window/events.DueLanes)
		lanes = append(lanes, l)
	}
	return lanes
}

// weigh adjusts the message size that byteRoom uses: quickly for large messages, slowly for small ones.
func (l *lane) weigh(size int) {
	if size > l.size {
		l.size += (size - l.size + 3) / 4
	} else {
		l.size -= (l.size - size) / 64
	}
}
