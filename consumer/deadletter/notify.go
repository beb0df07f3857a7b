package deadletter

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
)

// hookPatience is how long publishing the notice of a dead letter is tried. After that the failure is only counted: an
// event whose notice cannot be stored must not stay in the event stream, which may be full of such events.
const hookPatience = 30 * time.Second

// hookHeadroom is the room in a message for what JetStream and a dead letter of the notice add.
const hookHeadroom = 32 << 10

// Notifier notifies the worker or the subject that a letter names. Its methods are for the loop of its Client.
type Notifier struct {
	api      *jsapi.Client
	decoder  events.Decoder
	outcomes *prometheus.CounterVec
}

// NewNotifier makes a Notifier.
func NewNotifier(api *jsapi.Client, d events.Decoder) *Notifier {
	return &Notifier{api: api, decoder: d, outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_dead_letter_notices_total", Help: "Notices of dead letters, by what became of each: published, lost, refused.",
	}, []string{"outcome"})}
}

// Collectors are the metrics of the notifier.
func (n *Notifier) Collectors() []prometheus.Collector { return []prometheus.Collector{n.outcomes} }

// Notify publishes the notice of d, if d names a worker or a subject, and then calls done. d is stored, and its event
// is not yet acked, so after a crash the notice is published again.
func (n *Notifier) Notify(d *events.DeadLetter, done func()) {
	m, err := n.message(d)
	if err != nil {
		n.api.Repeats.Warn(err, "the notice of this dead letter is not published").Str("event", d.EventID).
			Str("worker", d.Owner+"/"+d.Worker).Stringer("to", d.Hook).Send()
		n.outcomes.WithLabelValues("refused").Inc()
		done()
		return
	}
	if d.Hook.Subject != "" && !d.Hook.JetStream {
		outcome := "published"
		if err := n.api.NC.PublishMsg(m); err != nil {
			outcome = "lost"
			n.api.Repeats.Warn(err, "the notice of this dead letter could not be published").Str("event", d.EventID).Stringer("to", d.Hook).
				Send()
		}
		n.outcomes.WithLabelValues(outcome).Inc()
		done()
		return
	}
	n.publish(d, m, jsapi.NewRetrier(hookPatience), done)
}

func (n *Notifier) publish(d *events.DeadLetter, m *nats.Msg, tries *jsapi.Retrier, done func()) {
	n.api.Store(m, func(ack jsapi.Ack, err error) {
		if err == nil && ack.Duplicate && d.Hook.Subject == "" {
			n.api.Taken(n.decoder.Subjects, d.Owner, ack.Seq, func(by string, err error) {
				if err == nil && by == "" { // it was published before a crash
					n.outcomes.WithLabelValues("published").Inc()
					done()
					return
				}
				n.api.Repeats.Error(err, "an event of another owner may have the message id of this notice; the notice is published under another one").
					Str("event", d.EventID).Str("owner", d.Owner).Str("by", by).Send()
				m.Header.Set(events.HeaderMsgID, d.Owner+":dead:"+d.Identity()+":"+rand.Text())
				n.publish(d, m, tries, done)
			})
			return
		}
		if err == nil {
			n.outcomes.WithLabelValues("published").Inc()
			done()
			return
		}
		n.api.Repeats.Warn(err, "the notice of this dead letter could not be published").Str("event", d.EventID).Stringer("to", d.Hook).
			Send()
		if !n.api.Retry(tries, func() { n.publish(d, m, tries, done) }) {
			n.outcomes.WithLabelValues("lost").Inc()
			done()
		}
	})
}

// message is the notice of d: the letter as JSON, without the parts that do not fit.
func (n *Notifier) message(d *events.DeadLetter) (*nats.Msg, error) {
	id := "dead:" + d.Identity()
	m := &nats.Msg{Header: nats.Header{
		events.HeaderEventID: {id}, events.HeaderMsgID: {d.Owner + ":" + id}, events.HeaderDeadOf: {d.Identity()},
		events.HeaderContentType: {"application/json"},
	}}
	if parent := d.Header.Fold(events.HeaderTraceParent); len(parent) == 1 {
		m.Header[events.HeaderTraceParent] = parent
	}
	if m.Subject = d.Hook.Subject; m.Subject == "" {
		m.Subject = n.decoder.Subjects.Event(events.Task, d.Owner, d.Hook.Worker)
	} else if err := n.decoder.CheckReplyTo(m.Subject, d.Owner); err != nil {
		return nil, fmt.Errorf("onDeadLetter: %w", err)
	}
	j := d.JSON(true)
	for _, shrink := range []func(){
		func() { j.Body, j.BodyBase64, j.HeaderBlock = nil, nil, nil },
		func() { j.Stack, j.Raw = "", nil },
		func() { j.Headers = nil },
		func() {},
	} {
		var err error
		if m.Data, err = json.Marshal(j); err != nil {
			return nil, err
		}
		if int64(m.Size()) < n.api.NC.MaxPayload()-hookHeadroom {
			break
		}
		shrink()
	}
	return m, nil
}
