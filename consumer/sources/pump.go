package sources

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// pump brings the messages of all sources of one connection. One goroutine is run.
type pump struct {
	conn    *Conn
	msgs    chan *nats.Msg
	sub     *nats.Subscription
	inbox   string
	wake    chan struct{}
	request []byte // of the feed that asks; run's

	feeds atomic.Int64

	mu     sync.Mutex
	places map[place]*feed              // by stream and consumer
	tokens map[string]*feed             // by token
	wanted map[*feed]bool               // that may have room
	heard  map[*nats.Subscription]*feed // of core subjects
	next   uint64
}

type place struct{ stream, consumer string }

// takenAtOnce is how many messages a pump takes before it looks who has room.
const takenAtOnce = 256

// openPump subscribes to the messages of a connection.
func openPump(conn *Conn) (*pump, error) {
	p := &pump{conn: conn, msgs: make(chan *nats.Msg, 1<<14), wake: make(chan struct{}, 1),
		inbox: conn.NC.NewInbox() + ".", places: map[place]*feed{}, tokens: map[string]*feed{},
		wanted: map[*feed]bool{}, heard: map[*nats.Subscription]*feed{}}
	var err error
	p.sub, err = conn.NC.ChanSubscribe(p.inbox+"*", p.msgs)
	return p, err
}

// bytes is how many bytes a feed may bring at once.
func (p *pump) bytes() int {
	return max(int(p.conn.NC.MaxPayload())+messageSlack, min(feedBytes, allBytes/int(max(1, p.feeds.Load()))))
}

// want has the feed ask for messages if it has room.
func (p *pump) want(f *feed) {
	p.mu.Lock()
	p.wanted[f] = true
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// add starts a feed.
func (p *pump) add(f *feed) {
	p.mu.Lock()
	p.next++
	f.token = strconv.FormatUint(p.next, 36)
	p.tokens[f.token] = f
	p.places[place{f.rec.Stream, f.rec.Consumer()}] = f
	p.mu.Unlock()
	p.feeds.Add(1)
	p.want(f)
}

// listen starts a feed of core subjects. The processes of the fleet take turns.
func (p *pump) listen(f *feed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	sub, err := p.conn.NC.ChanQueueSubscribe(f.source.Subject, f.rec.Consumer(), p.msgs)
	if err == nil {
		f.sub = sub
		p.heard[sub] = f
		p.feeds.Add(1)
	}
	return err
}

// drop ends a feed.
func (p *pump) drop(f *feed) {
	f.end()
	p.mu.Lock()
	if f.sub != nil {
		_ = f.sub.Unsubscribe() // of a closed connection: there is nothing to end
		delete(p.heard, f.sub)
	}
	delete(p.tokens, f.token)
	if at := (place{f.rec.Stream, f.rec.Consumer()}); p.places[at] == f {
		delete(p.places, at)
	}
	delete(p.wanted, f)
	p.mu.Unlock()
	p.feeds.Add(-1)
}

// run brings messages until ctx is done.
func (p *pump) run(ctx context.Context) {
	status := p.conn.NC.StatusChanged(nats.CONNECTED)
	defer p.conn.NC.RemoveStatusListener(status)
	defer p.close()
	beat := time.NewTicker(5 * time.Second)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-p.msgs:
			now := time.Now()
			p.take(m, now)
			for range min(len(p.msgs), takenAtOnce-1) { // no other goroutine takes from it
				p.take(<-p.msgs, now)
			}
		case <-p.wake:
		case now := <-beat.C:
			p.beat(now, false)
		case <-status:
			p.beat(time.Now(), true)
		}
		p.ask(time.Now())
	}
}

// close takes no more messages. It stores those of core subjects that have come, which are nowhere else, and gives back
// those that nobody has taken: otherwise they would come again only when their lease is over.
func (p *pump) close() {
	p.mu.Lock()
	for sub := range p.heard {
		_ = sub.Unsubscribe() // of a closed connection: there is nothing to end
	}
	p.mu.Unlock()
	_ = p.sub.Unsubscribe()
	_ = p.conn.NC.FlushTimeout(time.Second) // not connected: nothing comes
	for {
		select {
		case m := <-p.msgs:
			if m.Sub != p.sub {
				p.take(m, time.Now())
			} else if _, _, _, err := events.ParseAckSubject(m.Reply); err == nil {
				_ = p.conn.NC.Publish(m.Reply, nak)
			}
		default:
			return
		}
	}
}

// take sorts one message. Only its reply subject says whether it is one of a source: its publisher wrote the rest.
func (p *pump) take(m *nats.Msg, now time.Time) {
	if m.Sub != p.sub {
		p.mu.Lock()
		f := p.heard[m.Sub]
		p.mu.Unlock()
		if f != nil {
			f.hear(m, now)
		}
		return
	}
	o, stored, pending, err := events.ParseAckSubject(m.Reply)
	p.mu.Lock()
	f := p.places[place{o.Stream, o.Consumer}]
	if err != nil {
		f = p.tokens[strings.TrimPrefix(m.Subject, p.inbox)]
	}
	p.mu.Unlock()
	switch {
	case f == nil && err == nil:
		_ = p.conn.NC.Publish(m.Reply, nak) // of a source that has ended
	case f == nil:
	case err == nil:
		f.take(m, o, stored, pending, now)
	default:
		f.status(m, now)
		p.want(f)
	}
}

func (p *pump) beat(now time.Time, all bool) {
	p.mu.Lock()
	feeds := make([]*feed, 0, len(p.tokens))
	for _, f := range p.tokens {
		feeds = append(feeds, f)
		p.wanted[f] = true
	}
	p.mu.Unlock()
	for _, f := range feeds {
		f.beat(now, all)
	}
}

// ask has the feeds that may have room ask for messages.
func (p *pump) ask(now time.Time) {
	p.mu.Lock()
	if len(p.wanted) == 0 {
		p.mu.Unlock()
		return
	}
	feeds := make([]*feed, 0, len(p.wanted))
	for f := range p.wanted {
		feeds = append(feeds, f)
	}
	clear(p.wanted)
	p.mu.Unlock()
	for _, f := range feeds {
		f.ask(now)
	}
}
