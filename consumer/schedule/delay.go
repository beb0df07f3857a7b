package schedule

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Headers of a message that waits in the stream of schedules: when it is due, and the subject it then goes to.
const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// Delays moves events to the stream of schedules, where they wait until a time. Its methods are for the loop of its
// Client.
type Delays struct {
	api     *jsapi.Client
	usage   *storage.Usage
	waiting *Waiting
	decoder events.Decoder
	log     zerolog.Logger
	delayed prometheus.Counter
}

// NewDelays makes a Delays.
func NewDelays(api *jsapi.Client, usage *storage.Usage, w *Waiting, d events.Decoder, log zerolog.Logger) *Delays {
	return &Delays{api: api, usage: usage, waiting: w, decoder: d, log: log,
		delayed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pinwheel_events_delayed_total", Help: "Events stored to run later: delayed by their publishers, or waiting long for a retry.",
		})}
}

// Collectors are the metrics of the delays.
func (d *Delays) Collectors() []prometheus.Collector { return []prometheus.Collector{d.delayed} }

// Delayed is what became of an event that was to be delayed.
type Delayed uint8

// What Delay ends with.
const (
	DelayStored   Delayed = iota + 1 // it waits
	DelayRefused                     // JetStream refuses it, for example for the size of its headers: see the error
	DelayGone                        // it has ended elsewhere, or its stream was created again
	DelayReplaced                    // the event of a newer tick replaces it
)

// delay is an event that is being delayed.
type delay struct {
	e      *lifecycle.Delivery
	record string // of its runs, stored with it
	until  time.Time
	tries  *jsapi.Retrier
	goOn   func() bool
	done   func(Delayed, error)
}

// own reports whether the event comes from the stream of schedules.
func (x *delay) own() bool { return x.e.Origin.Stream == events.StreamSchedules }

// Delay stores e, with record, in the stream of schedules. e is due at until, by the clock of NATS. Delay calls done
// once e is stored and may be acked. After a crash in between, the process that gets e stores it again, and JetStream
// detects the duplicate: by the message id for as long as it remembers it, and by the message under the event's key
// until the event has ended. Delay tries until it succeeds, or until goOn returns false, and then does not call done.
func (d *Delays) Delay(e *lifecycle.Delivery, record string, until time.Time, goOn func() bool,
	done func(Delayed, error)) {
	ended := func(became Delayed, err error) {
		d.waiting.Ended(e)
		done(became, err)
	}
	x, after := &delay{e, record, until, jsapi.NewRetrier(0), goOn, ended}, uint64(0)
	if x.own() {
		after = e.Origin.Seq
	}
	if e.Key == "" {
		e.Key = e.NewKey()
		if e.Origin.Deliveries > 1 {
			d.findEarlier(x)
			return
		}
	}
	d.publish(x, after)
}

// message is the event as it is stored to wait. JetStream stores it only if after is the last sequence under the
// event's key, 0 for none.
func (d *Delays) message(x *delay, after uint64) *nats.Msg {
	s := d.decoder.Subjects
	header := jsapi.AsideHeader(&x.e.Event, x.e.Runs, len(x.record), d.api.NC.MaxPayload())
	header.Set(headerSchedule, "@at "+x.until.UTC().Format(time.RFC3339Nano))
	header.Set(headerScheduleTarget, s.Due(&x.e.Event))
	header.Set(events.HeaderMsgID, events.ParkedID(&x.e.Event))
	header.Set(jsapi.HeaderExpectLastSubjectSeq, strconv.FormatUint(after, 10))
	header.Set(jsapi.HeaderExpectLastSubjectSubject, s.Anywhere(&x.e.Event))
	if x.record != "" {
		header.Set(events.ParkedRecord, x.record)
	}
	return &nats.Msg{Subject: s.Waiting(&x.e.Event), Header: header, Data: x.e.Body}
}

func (d *Delays) publish(x *delay, after uint64) {
	m := d.message(x, after)
	d.api.Store(m, func(_ jsapi.Ack, err error) {
		switch {
		case err == nil:
			d.stored(x, m.Size())
		case jsapi.IsWrongLastSequence(err):
			d.check(x)
		case jsapi.IsRefused(err):
			d.api.Repeats.Warn(err, "event cannot be delayed").Str("event", x.e.ID).Str("worker", x.e.Target()).Send()
			x.done(DelayRefused, err)
		default:
			d.usage.Published(events.StreamSchedules, err)
			d.again(x, err, "event could not be delayed; trying again", func() { d.publish(x, after) })
		}
	})
}

// stored ends a delay: the event is stored with size bytes.
func (d *Delays) stored(x *delay, size int) {
	d.delayed.Inc()
	d.waiting.Added(x.e.Owner, size)
	x.done(DelayStored, nil)
}

// findEarlier delays an event that was delivered before, unless an earlier version of Pinwheel has stored it, under its
// own kind of key, and died before the ack.
func (d *Delays) findEarlier(x *delay) {
	earlier := d.decoder.Subjects.AnywhereEarlier(&x.e.Event)
	d.api.LookUp(events.StreamSchedules, earlier, func(m *stored.Message, err error) {
		switch {
		case err != nil:
			d.again(x, err, unknownDelay, func() { d.findEarlier(x) })
		case d.is(m, &x.e.Event):
			d.stored(x, len(m.Data))
		default:
			d.publish(x, 0)
		}
	})
}

// check looks up the unexpected message under the event's key. Usually it is the event itself, delayed before a crash.
func (d *Delays) check(x *delay) {
	e, own := x.e, x.own()
	d.api.LookUp(events.StreamSchedules, d.decoder.Subjects.Anywhere(&e.Event), func(m *stored.Message, err error) {
		switch {
		case err != nil:
			d.again(x, err, unknownDelay, func() { d.check(x) })
		case m == nil && own:
			d.log.Info().Str("event", e.ID).Str("worker", e.Target()).Msg("event that was to be delayed has ended elsewhere, or its stream was created again")
			x.done(DelayGone, nil)
		case m == nil: // the message under the key has ended meanwhile
			d.publish(x, 0)
		case d.is(m, &e.Event) && !(own && m.Sequence == e.Origin.Seq):
			d.stored(x, len(m.Data))
		case e.Overlaps() == events.OverlapReplace && tickOf(m) > e.ScheduledTime:
			x.done(DelayReplaced, nil)
		case e.Overlaps() != events.OverlapAllow: // an earlier tick, which this one replaces
			d.publish(x, m.Sequence)
		case own && m.Sequence == e.Origin.Seq: // the message after it has ended meanwhile
			d.publish(x, m.Sequence)
		default: // an event of a deleted stream, under a key of an earlier version of Pinwheel
			e.Key = e.NewKey()
			d.publish(x, 0)
		}
	})
}

const unknownDelay = "check whether an event waits already failed; retrying"

// again logs why a step failed, and takes it again after a while.
func (d *Delays) again(x *delay, err error, why string, step func()) {
	d.api.Repeats.Warn(err, why).Str("event", x.e.ID).Str("worker", x.e.Target()).Send()
	d.api.Missing()
	d.api.Retry(x.tries, func() {
		if x.goOn() {
			step()
		}
	})
}

// is reports whether m, of the stream of schedules, is e. It compares only what the fleet wrote: no publisher may store
// there, and publishers' headers of the same name are renamed.
func (d *Delays) is(m *stored.Message, e *events.Event) bool {
	if m == nil {
		return false
	}
	got, _, _ := d.decoder.DecodeParked(events.Origin{Stream: events.StreamSchedules, Seq: m.Sequence, Subject: m.Subject},
		events.Header(m.Header), m.Data, m.Time)
	return got.ID == e.ID && got.Target() == e.Target() && got.Kind == e.Kind && got.Stored.Equal(e.Stored) &&
		got.FirstStored() == e.FirstStored()
}
