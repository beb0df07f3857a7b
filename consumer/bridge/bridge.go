package bridge

import (
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/limit"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// Config is the configuration of a Bridge.
type Config struct {
	Prefix  events.Subjects
	Decoder events.Decoder
	// Catalog has the policies, which say how much owners may call and send.
	Catalog *catalog.Catalog
	// Calls enables the bridge. Without it, the bridge only limits sends.
	Calls bool
	// Replies counts published replies.
	Replies prometheus.Counter
	// PubAck is called for a call that is an answer of JetStream, and is dropped.
	PubAck func(subject string)
}

// Bridge stores plain NATS requests as events, with the requester's inbox as Reply-To. Make it with New.
type Bridge struct {
	cfg     Config
	api     *jsapi.Client
	usage   *storage.Usage
	pending *limit.Pending
	limits  *limit.Calls
	log     zerolog.Logger
	seldom  zerolog.Logger // for lines that owners can cause any number of times
	sub     *nats.Subscription
	queue   *perowner.Queue[*nats.Msg] // calls that have come

	refusals perowner.Rates // answers to calls that are not stored

	stored, refused, limited, dropped, sendsLimited prometheus.Counter
}

// arrivedCalls bounds the calls that have come and are not checked yet. They are checked one after the other, owners in
// turn.
var arrivedCalls = perowner.Bounds{Most: 1 << 15, MostBytes: 64 << 20, Workers: 1, PerOwner: 1}

// refusalsPerSecond is how many of an owner's calls a process refuses with an answer in a second. Further ones get
// none.
const refusalsPerSecond = 1000

// New makes a Bridge. It takes no calls before Open. pending counts the calls that wait to be stored.
func New(cfg Config, api *jsapi.Client, usage *storage.Usage, pending *limit.Pending, log,
	seldom zerolog.Logger) *Bridge {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "pinwheel_" + name + "_total", Help: help})
	}
	b := &Bridge{
		refusals: perowner.Rates{PerSecond: refusalsPerSecond, Burst: 2 * refusalsPerSecond},
		cfg:      cfg, api: api, usage: usage, pending: pending, limits: limit.NewCalls(cfg.Catalog), log: log,
		seldom:       seldom,
		stored:       counter("calls_stored", "Calls that the bridge stored as events."),
		refused:      counter("calls_refused", "Calls that the bridge answered with an error."),
		limited:      counter("calls_limited", "Calls refused because their owner called more often than it may."),
		dropped:      counter("calls_dropped", "Calls not stored and not answered: their owner made too many that were refused."),
		sendsLimited: counter("sends_limited", "Tasks of workers refused because their owner sent more often than it may, or has too much stored."),
	}
	b.queue = perowner.NewQueue(arrivedCalls, b.take)
	return b
}

// Collectors are the metrics of the bridge.
func (b *Bridge) Collectors() []prometheus.Collector {
	return []prometheus.Collector{b.stored, b.refused, b.limited, b.dropped, b.sendsLimited}
}

// Open subscribes to calls, if Config.Calls is set.
func (b *Bridge) Open() (err error) {
	if !b.cfg.Calls {
		return nil
	}
	if b.sub, err = b.api.NC.QueueSubscribe(b.cfg.Prefix.AllCalls(), jsapi.Queue, b.arrived); err != nil {
		return fmt.Errorf("consumer: subscribe to calls: %w", err)
	}
	return nil
}

// Close takes no more calls; those that have arrived are stored.
func (b *Bridge) Close() {
	jsapi.Drain(b.sub)
	b.queue.Close()
}

// SetProcesses sets how many processes the fleet has. Calls are spread evenly over them. It may be called from any
// goroutine.
func (b *Bridge) SetProcesses(n int) { b.limits.SetProcesses(n) }

// AdmitSend returns why count tasks, of size bytes together, that a worker of owner sends must not be stored, or nil.
// It may be called from any goroutine.
func (b *Bridge) AdmitSend(owner string, count, size int) *events.Failure {
	if failed := b.usage.WriteFailure(events.StreamEvents); failed != nil {
		return notStored(failed)
	}
	f := b.limits.AdmitSend(owner, count, size, time.Now())
	if f == nil {
		f = b.usage.Admit(owner, size)
	}
	if f != nil {
		b.sendsLimited.Inc()
	}
	return f
}

// AdmitCall returns why an event of size bytes must not be stored for owner, or nil. It counts as a call. It may be
// called from any goroutine.
func (b *Bridge) AdmitCall(owner string, size int) *events.Failure {
	if failed := b.usage.WriteFailure(events.StreamEvents); failed != nil {
		return notStored(failed)
	}
	f := b.limits.Admit(owner, size, time.Now())
	if f == nil {
		f = b.usage.Admit(owner, size)
	}
	if f != nil {
		b.limited.Inc()
	}
	return f
}

// AdmitLetter returns why a dead letter of size bytes must not be imported for owner, or nil. It counts as a call. It
// may be called from any goroutine.
func (b *Bridge) AdmitLetter(owner string, size int) *events.Failure {
	if failed := b.usage.WriteFailure(events.StreamDead); failed != nil {
		return events.Fail(events.ReasonUnavailable, "the letter was not stored: %v", failed)
	}
	if f := b.limits.Admit(owner, size, time.Now()); f != nil {
		b.limited.Inc()
		return f
	}
	b.usage.Grew(events.StreamDead, size)
	return nil
}

// arrived puts a call into the queue of its owner. It looks only at the subject, so that calls of others do not wait
// for those of one owner in the subscription that they share.
func (b *Bridge) arrived(m *nats.Msg) {
	owner := events.OwnerIn(m.Subject, string(b.cfg.Prefix)+".call.", 1)
	if b.queue.Push(owner, m.Size(), m) || !b.mayRefuse(owner) {
		return
	}
	if kind, _, _, err := b.cfg.Prefix.ParseCall(m.Subject); err == nil && b.cfg.Decoder.CheckReplyTo(m.Reply,
		owner) == nil {
		b.answer(callerOf(m, kind), events.Fail(events.ReasonUnavailable, "too many calls of owner %s wait to be stored", owner))
	}
}

// mayRefuse reports whether a call of an owner that is not stored may be answered, and counts it.
func (b *Bridge) mayRefuse(owner string) bool {
	if b.refusals.Take(owner, time.Now()) {
		b.refused.Inc()
		return true
	}
	b.dropped.Inc()
	return false
}

// take stores one call, or answers at once why not.
func (b *Bridge) take(m *nats.Msg) {
	if m.Reply == "" && jsapi.IsPubAck(m) {
		b.cfg.PubAck(m.Subject)
		return
	}
	kind, owner, worker, err := b.cfg.Prefix.ParseCall(m.Subject)
	if m.Reply != "" {
		if err := b.cfg.Decoder.CheckReplyTo(m.Reply, owner); err != nil {
			b.mayRefuse(owner)
			b.seldom.Warn().Err(err).Str("subject", m.Subject).Msg("call refused, and not answered")
			return
		}
	}
	from := callerOf(m, kind)
	from.owner = owner
	if err != nil {
		b.refuse(from, events.Fail(events.ReasonMalformed, "%v", err))
		return
	}
	if f := b.AdmitCall(owner, from.size); f != nil {
		b.refuse(from, f)
		return
	}
	if err := checkHeader(m); err != nil {
		b.refuse(from, events.Fail(events.ReasonMalformed, "%v", err))
		return
	}
	header, id, f := callHeader(m, owner)
	if f != nil {
		b.refuse(from, f)
		return
	}
	if !b.pending.Begin(owner, from.size) {
		b.refuse(from, events.Fail(events.ReasonUnavailable, "%s", b.pending.Full(owner)))
		return
	}
	event := &nats.Msg{Subject: b.cfg.Prefix.Event(kind, owner, worker), Header: header, Data: m.Data}
	b.store(event, from, owner, id)
}

// store stores the event of a call. id is the message id that the caller gave; "" = none.
func (b *Bridge) store(event *nats.Msg, from caller, owner, id string) {
	b.api.Request(event, func(answer *nats.Msg, err error) {
		ack, err := jsapi.ReadAck(answer, err)
		if err == nil && ack.Duplicate {
			b.duplicate(event, from, owner, id, ack.Seq)
			return
		}
		b.pending.End(owner, from.size)
		if err != nil {
			b.usage.Published(events.StreamEvents, err)
			if failed := b.usage.WriteFailure(events.StreamEvents); failed != nil {
				err = failed
			}
			b.refuse(from, notStored(err))
			return
		}
		b.usage.Published(events.StreamEvents, nil)
		b.stored.Inc()
	})
}

// duplicate refuses a call whose id was used before: the client that sent it first gets the reply. An event of another
// owner with that id is in nobody's way: the call is stored under an id that nobody can guess.
func (b *Bridge) duplicate(event *nats.Msg, from caller, owner, id string, seq uint64) {
	b.api.Taken(b.cfg.Prefix, owner, seq, func(by string, err error) {
		if err == nil && by != "" {
			b.seldom.Error().Str("subject", from.subject).Str("id", id).Str("by", by).
				Msg("another owner's event has the message id of this call; the call is stored under another one")
			event.Header.Set(events.HeaderMsgID, owner+":"+id+":"+rand.Text())
			b.store(event, from, owner, id)
			return
		}
		b.pending.End(owner, from.size)
		b.refuse(from, events.Fail(events.ReasonMalformed, "header %s %q: the event of that id is stored already, and this call stored nothing",
			events.HeaderMsgID, id))
	})
}

func notStored(err error) *events.Failure {
	if jsapi.IsUnfit(err) {
		return events.Fail(events.ReasonMalformed, "the event was not stored: it is too large with its headers: %v", err)
	}
	return events.Fail(events.ReasonUnavailable, "the event was not stored: %v", err)
}

// checkHeader returns why the headers of a call cannot be stored, or nil.
func checkHeader(m *nats.Msg) error {
	h := events.Header(m.Header)
	if e := (&events.Event{Header: h, Origin: events.Origin{HeaderBytes: jsapi.HeaderBytes(m)}}); e.HeadersLost() {
		return events.ErrHeadersLost
	}
	return h.CheckWritable()
}

// callHeader returns the headers of a call's event: those that the caller sent, without those that steer NATS. The
// owner is added to the message id, because an id counts for the whole stream. id is the id that the caller sent.
func callHeader(m *nats.Msg, owner string) (h nats.Header, id string, f *events.Failure) {
	h = nats.Header(events.Header(m.Header).User())
	if m.Reply != "" {
		h.Set(events.HeaderReplyTo, m.Reply)
	}
	switch ids := events.Header(m.Header).Fold(events.HeaderMsgID); {
	case len(ids) > 1:
		return nil, "", events.Fail(events.ReasonMalformed, "header %s does not appear once: its case makes no difference", events.HeaderMsgID)
	case len(ids) == 1 && ids[0] != "":
		id = ids[0]
		h.Set(events.HeaderMsgID, owner+":"+id)
		if given := events.Header(h).Fold(events.HeaderEventID); len(given) == 0 || len(given) == 1 && given[0] == "" {
			maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.EqualFold(name, events.HeaderEventID) })
			h.Set(events.HeaderEventID, id)
		}
	}
	return h, id, nil
}

// caller is what is kept of a call, in addition to its event, while the call waits to be stored.
type caller struct {
	kind                             events.Kind
	owner, subject, replyTo, eventID string
	size                             int // of the message
}

func callerOf(m *nats.Msg, kind events.Kind) caller {
	c := caller{kind: kind, subject: m.Subject, replyTo: m.Reply, size: m.Size()}
	for _, name := range []string{events.HeaderEventID, events.HeaderMsgID} {
		if ids := events.Header(m.Header).Fold(name); c.eventID == "" && len(ids) == 1 && len(ids[0]) <= events.MaxEventID {
			c.eventID = ids[0]
		}
	}
	return c
}

// refuse answers a call that is not stored, unless its owner has had too many such answers.
func (b *Bridge) refuse(from caller, f *events.Failure) {
	if b.mayRefuse(from.owner) {
		b.answer(from, f)
	}
}

// answer answers a call that is not stored.
func (b *Bridge) answer(from caller, f *events.Failure) {
	if from.replyTo == "" {
		if f.Reason == events.ReasonRate {
			return // there may be very many of these
		}
		b.seldom.Warn().Str("subject", from.subject).Str("error", f.Error()).Msg("call refused; no client waits for the answer")
		return
	}
	e := &events.Event{Kind: from.kind, ID: from.eventID, ReplyTo: from.replyTo}
	r, encoder := events.FailureReply(e, 0, f), events.ReplyEncoder{}
	if err := b.api.NC.PublishMsg(&nats.Msg{Subject: from.replyTo, Header: nats.Header(encoder.Encode(r)),
		Data: r.Body}); err != nil {
		b.log.Warn().Err(err).Msg("refused call could not be answered")
		return
	}
	b.cfg.Replies.Inc()
}
