package consumer

import (
	"cmp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// lane is one JetStream consumer as the puller sees it. Its requests share one inbox.
type lane struct {
	src     *source
	subject string // that requests go to
	sub     *nats.Subscription
	inbox   string

	credits int           // asked for and neither delivered nor given back
	target  int           // credits it may have; grows when they are used up quickly
	most    int           // bound of target; 0 = what the reserves of the others leave
	pending uint64        // messages that waited in the stream at the last delivery
	heard   time.Time     // last word from the server, or when it was asked after having nothing
	asked   time.Time     // last request
	retryAt time.Time     // no request before
	fails   int           // in a row
	owner   string        // of a lane of parked events
	first   int           // bound of such a lane's next request; 0 = none
	size    int           // bytes of a message, about
	changes uint64        // of its events, when it was looked at last
	moved   time.Duration // by puller.able, when that was another number than before
	maxSeq  uint64        // highest stream sequence that came as a first delivery
	pin     *pin          // of its stream, if that has one
	far     atomic.Bool   // so many messages wait that events may overtake
}

func newLane(stream, consumer string, target int) *lane {
	return &lane{
		src:     &source{stream: stream, consumer: consumer},
		subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer,
		target:  target,
	}
}

// putOff sets when a lane that was refused may ask again: 20 ms after the first refusal, doubling to 2.5 s.
func (l *lane) putOff(now time.Time) {
	l.retryAt = now.Add(20 * time.Millisecond << min(l.fails, 7))
	l.fails++
}

// Requests of idle lanes live long; those of busy ones give back soon what they did not use,
// should the lane fall idle and another need it.
const (
	idleExpiry = 15 // heartbeats
	busyExpiry = 2  // the server allows no less
)

// pump grants free slots to lanes: first each its reserve, then the rest to those that use theirs up.
// Without force it leaves out grants that are too small to be worth a request.
func (p *puller) pump(now time.Time, force bool) {
	if !p.c.nc.IsConnected() {
		return
	}
	p.able.look(now)
	free := p.c.cfg.Window - p.c.table.len() - p.total
	reserve, skipped := p.reserve(), false
	p.full, p.coming = false, p.onTheirWay()
	for i := range p.lanes {
		l := p.lanes[(p.turn+i)%len(p.lanes)]
		p.raise(l, now)
		if free <= 0 || l.credits > reserve/2 || !p.ready(l, now) {
			continue
		}
		if want := min(reserve-l.credits, p.room(l)); want > 0 {
			n := min(want, free)
			if n < want && n < reserve/2 && !force {
				skipped = true
				continue
			}
			free -= p.grant(l, n, idleExpiry, now)
		}
	}
	free -= p.pumpParked(free, now)
	if free > 0 && p.share(free, now, force) || skipped {
		p.nudge.Reset(nudgeAfter)
	} else if p.full {
		p.nudge.Reset(ableLook)
	}
	p.turn++
	p.credits.Store(int64(p.total))
}

// pumpParked grants free slots for parked events, as many as their owners have room for, and at most
// half of what is free to all. It returns how many it granted.
func (p *puller) pumpParked(free int, now time.Time) int {
	granted := 0
	for _, l := range p.parked {
		if l.credits > 0 || !p.ready(l, now) {
			continue
		}
		n := 0
		p.c.parking.use(l.owner, func(room int) int {
			n = max(0, min(room, free/2-granted, p.chunk(), p.byteRoom(l), cmp.Or(l.first, room)))
			return room - n
		})
		if n > 0 {
			got := p.grant(l, n, busyExpiry, now)
			granted, l.first = granted+got, 0
			p.c.parking.use(l.owner, func(room int) int { return room + n - got })
		}
	}
	return granted
}

// share grants free slots in equal parts to the lanes that are running low; true when it left
// any out because the grant was too small.
func (p *puller) share(free int, now time.Time, force bool) (skipped bool) {
	busy := 0
	for _, l := range p.lanes {
		if p.more(l, now) > 0 {
			busy++
		}
	}
	if busy == 0 {
		return false
	}
	part := max(free/busy, p.chunk())
	for i := range p.lanes {
		l := p.lanes[(p.turn+i)%len(p.lanes)]
		want := p.more(l, now)
		if free <= 0 || want <= 0 {
			continue
		}
		n := min(want, part, free)
		if n < min(want, p.chunk()) && !force {
			skipped = true
			continue
		}
		free -= p.grant(l, n, busyExpiry, now)
	}
	return skipped
}

// raise doubles the target of a lane that ran through half of the present one and of which the stream has more, or that did so within
// milliseconds. It comes before the lane gets its reserve again, or none would ever be seen to need more.
func (p *puller) raise(l *lane, now time.Time) {
	if l.credits*2 > l.target || !p.ready(l, now) {
		return
	}
	if l.pending > uint64(l.credits) || now.Sub(l.asked) < 5*time.Millisecond { //nolint:gosec // never negative
		l.target = min(max(2*l.target, l.target+1), cmp.Or(l.most, p.c.cfg.Window-(len(p.lanes)-1)*p.reserve()))
	}
}

// more is how many events a lane should be asked for beyond its reserve; 0 when it is not running low, or has no room.
func (p *puller) more(l *lane, now time.Time) int {
	if l.credits*2 > l.target || l.target <= p.reserve() || !p.ready(l, now) {
		return 0
	}
	return min(l.target-l.credits, p.room(l))
}

func (p *puller) ready(l *lane, now time.Time) bool { return !now.Before(l.retryAt) }

// grant asks for n messages and returns how many it asked for.
func (p *puller) grant(l *lane, n int, expiry time.Duration, now time.Time) int {
	if l.sub == nil {
		l.inbox = p.c.nc.NewInbox()
		sub, err := p.c.nc.ChanSubscribe(l.inbox, p.msgs)
		if err != nil {
			l.putOff(now)
			return 0
		}
		l.sub = sub
		p.subs[sub] = l
	}
	b := append(p.request[:0], `{"batch":`...)
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(b, `,"expires":`...)
	b = strconv.AppendInt(b, int64(expiry*p.c.cfg.Heartbeat), 10)
	b = append(b, `,"idle_heartbeat":`...)
	b = strconv.AppendInt(b, int64(p.c.cfg.Heartbeat), 10)
	b = append(b, '}')
	p.request = b
	if err := p.c.nc.PublishRequest(l.subject, l.inbox, b); err != nil {
		l.putOff(now)
		return 0
	}
	if l.credits == 0 {
		l.heard = now
	}
	l.asked = now
	l.credits += n
	p.total += n
	p.coming += n * l.size
	return n
}
