package bodies

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// Bounds of bodies in chunks.
const (
	// streamWindow is how many bytes of a body may be made before they are published.
	streamWindow = 1 << 20
	// streamIdle is how long a requester may grant nothing while the body waits for it.
	streamIdle = 30 * time.Second
	// maxSubject is the longest Reply-To, in bytes.
	maxSubject = 1024
	// grantsPerSecond is how many grants of an owner's requesters are passed on per second. Further grants are passed
	// on later, all grants of a body at once.
	grantsPerSecond = 1000
	// maxChunk is the largest chunk, unless max_payload is less.
	maxChunk = 256 << 10
)

// Chunks sends bodies of replies in chunks. Requesters grant credit on subjects of this process. Make it with
// NewChunks.
type Chunks struct {
	api    *jsapi.Client
	prefix events.Subjects
	log    zerolog.Logger
	sent   prometheus.Counter
	hangUp func(owner, worker string, replyTo []byte)

	node   string
	subs   [2]*nats.Subscription
	grants perowner.Rates

	mu   sync.Mutex
	open map[string]*Body // by the last token of the credit subject
	late []*Body          // bodies that have more credit, and whose owner has used up its grants
	seen time.Time        // when Tick last looked for idle bodies
}

// Body is one body of a reply. Its fields without a comment belong to the settle goroutine.
type Body struct {
	token   string // a client that has not received it cannot guess it
	event   *lifecycle.Delivery
	from    *events.Stream
	reply   string // subject of the credits; the server also reports there that no client takes the chunks
	seq     int
	sent    int64
	offered int64     // granted to the run that makes the body
	waits   time.Time // since when it has more than the requester takes; zero: it has no more
	over    bool      // nothing more is sent

	granted  int64 // by the requester; guarded by Chunks.mu
	gone     bool  // the requester is gone; guarded by Chunks.mu
	notified bool  // the settle goroutine is notified of granted and gone; guarded by Chunks.mu
	odd      bool  // it got an invalid grant, and that was logged; guarded by Chunks.mu
}

// NewChunks makes a Chunks. It calls hangUp when a requester is gone.
func NewChunks(api *jsapi.Client, prefix events.Subjects, log zerolog.Logger,
	hangUp func(owner, worker string, replyTo []byte)) *Chunks {
	return &Chunks{
		api: api, prefix: prefix, log: log, hangUp: hangUp, node: nats.NewInbox()[len(nats.InboxPrefix):],
		open:   map[string]*Body{},
		grants: perowner.Rates{PerSecond: grantsPerSecond, Burst: grantsPerSecond},
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pinwheel_reply_chunks_total", Help: "Chunks of replies' bodies published.",
		}),
	}
}

// Collectors are the metrics of the bodies.
func (s *Chunks) Collectors() []prometheus.Collector { return []prometheus.Collector{s.sent} }

// Open subscribes to credits and cancellations.
func (s *Chunks) Open() (err error) {
	if s.subs[0], err = s.api.NC.Subscribe(s.prefix.Credits(s.node), s.credit); err != nil {
		return fmt.Errorf("consumer: subscribe to credits: %w", err)
	}
	if s.subs[1], err = s.api.NC.Subscribe(s.prefix.AllCancels(), s.cancelled); err != nil {
		return fmt.Errorf("consumer: subscribe to cancellations: %w", err)
	}
	return nil
}

// Close ends these subscriptions.
func (s *Chunks) Close() {
	for _, sub := range s.subs {
		if sub != nil {
			_ = sub.Unsubscribe()
		}
	}
}

// Begin creates the subject for the credits of r's body. The body continues once its head is published.
func (s *Chunks) Begin(e *lifecycle.Delivery, r *events.Reply) *Body {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := rand.Text()
	o := &Body{token: token, event: e, from: r.Stream, reply: s.prefix.Credit(e.Owner, s.node, token),
		granted: e.Requester.Credit}
	o.offered = min(o.granted, streamWindow)
	s.open[token] = o
	r.CreditSubject = o.reply
	return o
}

// Forget ends a body that is complete, or was never begun.
func (s *Chunks) Forget(o *Body) {
	o.over = true
	s.mu.Lock()
	delete(s.open, o.token)
	s.mu.Unlock()
}

// Flow publishes the chunks of a body that are there, now and whenever there are more.
func (s *Chunks) Flow(o *Body) {
	o.from.OnChunks(func() {
		s.api.Do(func() {
			for _, chunk := range o.from.Take() {
				s.publish(o, chunk)
			}
			s.offer(o)
		})
	})
}

// publish sends one chunk, in pieces if it is too large for a message.
func (s *Chunks) publish(o *Body, c events.Chunk) {
	if o.over {
		return
	}
	if c.Waits {
		o.waits = time.Now()
		return
	}
	o.waits = time.Time{}
	most := int(min(maxChunk, s.api.NC.MaxPayload()/2))
	for len(c.Data) > most {
		s.message(o, events.Chunk{Data: c.Data[:most]})
		c.Data = c.Data[most:]
	}
	s.message(o, c)
	if c.End || c.Failure != nil {
		s.Forget(o)
	}
}

// message sends one message. If a message cannot be sent, the requester detects that it is missing.
func (s *Chunks) message(o *Body, c events.Chunk) {
	o.seq++
	o.sent += int64(len(c.Data))
	h := nats.Header(events.EncodeChunk(o.event.ID, o.seq, o.sent, c))
	if err := s.api.NC.PublishMsg(&nats.Msg{Subject: o.event.ReplyTo, Reply: o.reply, Header: h,
		Data: c.Data}); err != nil {
		s.log.Warn().Err(err).Str("event", o.event.ID).Msg("a chunk of a reply's body could not be published")
	}
	s.sent.Inc()
}

// offer lets the run make as much of the body as the requester takes, and not too far ahead.
func (s *Chunks) offer(o *Body) {
	s.mu.Lock()
	granted := o.granted
	s.mu.Unlock()
	if n := min(granted, o.sent+streamWindow); n > o.offered {
		o.offered = n
		o.from.Grant(n)
	}
}

// credit handles a message on a credit subject: a grant, a cancellation, or the server's message that no client
// subscribes to the chunks. At most one notification for a body is on its way to the settle goroutine, however many
// messages come.
func (s *Chunks) credit(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]]
	// an owner may publish on subjects with its own name only
	if o == nil || m.Subject != o.reply && !guard.BodyOwner.Off() {
		return
	}
	upTo, gone, err := events.ParseCredit(m.Data)
	if jsapi.NoResponders(m) {
		gone, err = true, nil
	}
	if err != nil {
		if !o.odd {
			s.log.Warn().Err(err).Str("event", o.event.ID).Msg("a requester's credit breaks the contract; ignored")
		}
		o.odd = true
		return
	}
	if o.gone || !gone && upTo <= o.granted { // known already, or older than a later grant
		return
	}
	o.granted, o.gone = max(o.granted, upTo), gone
	if o.notified {
		return
	}
	o.notified = true
	if gone || s.grants.Take(o.event.Owner, time.Now()) {
		s.api.Do(func() { s.heard(o) })
		return
	}
	s.late = append(s.late, o)
}

// heard carries out the last message of a requester. Settle goroutine only.
func (s *Chunks) heard(o *Body) {
	s.mu.Lock()
	o.notified = false
	gone := o.gone
	s.mu.Unlock()
	if gone {
		o.from.Cancel("the requester has gone")
		return
	}
	s.offer(o)
}

// cancelled notifies the events of a requester that it is gone.
func (s *Chunks) cancelled(m *nats.Msg) {
	owner, worker, ok := s.prefix.ParseCancel(m.Subject)
	if !ok || len(m.Data) > maxSubject {
		return
	}
	s.hangUp(owner, worker, m.Data)
}

// Tick passes on grants that had to wait, and gives up bodies that no requester takes. Settle goroutine only.
func (s *Chunks) Tick(now time.Time) {
	var heard, idle []*Body
	s.mu.Lock()
	kept := s.late[:0]
	for _, o := range s.late {
		if o.gone || s.grants.Take(o.event.Owner, now) {
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

// idle reports whether there is more of the body and the requester has taken none of it for streamIdle. The lock is
// held.
func (o *Body) idle(now time.Time) bool {
	return !o.notified && !o.waits.IsZero() && o.sent >= o.granted && now.Sub(o.waits) > streamIdle
}

// BreakOff ends all incomplete bodies: the process does not make the rest of them. Settle goroutine only.
func (s *Chunks) BreakOff(why *events.Failure) {
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	for _, o := range left {
		s.publish(o, events.Chunk{Failure: why})
	}
}
