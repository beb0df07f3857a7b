package consumer

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/janitor"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/parking"
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

// pump grants free slots to lanes. First each lane gets its reserve. Then the lanes that use up their credits get the
// rest. Without force it skips grants that are too small to be worth a request.
func (p *puller) pump(now time.Time, force bool) {
	if !p.c.nc.IsConnected() {
		return
	}
	if p.full {
		p.active.count(now)
	} else {
		p.active.skip(now)
	}
	was := p.demand.unmet.Swap(true) // what leaves from now on is not in free
	free := p.c.cfg.Window - p.c.inflight.taken() - p.total
	reserve, skipped := p.reserve(), false
	p.full, p.coming = false, p.onTheirWay()
	for i := range p.lanes {
		l := p.lanes[(p.startAt+i)%len(p.lanes)]
		p.raise(l, now)
		if free <= 0 || l.credits > reserve/2 || !l.ready(now) {
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
	if free > 0 && p.pumpBusy(free, now, force) {
		skipped = true
	}
	if skipped {
		p.nudge.Reset(nudgeAfter)
	} else if p.full {
		p.nudge.Reset(activeCheck)
	}
	p.startAt++
	p.credits.Store(int64(p.total))
	failed := slices.ContainsFunc(p.lanes, func(l *lane) bool { return !l.ready(now) })
	unmet := free <= 0 || skipped || failed || p.full || len(p.parked) > 0
	p.demand.unmet.Store(unmet)
	if unmet && !was {
		jsapi.Signal(p.c.api.Wake) // confirmations are awaited now
	}
}

// pumpParked grants free slots for parked events: as many as their owners have room for, and at most half of the free
// slots. It returns how many it granted.
func (p *puller) pumpParked(free int, now time.Time) int {
	granted := 0
	for _, l := range p.parked {
		if l.credits > 0 || !l.ready(now) {
			continue
		}
		n := 0
		p.c.parked.Use(l.owner, func(room int) int {
			n = max(0, min(room, free/2-granted, p.c.cfg.chunk(), p.byteRoom(l), cmp.Or(l.first, room)))
			return room - n
		})
		if n > 0 {
			got := p.grant(l, n, busyExpiry, now)
			granted, l.first = granted+got, 0
			p.c.parked.Use(l.owner, func(room int) int { return room + n - got })
		}
	}
	return granted
}

// pumpBusy grants free slots in equal parts to the lanes that are running low; it returns true when it skipped a grant
// because it was too small.
func (p *puller) pumpBusy(free int, now time.Time, force bool) (skipped bool) {
	busy := 0
	for _, l := range p.lanes {
		if p.more(l, now) > 0 {
			busy++
		}
	}
	if busy == 0 {
		return false
	}
	part := max(free/busy, p.c.cfg.chunk())
	for i := range p.lanes {
		l := p.lanes[(p.startAt+i)%len(p.lanes)]
		want := p.more(l, now)
		if free <= 0 || want <= 0 {
			continue
		}
		n := min(want, part, free)
		if n < min(want, p.c.cfg.chunk()) && !force {
			skipped = true
			continue
		}
		free -= p.grant(l, n, busyExpiry, now)
	}
	return skipped
}

// raise doubles the target of a lane that has used up half of it, if more messages wait in the stream or the lane asked
// less than 5 ms ago. Call it before the lane gets its reserve again; after that, no lane would seem to need more.
func (p *puller) raise(l *lane, now time.Time) {
	if l.credits*2 > l.target || !l.ready(now) {
		return
	}
	if l.pending > uint64(l.credits) || now.Sub(l.asked) < 5*time.Millisecond {
		l.target = min(max(2*l.target, l.target+1), cmp.Or(l.most, p.c.cfg.Window-(len(p.lanes)-1)*p.reserve()))
	}
}

// more is how many events a lane should be asked for beyond its reserve; 0 when it is not running low, or has no room.
func (p *puller) more(l *lane, now time.Time) int {
	if l.credits*2 > l.target || l.target <= p.reserve() || !l.ready(now) {
		return 0
	}
	return min(l.target-l.credits, p.room(l))
}

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

// grant asks for n messages and returns how many it asked for.
func (p *puller) grant(l *lane, n int, expiry time.Duration, now time.Time) int {
	if l.sub == nil {
		l.inbox = p.c.nc.NewInbox()
		sub, err := p.c.nc.ChanSubscribe(l.inbox, p.msgs)
		if err != nil {
			l.backOff(now)
			return 0
		}
		l.sub = sub
		p.subs[sub] = l
	}
	b := append(p.request[:0], `{"batch":`...)
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(b, `,"max_bytes":`...)
	b = strconv.AppendInt(b, int64(l.mostBytes(n, p.c.nc.MaxPayload())), 10)
	b = append(b, `,"expires":`...)
	b = strconv.AppendInt(b, int64(expiry*p.c.cfg.Heartbeat), 10)
	b = append(b, `,"idle_heartbeat":`...)
	b = strconv.AppendInt(b, int64(p.c.cfg.Heartbeat), 10)
	b = append(b, '}')
	p.request = b
	if err := p.c.nc.PublishRequest(l.subject, l.inbox, b); err != nil {
		l.backOff(now)
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

// pullParked is parking.Config.Pull.
func (p *puller) pullParked(ctx context.Context, owner string, first int) error {
	l := newLane(events.StreamParked, parking.ConsumerName(owner), 0)
	l.owner, l.src.owner, l.first, l.anchor = owner, owner, first, janitor.AnchorOf(p.anchors, events.StreamParked)
	select {
	case p.parkedLanes <- l:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// overtakeConfig returns the settings for overtaking the backlog of a lane.
func overtakeConfig(c *Consumer) parking.OvertakeConfig {
	cfg := parking.OvertakeConfig{
		Prefix: c.cfg.Prefix, Decoder: c.decoder, Catalog: c.cfg.Catalog, Least: c.cfg.Overtake,
		Backlogged: func(lane int) bool { return c.puller.lanes[lane].backlogged.Load() }, // lanes never change
	}
	for lane := range events.Lanes {
		cfg.Lanes = append(cfg.Lanes, laneName(lane))
	}
	if step := c.cfg.Step; step != nil {
		cfg.Copied = func() { step(StepOvertaken) }
	}
	return cfg
}
