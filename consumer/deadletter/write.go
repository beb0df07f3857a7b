package deadletter

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Writer writes the dead letters of events, each once. Its methods are for the loop of its Client.
type Writer struct {
	api      *jsapi.Client
	usage    *storage.Usage
	subjects events.Subjects
	written  *prometheus.CounterVec
}

// NewWriter makes a Writer.
func NewWriter(api *jsapi.Client, usage *storage.Usage, s events.Subjects) *Writer {
	return &Writer{api: api, usage: usage, subjects: s, written: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_dead_letters_total", Help: "Dead letters written, by reason.",
	}, []string{"reason"})}
}

// Collectors are the metrics of the writer.
func (w *Writer) Collectors() []prometheus.Collector { return []prometheus.Collector{w.written} }

// ErrNoFit is the error of a letter whose body alone does not fit in a message.
var ErrNoFit = errors.New("the letter fits no message")

// anyReason stands for every reason in a subject filter.
const anyReason events.Reason = "*"

// Write stores d, the dead letter of e, and calls done with the stored letter: d, or an earlier one of e. Each letter
// has its own subject, and the stream stores it only if there is no letter of this event yet, with any reason. So a
// crash before the ack cannot make a second letter. Write tries until it succeeds, or until goOn returns false, and
// then does not call done. The only error is ErrNoFit.
func (w *Writer) Write(e *events.Event, d *events.DeadLetter, goOn func() bool,
	done func(letter *events.DeadLetter, err error)) {
	m := w.message(e, d)
	if m == nil {
		done(nil, ErrNoFit)
		return
	}
	w.publish(&writing{e, d, m, jsapi.NewRetrier(0), goOn, done})
}

// writing is a letter that is being written.
type writing struct {
	event  *events.Event
	letter *events.DeadLetter
	m      *nats.Msg
	tries  *jsapi.Retrier
	goOn   func() bool
	done   func(letter *events.DeadLetter, err error)
}

func (w *Writer) publish(x *writing) {
	w.api.Store(x.m, func(ack jsapi.Ack, err error) {
		switch {
		case err == nil:
			x.letter.Seq = ack.Seq
			w.usage.Grew(events.StreamDead, x.m.Size())
			w.written.WithLabelValues(string(x.letter.Failure.Reason)).Inc()
			x.done(x.letter, nil)
		case jsapi.IsWrongLastSequence(err):
			w.check(x)
		default:
			w.usage.Published(events.StreamDead, err)
			w.again(x, err, w.publish)
		}
	})
}

// again takes a step again after a while.
func (w *Writer) again(x *writing, err error, step func(*writing)) {
	w.api.Repeats.Warn(err, "dead letter could not be written; trying again").Str("event", x.letter.EventID).
		Str("worker", x.event.Target()).Send()
	w.api.Missing()
	w.api.Retry(x.tries, func() {
		if x.goOn() {
			step(x)
		}
	})
}

// check looks up the dead letter that is stored in the place of x. It is the letter of the same event, written before a
// crash. Or the event stream was deleted and counts from the start again, and it is the letter of another event: then x
// is stored after it.
func (w *Writer) check(x *writing) {
	w.api.LookUp(events.StreamDead, x.m.Header.Get(jsapi.HeaderExpectLastSubjectSubject),
		func(there *stored.Message, err error) {
			if err != nil {
				w.again(x, err, w.check)
				return
			}
			if there == nil { // it was stored and has been removed
				x.done(x.letter, nil)
				return
			}
			if old := letterOf(there, x.event); old != nil {
				x.done(old, nil)
				return
			}
			x.m.Header.Set(jsapi.HeaderExpectLastSubjectSeq, strconv.FormatUint(there.Sequence, 10))
			w.publish(x)
		})
}

// Find calls done with the dead letter of an event that was delivered before, or nil when there is none. The event's
// last process may have died between the letter and the ack.
func (w *Writer) Find(e *events.Event, done func(*events.DeadLetter, error)) {
	w.api.LookUp(events.StreamDead, w.subjects.Dead(e, anyReason), func(m *stored.Message, err error) {
		done(letterOf(m, e), err)
	})
}

// letterOf decodes m as the dead letter of e. It returns nil when m is none, or when it is the letter of an event of an
// earlier stream with the same name and number. Letters of earlier versions do not say when their event was stored.
// Such a letter is not older than its event, by the server's clock, which has set both times.
func letterOf(m *stored.Message, e *events.Event) *events.DeadLetter {
	if m == nil {
		return nil
	}
	d, err := events.DecodeDeadLetter(m.Sequence, events.Header(m.Header), m.Data)
	switch {
	case err != nil || d.EventID != e.ID:
		return nil
	case !d.Stored.IsZero():
		if !d.Stored.Equal(e.Stored) {
			return nil
		}
	case m.Time.Before(e.Stored), d.Edited.IsZero() && !bytes.Equal(d.Body, e.Body):
		return nil
	}
	return d
}

// shortMessage limits a failure's message in a letter that does not fit with a longer one.
const shortMessage = 256

// message encodes d so that it fits. The stream of events leaves room in a message for what a dead letter adds, but not
// in its headers. If an event has very many or large headers, they move to the body of its letter. If that is not
// enough, the letter loses headers of its own that are only informative. message returns nil when not even the event
// fits.
func (w *Writer) message(e *events.Event, d *events.DeadLetter) *nats.Msg {
	most := w.api.NC.MaxPayload()
	m := letterMessage(d, w.subjects.Dead(e, d.Failure.Reason))
	for _, shrink := range []func(){
		func() { d.Failure.Stack = "" },
		func() { d.History = nil },
		func() {
			d.Failure.Message = strings.ToValidUTF8(d.Failure.Message[:min(len(d.Failure.Message), shortMessage)], "")
		},
	} {
		if jsapi.Fits(m, most) {
			break
		}
		shrink()
		m.Header = nats.Header(d.Encode())
		w.api.Repeats.Warn(nil, "dead letter is too large for a message; cut").Str("event", d.EventID).Send()
	}
	if !jsapi.Fits(m, most) {
		return nil
	}
	m.Header.Set(jsapi.HeaderExpectLastSubjectSeq, "0")
	m.Header.Set(jsapi.HeaderExpectLastSubjectSubject, w.subjects.Dead(e, anyReason))
	return m
}

// letterMessage is the message of d. If the event's headers cannot be headers of a message, they move to its body.
func letterMessage(d *events.DeadLetter, subject string) *nats.Msg {
	m := &nats.Msg{Subject: subject, Header: nats.Header(d.Encode()), Data: d.Data()}
	if d.Block == nil && (d.Header.CheckWritable() != nil || jsapi.HeaderSize(m.Header) > jsapi.MaxStoredHeaders) {
		d.KeepBlock(d.Header.Block())
		m.Header, m.Data = nats.Header(d.Encode()), d.Data()
	}
	return m
}
