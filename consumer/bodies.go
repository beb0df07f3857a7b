package consumer

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// Bounds of bodies in chunks.
const (
	// streamWindow is how far the making of a body may be ahead of its publishing, in bytes.
	streamWindow = 1 << 20
	// streamIdle is how long a requester may grant nothing while the body waits for it.
	streamIdle = 30 * time.Second
	// maxChunk is the largest chunk, unless max_payload is less.
	maxChunk = 256 << 10
)

// bodies are the bodies that this process sends in chunks. Requesters grant credit on subjects of its own.
type bodies struct {
	c    *Consumer
	node string
	subs [2]*nats.Subscription

	mu   sync.Mutex
	open map[string]*outgoing // by the last token of the credit subject
	last uint64
	seen time.Time // when the idle ones were last looked for
}

// outgoing is one body. Its fields are the settle goroutine's.
type outgoing struct {
	token   string
	event   *events.Event
	from    *events.Stream
	reply   string // subject of the credits, which the server also tells of when nobody takes the chunks
	seq     int
	sent    int64
	granted int64 // by the requester
	offered int64 // to whoever makes the body
	heard   time.Time
}

func newBodies(c *Consumer) *bodies {
	return &bodies{c: c, node: nats.NewInbox()[len(nats.InboxPrefix):], open: map[string]*outgoing{}}
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
	s.last++
	token := strconv.FormatUint(s.last, 36)
	o := &outgoing{
		token: token, event: e, from: r.Stream, reply: s.c.cfg.Prefix.Credit(e.Owner, s.node, token), granted: e.Requester.Credit, heard: time.Now(),
	}
	o.offered = min(o.granted, streamWindow)
	s.open[token] = o
	r.CreditSubject = o.reply
	return o
}

// forget ends a body that is complete, or was never begun.
func (s *bodies) forget(o *outgoing) {
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
	if n := min(o.granted, o.sent+streamWindow); n > o.offered {
		o.offered = n
		o.from.Grant(n)
	}
}

// credit handles what comes on a credit subject: a grant, a cancellation, or the server's word that nobody listens to
// the chunks.
func (s *bodies) credit(m *nats.Msg) {
	token := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	s.mu.Lock()
	o := s.open[token]
	s.mu.Unlock()
	if o == nil {
		return
	}
	upTo, gone, err := events.ParseCredit(m.Data)
	if nobodyListens(m) {
		gone, err = true, nil
	}
	if err != nil {
		s.c.log.Warn().Err(err).Str("event", o.event.ID).Msg("a requester's credit is not as the contract wants it")
		return
	}
	s.c.do(func() {
		if gone {
			o.from.Cancel("the requester has gone")
			return
		}
		o.heard = time.Now()
		o.granted = max(o.granted, upTo)
		s.offer(o)
	})
}

// cancelled tells the events of a requester that it has gone.
func (s *bodies) cancelled(m *nats.Msg) {
	owner, worker, ok := s.c.cfg.Prefix.ParseCancel(m.Subject)
	if !ok {
		return
	}
	for _, h := range s.c.table.in(running) {
		if e := h.event; e.Requester != nil && e.ReplyTo == string(m.Data) && e.Owner == owner && e.Worker == worker {
			e.Requester.Gone()
		}
	}
}

// expire gives up bodies that nobody takes. Settle goroutine only.
func (s *bodies) expire(now time.Time) {
	if now.Sub(s.seen) < time.Second {
		return
	}
	s.seen = now
	s.mu.Lock()
	var late []*outgoing
	for _, o := range s.open {
		if o.sent >= o.granted && now.Sub(o.heard) > streamIdle {
			late = append(late, o)
		}
	}
	s.mu.Unlock()
	for _, o := range late {
		o.from.Cancel(fmt.Sprintf("the requester has taken nothing for %s", streamIdle))
	}
}
