package consumer

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/janitor"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
)

// puller asks the server for messages. One goroutine owns it, except demand and the atomics.
//
// Slots before pulls: credits that the server has not used plus held events never exceed the window. A request allows
// as many bytes as its credits are worth. A credit is spent by a delivery, or given back once by the server's status
// message.
type puller struct {
	c      *Consumer
	msgs   chan *nats.Msg // messages for all lanes
	demand demand
	lanes  []*lane
	// anchors are those of the streams of all lanes, which the janitor moves.
	anchors []*janitor.Anchor
	// parked are the lanes of owners with parked events. They come from parking.Owners, which calls pullParked.
	parked      []*lane
	parkedLanes chan *lane
	subs        map[*nats.Subscription]*lane // current subscriptions only, no earlier ones

	active    activeTime // how long this process could run events
	full      bool       // a lane waits until some of its events end before it asks for more
	total     int        // sum of the lanes' credits
	coming    int        // about how many bytes these are; set and read by pump
	startAt   int        // lane that is first in the next round
	request   []byte
	postponed *time.Timer // fires when a grant was too small to be worth a request at once

	credits atomic.Int64 // total, for Stats
	parking atomic.Int64 // lanes of parked, for Stats
	stalls  atomic.Int64

	beaten       time.Time     // when beat was last called
	heard        time.Time     // when any lane last received something; see beat
	silenceLimit time.Duration // how long the lanes may receive nothing
}

const (
	// collectAtOnce is the maximum number of messages that collect takes from the channel before it passes them on.
	collectAtOnce = 256
	// postponeFor is how long a grant waits when it is too small to be worth a request.
	postponeFor = time.Millisecond
	// laneSilence is after how many heartbeats without a message a lane counts as stalled.
	laneSilence = 2.5
	// serverSilence is how long all lanes may receive nothing from JetStream before the process connects to another
	// server. It doubles each time, up to maxServerSilence.
	serverSilence, maxServerSilence = 10 * time.Second, 2 * time.Minute
)

func newPuller(c *Consumer) *puller {
	p := &puller{
		c: c,
		// Room for the window and for the server's status messages. A message that finds no room would be lost until
		// its lease ends.
		msgs:   make(chan *nats.Msg, 2*c.cfg.Window+64*events.Lanes),
		demand: demand{wake: make(chan struct{}, 1), draining: &c.draining}, subs: make(map[*nats.Subscription]*lane),
		parkedLanes: make(chan *lane), heard: time.Now(), beaten: time.Now(), silenceLimit: serverSilence,
		anchors: janitor.Anchors(c.cfg.Prefix),
	}
	for i := range events.Lanes {
		p.lanes = append(p.lanes, newLane(events.StreamEvents, laneName(i), p.reserve()))
	}
	p.lanes = append(p.lanes, dueLanes(c.cfg, p.reserve())...)
	for _, l := range p.lanes {
		l.anchor = janitor.AnchorOf(p.anchors, l.src.stream)
	}
	return p
}

// run pulls until pull is done. Then it takes no more messages, and gives back those that arrived too late.
func (p *puller) run(pull context.Context) {
	status := p.c.nc.StatusChanged(nats.CONNECTED)
	defer p.c.nc.RemoveStatusListener(status)
	p.postponed = time.NewTimer(time.Hour)
	defer p.postponed.Stop()
	beat := time.NewTicker(p.c.cfg.Heartbeat / 2)
	defer beat.Stop()
	p.pump(time.Now(), false)
	for {
		force := false
		select {
		case <-pull.Done():
			p.stop()
			return
		case m := <-p.msgs:
			p.collect(m)
		case <-p.demand.wake:
		case <-p.postponed.C:
			force = true
		case <-beat.C:
			force = true
			p.beat(time.Now())
		case <-status:
			p.reconnected()
		case <-p.c.maintenance.recreated:
			p.resume()
		case l := <-p.parkedLanes:
			p.addParked(l)
		}
		p.pump(time.Now(), force)
	}
}

// collect takes m and the other messages that have arrived, and passes the events on.
func (p *puller) collect(m *nats.Msg) {
	d := pulled{now: time.Now()}
	p.take(m, &d)
	for range min(len(p.msgs), collectAtOnce-1) { // no other goroutine takes from it
		p.take(<-p.msgs, &d)
	}
	p.credits.Store(int64(p.total))
	p.c.deliver(&d)
	for _, h := range d.last {
		p.c.parked.Emptied(h.from.owner, h.event.Origin.Seq)
	}
}

// take sorts one message. Only its reply subject says whether it is a delivery, because the publisher sets the headers
// and the body.
func (p *puller) take(m *nats.Msg, d *pulled) {
	l := p.subs[m.Sub]
	origin, stored, pending, err := events.ParseAckSubject(m.Reply)
	if err != nil {
		if l != nil {
			p.status(l, m, d.now)
		}
		return
	}
	origin.Subject = m.Subject
	if l == nil {
		// A request that was given up asked for it. It may no longer fit the window.
		if l = p.laneOf(origin); l == nil || p.total+p.c.inflight.taken()+d.places >= p.c.cfg.Window {
			return // its lease will end; nothing is lost
		}
	} else if l.credits > 0 {
		l.credits--
		p.total--
	}
	l.heard, l.pending, l.fails = d.now, pending, 0
	l.weigh(m.Size())
	if l.anchor != nil {
		l.anchor.See(origin.Seq)
	}
	if has := p.c.cfg.hasBacklog(pending); has != l.backlogged.Load() {
		l.backlogged.Store(has)
	}
	p.noteResponse(d.now)
	again := origin.Deliveries > 1
	if !again {
		again = origin.Seq <= l.maxSeq // the consumer started over
		l.maxSeq = max(l.maxSeq, origin.Seq)
	}
	if again {
		found, acked := p.c.inflight.adopt(origin, stored, l.src.epoch.Load(), d.now)
		if acked {
			_ = p.c.nc.Publish(origin.AckSubject, nil) // not connected: it is redelivered, and acked then
		}
		if found {
			if l.owner != "" {
				p.c.parked.Unspent(l.owner)
			}
			return
		}
	}
	d.add(p.c, l.src, m, origin, stored)
	if l.owner != "" && pending == 0 {
		d.last = append(d.last, d.all[len(d.all)-1])
	}
}

func (p *puller) laneOf(o events.Origin) *lane {
	for l := range p.all {
		if l.src.consumer == o.Consumer && l.src.stream == o.Stream {
			return l
		}
	}
	return nil
}

// all iterates over the lanes. The lanes of parked events come last.
func (p *puller) all(yield func(*lane) bool) {
	for _, lanes := range [...][]*lane{p.lanes, p.parked} {
		for _, l := range lanes {
			if !yield(l) {
				return
			}
		}
	}
}

// addParked adds a lane, unless it is there already. Its first message size is the largest of the other lanes, because
// its events came through one of them.
func (p *puller) addParked(l *lane) {
	if p.laneOf(events.Origin{Stream: l.src.stream, Consumer: l.src.consumer}) == nil {
		for _, other := range p.lanes {
			l.size = max(l.size, other.size)
		}
		p.parked = append(p.parked, l)
		p.parking.Store(int64(len(p.parked)))
	}
}

// dropParked forgets a lane whose consumer is gone. parking.Owners creates it again if it is needed.
func (p *puller) dropParked(l *lane) {
	p.reset(l)
	p.parked = slices.DeleteFunc(p.parked, func(other *lane) bool { return other == l })
	p.c.parked.Forget(l.owner)
}

// dropUnparked forgets the lanes of owners that are no longer pulled, once they have no credits left.
func (p *puller) dropUnparked() {
	p.parked = slices.DeleteFunc(p.parked, func(l *lane) bool {
		if l.credits > 0 || p.c.parked.Pulled(l.owner) {
			return false
		}
		p.reset(l)
		return true
	})
	p.parking.Store(int64(len(p.parked)))
}

// status handles a status message of the server about a lane's requests.
func (p *puller) status(l *lane, m *nats.Msg, now time.Time) {
	code, description := m.Header.Get("Status"), m.Header.Get("Description")
	l.heard = now
	if code == "100" {
		l.fails = 0
		p.noteResponse(now)
		return
	}
	if n, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")); err == nil && n >= 0 {
		// A request ended, and gives back its unused credits.
		n = min(n, l.credits)
		l.credits -= n
		p.total -= n
		if left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Bytes")); err == nil && strings.HasPrefix(description,
			"Message Size Exceeds") {
			l.grow(left, p.c.nc.MaxPayload())
		}
		if l.owner != "" {
			p.c.parked.Use(l.owner, func(room int) int { return room + n })
		} else if n*2 > l.target {
			l.target = max(p.reserve(), l.target/2)
		}
		return
	}
	p.c.log.Info().Str("consumer", l.src.consumer).Str("status", code).Str("description", description).
		Msg("JetStream ended the requests of a lane; asking again")
	if code == "404" || code == "503" || (code == "409" && description == "Consumer Deleted") {
		l.src.epoch.Add(1)
		if l.owner != "" {
			if code == "409" {
				jsapi.Signal(p.c.maintenance.suspect) // the server removes unused consumers without a message
			}
			p.dropParked(l)
			return
		}
		p.c.maintenance.recreate()
	}
	p.reset(l)
	l.backOff(now)
}

// beat looks for lanes, and for a server, from which nothing comes. A process that got no processor for a while has
// read nothing: beat leaves out the time that it is late, and takes what has arrived first. A lane that is given up too
// early loses an event until its lease ends, if the window has no more room for it.
func (p *puller) beat(now time.Time) {
	late := max(0, now.Sub(p.beaten)-p.c.cfg.Heartbeat/2)
	p.beaten, p.heard = now, p.heard.Add(late)
	for l := range p.all {
		l.heard = l.heard.Add(late)
	}
	for len(p.msgs) > 0 { // no other goroutine takes from it
		p.collect(<-p.msgs)
	}
	p.checkLaneSilence(now)
	p.checkServerSilence(now)
	p.dropUnparked()
}

// checkLaneSilence asks again on each lane on which the server should have sent something and has not.
func (p *puller) checkLaneSilence(now time.Time) {
	if !p.c.nc.IsConnected() {
		return
	}
	patience := time.Duration(laneSilence * float64(p.c.cfg.Heartbeat))
	for l := range p.all {
		if l.credits > 0 && now.Sub(l.heard) > patience {
			p.stalls.Add(1)
			p.c.metrics.stalls.Inc()
			p.c.log.Warn().Str("consumer", l.src.consumer).Dur("silent", now.Sub(l.heard)).
				Msg("JetStream is silent; asking again, and making sure that the consumer is there")
			p.reset(l)
			p.c.maintenance.recreate()
		}
	}
}

// noteResponse notes that a consumer responds. A status that a request has no responders does not count.
func (p *puller) noteResponse(now time.Time) { p.heard, p.silenceLimit = now, serverSilence }

// checkServerSilence connects to another server of the cluster when nothing has come from JetStream for long. This
// server may be cut off from the others: then JetStream does not see our requests, although our connection to the
// server is fine.
func (p *puller) checkServerSilence(now time.Time) {
	full := p.total == 0 && p.c.inflight.taken() >= p.c.cfg.Window // this process asks for nothing
	if full || !p.c.nc.IsConnected() || len(p.c.nc.Servers()) < 2 {
		p.heard = now
		return
	}
	if now.Sub(p.heard) < p.silenceLimit {
		return
	}
	p.c.log.Warn().Str("server", p.c.nc.ConnectedUrlRedacted()).Dur("silent", now.Sub(p.heard)).
		Msg("this server delivers nothing from JetStream; connecting to another")
	p.heard, p.silenceLimit = now, min(2*p.silenceLimit, maxServerSilence)
	if err := p.c.nc.ForceReconnect(); err != nil {
		p.c.log.Warn().Err(err).Msg("connecting to another server")
	}
}

// reconnected forgets all requests: the new server may know none of them.
func (p *puller) reconnected() {
	for l := range p.all {
		p.reset(l)
		l.retryAt = time.Time{}
	}
	p.c.reconnected()
}

// resume lets all lanes ask again at once: all consumers exist again.
func (p *puller) resume() {
	for _, l := range p.lanes {
		l.retryAt = time.Time{}
	}
}

// reset gives up a lane's requests. The server drops them when it sees that no client listens to their inbox. Messages
// that it has sent by then are still taken while there is room.
func (p *puller) reset(l *lane) {
	p.total -= l.credits
	l.credits, l.pending = 0, 0
	if l.sub != nil {
		delete(p.subs, l.sub)
		_ = l.sub.Drain() // fails when the connection is closed, which has the same effect
		l.sub = nil
	}
	p.credits.Store(int64(p.total))
}

// stop ends all requests. It waits for the messages that the server sent before it noticed, and gives them back.
func (p *puller) stop() {
	p.c.draining.Store(true)
	for l := range p.all {
		p.reset(l)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.c.nc.FlushWithContext(ctx) // not connected: then nothing more comes
	d := pulled{now: time.Now(), late: true}
	for range len(p.msgs) {
		p.take(<-p.msgs, &d)
	}
	p.c.deliver(&d)
}
