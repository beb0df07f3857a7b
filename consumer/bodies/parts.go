package bodies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/limit"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// bodiesAge is how long the parts of a body stay when its event does not arrive or does not end.
const bodiesAge = 24 * time.Hour

// Stream is the stream of parts. It has at most maxBytes, and a part has at most maxMsg bytes. Requesters of earlier
// releases stored parts themselves, under the subject that is retired.
func Stream(prefix events.Subjects, replicas int, maxBytes int64, maxMsg int32) resources.Resource {
	return resources.Resource{Retired: []string{prefix.AllBodies()}, Stream: &jetstream.StreamConfig{
		Name: events.StreamBodies, Description: "Request bodies in parts", Subjects: []string{prefix.AllParts()},
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: prefix.AllParts(), Destination: prefix.StoredParts()},
		Retention:        jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: replicas,
		MaxBytes: maxBytes, MaxMsgSize: maxMsg, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute, AllowDirect: true,
		MaxAge: bodiesAge,
	}}
}

// Config is the configuration of Parts.
type Config struct {
	Prefix   events.Subjects
	Decoder  events.Decoder
	Patience time.Duration // how long the handler of a live body waits for the next part
}

// Parts stores and reads request bodies that are stored apart from their events. Make it with NewParts.
type Parts struct {
	cfg     Config
	api     *jsapi.Client
	pending *limit.Pending
	log     zerolog.Logger
	sub     *nats.Subscription
	queue   *perowner.Queue[*nats.Msg] // parts that have come

	refusals perowner.Rates // answers to parts that are not stored
}

// arrivedParts bounds the parts that have come and are not checked yet. They are checked one after the other, owners
// in turn.
var arrivedParts = perowner.Bounds{Most: 1 << 13, MostBytes: 64 << 20, Workers: 1, PerOwner: 1}

// refusalsPerSecond is how many of an owner's parts a process refuses with an answer in a second. Further ones get
// none.
const refusalsPerSecond = 1000

// NewParts makes a Parts. It takes no parts before Open. pending counts the parts that wait to be stored.
func NewParts(cfg Config, api *jsapi.Client, pending *limit.Pending, log zerolog.Logger) *Parts {
	p := &Parts{cfg: cfg, api: api, pending: pending, log: log, refusals: perowner.Rates{PerSecond: refusalsPerSecond,
		Burst: 2 * refusalsPerSecond}}
	p.queue = perowner.NewQueue(arrivedParts, p.take)
	return p
}

// Open subscribes to the parts that requesters send. As with calls, no message of an owner reaches JetStream directly,
// nor do its headers.
func (p *Parts) Open() (err error) {
	if p.sub, err = p.api.NC.QueueSubscribe(p.cfg.Prefix.AllBodies(), jsapi.Queue, p.arrived); err != nil {
		return fmt.Errorf("consumer: subscribe to parts of bodies: %w", err)
	}
	return nil
}

// Close takes no more parts. Those that have arrived are stored.
func (p *Parts) Close() {
	jsapi.Drain(p.sub)
	p.queue.Close()
}

// Attach makes the body of e readable, if it is stored apart.
func (p *Parts) Attach(e *lifecycle.Delivery) {
	if e.Parts == nil {
		return
	}
	if e.Parts.Live {
		e.Parts.Read = (&liveBody{parts: p, event: e, n: unknownParts}).read
		return
	}
	e.Parts.Read = func(ctx context.Context, i int) ([]byte, error) {
		data, err := stored.LastData(ctx, p.api.NC, events.StreamBodies, p.cfg.Prefix.BodyPart(e.Owner, e.Parts.ID, i))
		if errors.Is(err, stored.ErrNone) {
			return nil, fmt.Errorf("part %d of %d of body %s is not there: parts are stored before their event, and kept for %s", i, e.Parts.N, e.Parts.ID, bodiesAge)
		}
		if err != nil {
			return nil, fmt.Errorf("part %d of body %s: %w", i, e.Parts.ID, err)
		}
		return data, nil
	}
}

// Drop removes the body of an event that has ended. If that fails, JetStream removes the parts after bodiesAge.
func (p *Parts) Drop(e *lifecycle.Delivery) {
	if e.Parts == nil || e.Parts.ID == "" {
		return
	}
	// strings cannot fail
	body, _ := json.Marshal(map[string]string{"filter": p.cfg.Prefix.BodyParts(e.Owner, e.Parts.ID)})
	m := &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + events.StreamBodies, Data: body}
	p.api.Request(m, func(_ *nats.Msg, err error) {
		if err != nil {
			p.log.Debug().Err(err).Str("event", e.ID).Msg("the parts of an ended event's body could not be removed; they stay until they expire")
		}
	})
}

// arrived puts a part into the queue of its owner. It looks only at the subject, so that parts of others do not wait
// for those of one owner in the subscription that they share.
func (p *Parts) arrived(m *nats.Msg) {
	owner := events.OwnerIn(m.Subject, string(p.cfg.Prefix)+".body.", 0)
	if !p.queue.Push(owner, m.Size(), m) && m.Reply != "" && p.cfg.Decoder.CheckReplyTo(m.Reply, owner) == nil {
		p.refuse(owner, m.Reply, http.StatusTooManyRequests, fmt.Sprintf("too many parts of bodies of owner %s wait to be stored", owner))
	}
}

// take stores one part, and passes the stream's answer on. A part without a reply subject is not stored: it may be an
// answer itself.
func (p *Parts) take(m *nats.Msg) {
	owner, id, i, err := p.cfg.Prefix.ParseBodyPart(m.Subject)
	replyTo := m.Reply
	if replyTo == "" || p.cfg.Decoder.CheckReplyTo(replyTo, owner) != nil {
		return
	}
	if err == nil && i == events.EndPart {
		_, err = events.DecodeEnd(m.Data)
		if errors.Is(err, events.ErrGivenUp) {
			err = nil
		}
	}
	if err != nil {
		p.refuse(owner, replyTo, http.StatusBadRequest, err.Error())
		return
	}
	size := m.Size()
	if !p.pending.Begin(owner, size) {
		p.refuse(owner, replyTo, http.StatusTooManyRequests, p.pending.Full(owner))
		return
	}
	part := &nats.Msg{Subject: p.cfg.Prefix.StorePart(owner, id, i), Data: m.Data}
	p.api.Request(part, func(answer *nats.Msg, err error) {
		p.pending.End(owner, size)
		if err != nil {
			p.refuse(owner, replyTo, http.StatusServiceUnavailable, fmt.Sprintf("the part was not stored: %v", err))
			return
		}
		_ = p.api.NC.Publish(replyTo, answer.Data) // not connected: the client sends the part again
		_ = p.api.NC.Publish(p.cfg.Prefix.PartCame(owner, id), nil)
	})
}

// refuse answers as JetStream would, unless the owner has had too many such answers.
func (p *Parts) refuse(owner, replyTo string, code int, why string) {
	if !p.refusals.Take(owner, time.Now()) {
		return
	}
	// strings and numbers cannot fail
	body, _ := json.Marshal(map[string]any{"error": jsapi.Error{Code: code, Description: why},
		"stream": events.StreamBodies, "seq": 0})
	_ = p.api.NC.Publish(replyTo, body)
}
