package consumer

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// Bounds of bodies in chunks.
const (
	// streamWindow is how far the making of a body may be ahead of its publishing, in bytes.
	streamWindow = 1 << 20
	// streamIdle is how long a requester may grant nothing while the body waits for it.
	streamIdle = 30 * time.Second
	// maxSubject is the longest Reply-To, in bytes.
	maxSubject = 1024
	// grantsPerSecond is how many grants of the requesters of an owner are passed on in a second. What more is granted is passed on later, all of a body at once.
	grantsPerSecond = 1000
	// maxChunk is the largest chunk, unless max_payload is less.
	maxChunk = 256 << 10
)

// bodies are the bodies that this process sends in chunks. Requesters grant credit on subjects of its own.
type bodies struct {
	c      *Consumer
	node   string
	subs   [2]*nats.Subscription
	grants rates

	mu   sync.Mutex
	open map[string]*outgoing // by the last token of the credit subject
	late []*outgoing          // that have more credit, and whose owner has used up its grants
	seen time.Time            // when the idle ones were last looked for
}

// outgoing is one body. Its fields without a note are the settle goroutine's.
type outgoing struct {
	token   string // nobody can guess it who has not been told
	event   *events.Event
	from    *events.Stream
	reply   string // subject of the credits, which the server also tells of when nobody takes the chunks
	seq     int
	sent    int64
	offered int64     // to whoever makes the body
	waits   time.Time // since when it has more than the requester takes; zero: it has not
	over    bool      // nothing is sent any more

	granted int64 // by the requester; guarded by bodies.mu
	gone    bool  // the requester; guarded by bodies.mu
	told    bool  // the settle goroutine is to look at these two, and knows it; guarded by bodies.mu
	odd     bool  // it was granted something that means nothing, and that was logged; guarded by bodies.mu
}

func newBodies(c *Consumer) *bodies {
	return &bodies{
		c: c, node: nats.NewInbox()[len(nats.InboxPrefix):], open: map[string]*outgoing{},
		grants: rates{perSecond: grantsPerSecond, burst: grantsPerSecond},
	}
}

// run takes credits and cancellations until close.
func (s *bodies) run() (err error) {
	p := s.c.cfg.Prefix
	if s.subs[0], err = s.c.nc.Subscribe(p.Credits(s.node), s.credit); err != nil {
		return fmt.Errorf("consumer: subscribe to credits: %w", err)
	}
	if s.subs[1], err = s.c.nc.Subscribe(p.AllCancels(), s.cancelled); err != nil {
		return fmt.Errorf("consumer: subscribe to cancellations: %w", err)
	}
	return nil
}

func (s *bodies) close() {
	for _, sub := range s.subs {
		if sub != nil {
			_ = sub.Unsubscribe()
		}
	}
}

// begin makes the subject of the credits of r's body. The body goes on once its head is published.
func (s *bodies) begin(e *events.Event, r *events.Reply) *outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := rand.Text()
	o := &outgoing{token: token, event: e, from: r.Stream, reply: s.c.cfg.Prefix.Credit(e.Owner, s.node, token), granted: e.Requester.Credit}
	o.offered = min(o.granted, streamWindow)
	s.open[token] = o
	r.CreditSubject = o.reply
	return o
}

// forget ends a body that is complete, or was never begun.
func (s *bodies) forget(o *outgoing) {
	o.over = true
	s.mu.Lock()
	delete(s.open, o.token)
	s.mu.Unlock()
}

// flow publishes what there is of a body, now and whenever there is more.
func (s *bodies) flow(o *outgoing) {
	o.from.OnChunks(func() {
		s.c.do(func() {
			for _, chunk := range o.from.Take() {
				s.publish(o, chunk)
			}
			s.offer(o)
		})
	})
}

// publish sends one chunk, in pieces if it is too large for a message.
func (s *bodies) publish(o *outgoing, c events.Chunk) {
	if o.over {
		return
	}
	if c.Waits {
		o.waits = time.Now()
		return
	}
	o.waits = time.Time{}
	most := int(min(maxChunk, s.c.nc.MaxPayload()/2))
	for len(c.Data) > most {
		s.message(o, events.Chunk{Data: c.Data[:most]})
		c.Data = c.Data[most:]
	}
	s.message(o, c)
	if c.End || c.Failure != nil {
		s.forget(o)
	}
}

// message sends one message. What cannot be sent is missing at the other end, which sees that.
func (s *bodies) message(o *outgoing, c events.Chunk) {
	o.seq++
	o.sent += int64(len(c.Data))
	h := nats.Header(events.EncodeChunk(o.event.ID, o.seq, o.sent, c))
	if err := s.c.nc.PublishMsg(&nats.Msg{Subject: o.event.ReplyTo, Reply: o.reply, Header: h, Data: c.Data}); err != nil {
		s.c.log.Warn().Err(err).Str("event", o.event.ID).Msg("a chunk of a reply's body could not be published")
	}
	s.c.metrics.chunks.Inc()
}

// offer lets the body be made as far as the requester takes it, and not too far ahead.
func (s *bodies) offer(o *outgoing) {
	s.mu.Lock()
	granted := o.granted
	s.mu.Unlock()
	if n := min(granted, o.sent+streamWindow); n > o.offered {
		o.offered = n
		o.from.Grant(n)
	}
}

// credit handles what comes on a credit subject: a grant, a cancellation, or the server's word that nobody listens to
// the chunks. However many come, one of a body at most is under way to the settle goroutine.
func (s *bodies) credit(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]]
	if o == nil || m.Subject != o.reply && !guard.BodyOwner.Off() { // an owner may publish on subjects with its own name only
		return
	}
	upTo, gone, err := events.ParseCredit(m.Data)
	if nobodyListens(m) {
		gone, err = true, nil
	}
	if err != nil {
		if !o.odd {
			s.c.log.Warn().Err(err).Str("event", o.event.ID).Msg("a requester's credit is not as the contract wants it")
		}
		o.odd = true
		return
	}
	if o.gone || !gone && upTo <= o.granted { // known, or overtaken by a later one
		return
	}
	o.granted, o.gone = max(o.granted, upTo), gone
	if o.told {
		return
	}
	o.told = true
	if gone || s.grants.take(o.event.Owner, time.Now()) {
		s.c.do(func() { s.heard(o) })
		return
	}
	s.late = append(s.late, o)
}

// heard carries out what a requester has said last. Settle goroutine only.
func (s *bodies) heard(o *outgoing) {
	s.mu.Lock()
	o.told = false
	gone := o.gone
	s.mu.Unlock()
	if gone {
		o.from.Cancel("the requester has gone")
		return
	}
	s.offer(o)
}

// cancelled tells the events of a requester that it has gone.
func (s *bodies) cancelled(m *nats.Msg) {
	owner, worker, ok := s.c.cfg.Prefix.ParseCancel(m.Subject)
	if !ok || len(m.Data) > maxSubject {
		return
	}
	for _, h := range s.c.table.hangUp(owner, worker, m.Data) {
		h.event.Requester.Gone()
	}
}

// tick passes on grants that had to wait, and gives up bodies that nobody takes. Settle goroutine only.
func (s *bodies) tick(now time.Time) {
	var heard, idle []*outgoing
	s.mu.Lock()
	kept := s.late[:0]
	for _, o := range s.late {
		if o.gone || s.grants.take(o.event.Owner, now) {
			heard = append(heard, o)
		} else {
			kept = append(kept, o)
		}
	}
	clear(s.late[len(kept):])
	s.late = kept
	if now.Sub(s.seen) >= time.Second {
		s.seen = now
		for _, o := range s.open {
			if o.idle(now) {
				idle = append(idle, o)
			}
		}
	}
	s.mu.Unlock()
	for _, o := range heard {
		s.heard(o)
	}
	for _, o := range idle {
		o.from.Cancel(fmt.Sprintf("the requester has taken nothing for %s", streamIdle))
	}
}

// idle reports whether there is more of the body, and for how long the requester has taken none of it. The lock is held.
func (o *outgoing) idle(now time.Time) bool {
	return !o.told && !o.waits.IsZero() && o.sent >= o.granted && now.Sub(o.waits) > streamIdle
}

// breakOff ends all bodies that are not complete: the process does not make the rest of them. Settle goroutine only.
func (s *bodies) breakOff(why *events.Failure) {
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	for _, o := range left {
		s.publish(o, events.Chunk{Failure: why})
	}
}
