package consumer

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/janitor"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/parking"
	"github.com/pinwheel-run/pinwheel/events"
)

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
		p.postponed.Reset(postponeFor)
	} else if p.full {
		p.postponed.Reset(activeCheck)
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

// pullParked is parking.Config.Pull.
func (p *puller) pullParked(ctx context.Context, name string, first int) error {
	l := newLane(events.StreamParked, parking.ConsumerName(name), 0)
	l.owner, l.src.owner, l.first, l.anchor = name, name, first, janitor.AnchorOf(p.anchors, events.StreamParked)
	select {
	case p.parkedLanes <- l:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// overtakeConfig returns the settings for overtaking the backlog of a lane.
func (p *puller) overtakeConfig() parking.OvertakeConfig {
	c := p.c
	cfg := parking.OvertakeConfig{
		Prefix: c.cfg.Prefix, Decoder: c.decoder, Catalog: c.cfg.Catalog, Least: c.cfg.Overtake,
		Cancels:    c.cancels,
		Backlogged: func(lane int) bool { return p.lanes[lane].backlogged.Load() }, // lanes never change
	}
	for lane := range events.Lanes {
		cfg.Lanes = append(cfg.Lanes, laneName(lane))
	}
	if step := c.cfg.Step; step != nil {
		cfg.Copied = func() { step(StepOvertaken) }
	}
	return cfg
}

// room is how many more events of l may be asked for.
func (p *puller) room(l *lane) int { return min(p.flowRoom(l), p.byteRoom(l)) }

// expect sets the size of the messages that wait in the stream, so that the lanes need not learn it from the first
// ones.
func (p *puller) expect(size int) {
	for _, l := range p.lanes {
		l.size = size
	}
}

// onTheirWay is about how many bytes were asked for and have not arrived.
func (p *puller) onTheirWay() (bytes int) {
	for l := range p.all {
		bytes += l.credits * l.size
	}
	return bytes
}

// byteRoom is how many more messages may be on their way, if they have the size of the earlier ones. It is 0 until half
// of them have arrived. One message is always allowed.
func (p *puller) byteRoom(l *lane) int {
	size := max(1, l.size)
	most := max(1, laneBytes/size)
	if l.credits*2 > most {
		return 0
	}
	return min(most-l.credits, max((allBytes-p.coming)/size, 1-l.credits))
}

// flowRoom is how many more events may be asked for. It is limited while events are brief, and then 0 or enough to be
// worth a request.
func (p *puller) flowRoom(l *lane) int {
	f := &l.src.flow
	held := int(f.held.Load())
	if changes := f.changes.Load(); changes != l.changes {
		l.changes, l.moved = changes, p.active.total
	}
	if p.c.cfg.LaneHeld == 0 {
		return p.c.cfg.Window
	}
	taken, chunk := held+l.credits, p.c.cfg.chunk()
	if room := p.c.cfg.LaneHeld - taken; room >= chunk {
		return room
	}
	// Events that have ended and wait for NATS fill no owner's queue.
	stuck := held > int(f.acking.Load()) && p.active.total-l.moved >= stuckAfter
	if room := p.c.cfg.slowHeld() - taken; room >= chunk && (stuck || f.slow.Load() >= slowFlow) {
		return room
	}
	p.full = true
	return 0
}

// reserve is how many credits a lane keeps while it is idle. The reserves of all lanes of events together are a quarter
// of the window.
func (p *puller) reserve() int { return max(1, p.c.cfg.Window/(4*events.Lanes)) }
