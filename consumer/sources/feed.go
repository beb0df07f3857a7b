package sources

import (
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const (
	// window is how many messages of a source a process asks for, or has and has not acked.
	window = 512
	// fewest is the part of a window that is worth a request. A source that is as far ahead of its worker as it may be
	// would ask for a few messages at a time otherwise.
	fewest = 4
	// mostAhead is how many events of a source may wait in the stream of events or run, and aheadBytes how many bytes they
	// may have. More messages wait at their source, so that no events of sources are parked.
	mostAhead, aheadBytes = 2048, 32 << 20
	// feedBytes bounds the bytes that a source brings to a process at once, and allBytes those of all sources. One message
	// always fits.
	feedBytes, allBytes = 4 << 20, 64 << 20
	// requestLife is how long a request for messages lives. silence is how long there may be no word of it.
	requestLife, silence = 30 * time.Second, 45 * time.Second
	// storeWait is how long the server may take to store an event.
	storeWait = 10 * time.Second
	// recount is when a source with many events ahead counts them again. It doubles up to maxRecount while none ends.
	recount, maxRecount = 10 * time.Millisecond, 500 * time.Millisecond
	// backoff is how long a source backs off at first. It doubles up to maxBackoff.
	backoff, maxBackoff = 100 * time.Millisecond, 10 * time.Second
	// messageSlack is more than the bytes that a server counts in addition to a message.
	messageSlack = 64 << 10
)

// feed brings the messages of one source. The goroutine of its pump, and that of answers, use it.
type feed struct {
	s       *Sources
	pump    *pump
	token   string // of its inbox
	rec     Record
	source  workers.Source
	subject string // of its events
	created time.Time
	next    string             // subject of its requests
	sub     *nats.Subscription // of core subjects

	tally

	mu      sync.Mutex
	ended   bool
	credits int // messages asked for that have not come
	flight  int // messages that have come and are not acked
	size    int // about the bytes of a message
	heard   time.Time
	until   time.Time       // no request before
	fails   int             // in a row
	policy  *workers.Policy // that was checked
	condition
	waiting
}

// most is how many events of the source may have not ended. mu must be held.
func (f *feed) most() int {
	if f.size > 0 {
		return min(mostAhead, max(8, aheadBytes/f.size))
	}
	return mostAhead
}

// whole is how many messages a process may ask for, or have and not have acked. mu must be held.
func (f *feed) whole() int {
	if f.size > 0 {
		return min(window, max(1, f.pump.bytes()/f.size))
	}
	return window
}

// left is how many more events of the source may be stored than it has asked for, and least how many are worth a
// request. mu must be held.
func (f *feed) left() int { return f.most() - f.ahead - f.credits - f.flight }

func (f *feed) least() int { return max(1, min(f.whole(), f.most())/fewest) }

// room returns how many messages to ask for now. mu must be held.
func (f *feed) room(now time.Time) int {
	if f.ended || now.Before(f.until) {
		return 0
	}
	n := f.whole() - f.credits - f.flight
	if left := f.left(); left < n {
		f.count(now)
		n = left
	}
	if f.credits > 0 && n < window/2 || n < f.least() {
		return 0 // not worth a request yet
	}
	return n
}

// ask asks for messages if there is room. It is called by the pump.
func (f *feed) ask(now time.Time) {
	if f.source.Subject != "" {
		return // core messages come unasked
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.room(now)
	if n == 0 {
		return
	}
	if !f.mayConsume() {
		f.backOff(now, Failing, notGranted)
		return
	}
	if f.isPaused() {
		f.backOff(now, Paused, "")
		return
	}
	if f.s.usage.OverShareOf(f.rec.Owner) {
		f.backOff(now, BacksOff, "the owner has its share of the stream of events, or nothing is stored now")
		return
	}
	request := append(f.pump.request[:0], `{"batch":`...)
	request = strconv.AppendInt(request, int64(n), 10)
	request = append(request, `,"max_bytes":`...)
	request = strconv.AppendInt(request, int64(f.pump.bytes()), 10)
	request = append(request, `,"expires":`...)
	request = strconv.AppendInt(request, int64(requestLife), 10)
	f.pump.request = append(request, '}')
	if err := f.pump.conn.NC.PublishRequest(f.next, f.pump.inbox+f.token, f.pump.request); err != nil {
		f.backOff(now, Failing, err.Error())
		return
	}
	f.credits += n
	f.heard, f.condition = now, condition{}
}

// mayConsume reports whether the owner is still granted the source. mu must be held.
func (f *feed) mayConsume() bool {
	p := f.s.cfg.Catalog.Policy(f.rec.Owner)
	if f.policy != p {
		if !p.MayConsume(f.source) {
			return false
		}
		f.policy = p
	}
	return true
}

// notGranted is why a source is not read whose grant is gone.
const notGranted = "the policy of the owner does not grant it"

// isPaused reports whether the worker is paused: its messages wait at their source, not among the parked events.
func (f *feed) isPaused() bool { return f.s.cfg.Catalog.Policy(f.rec.Owner).IsPaused(f.rec.Worker) }

// resumed has a feed ask again at once, if its worker is no longer paused.
func (f *feed) resumed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == Paused && !f.isPaused() {
		f.fails, f.until, f.condition = 0, time.Time{}, condition{}
		f.pump.want(f)
	}
}

// backOff has the feed ask for nothing for a while. mu must be held.
func (f *feed) backOff(now time.Time, state State, why string) {
	wait := min(maxBackoff, backoff<<min(f.fails, 10))
	f.fails++
	f.until, f.condition = now.Add(wait), condition{state, why}
	time.AfterFunc(wait, func() { f.pump.want(f) })
}

// hear takes a message of core NATS. Its publisher wrote the reply subject, which must not get an ack.
func (f *feed) hear(m *nats.Msg, now time.Time) {
	m.Reply = ""
	f.mu.Lock()
	full := f.flight >= window || f.flight > 0 && f.flight*f.size >= f.pump.bytes()
	f.mu.Unlock()
	if full {
		f.s.metrics.lost.Inc()
		return
	}
	f.take(m, events.Origin{}, now, 0, now)
}

// take stores a message as an event.
func (f *feed) take(m *nats.Msg, o events.Origin, stored time.Time, pending uint64, now time.Time) {
	size := m.Size()
	f.mu.Lock()
	f.credits = max(0, f.credits-1)
	f.flight++
	f.heard = now
	f.wait(pending, now)
	if size > f.size {
		f.size += (size - f.size + 3) / 4
	} else {
		f.size -= (f.size - size) / 64
	}
	ok := !f.ended && f.mayConsume()
	f.mu.Unlock()
	if !ok || f.s.usage.Admit(f.rec.Owner, size) != nil {
		f.back(m, BacksOff, "the owner has its share of the stream of events")
		return
	}
	of := f.message(m, o.Seq, stored)
	if err := fitting(m); err != nil {
		of.Fault = err.Error()
	}
	f.store(m, of)
}

// fitting returns why the headers of a message cannot be those of an event, or nil.
func fitting(m *nats.Msg) error {
	if m.Header == nil {
		if jsapi.HeaderBytes(m) > 0 {
			return events.ErrHeadersLost
		}
		return nil
	}
	return events.Header(m.Header).CheckWritable()
}

// message says what the fleet knows of a message.
func (f *feed) message(m *nats.Msg, seq uint64, stored time.Time) events.SourceMessage {
	of := events.SourceMessage{Stream: f.rec.Stream, Subject: m.Subject, Sequence: seq, Created: f.created, Time: stored}
	switch {
	case f.source.KV != "":
		of.Key, of.Operation = m.Subject[min(len(m.Subject), len("$KV.")+len(f.source.KV)+1):], "put"
		switch {
		case m.Header.Get("KV-Operation") == "DEL", m.Header.Get("Nats-Marker-Reason") == "Remove":
			of.Operation = "delete"
		case m.Header.Get("KV-Operation") == "PURGE", m.Header.Get("Nats-Marker-Reason") != "":
			of.Operation = "purge"
		}
	case f.source.Objects != "":
		var info struct {
			Name    string `json:"name"`
			Deleted bool   `json:"deleted"`
		}
		of.Operation = "put"
		if json.Unmarshal(m.Data, &info) == nil && info.Deleted {
			of.Operation = "delete"
		}
	}
	return of
}

// store publishes the event of a message, and acks the message when it is stored.
func (f *feed) store(m *nats.Msg, of events.SourceMessage) {
	event := &nats.Msg{Subject: f.subject, Data: m.Data}
	header := events.Header(m.Header)
	if of.Fault != "" {
		event.Data, header = nil, nil
	}
	event.Header = nats.Header(of.Headers(header, f.rec.ID))
	f.s.stores.Ask(event, storeWait, time.Now(), func(answer *nats.Msg, err error) {
		_, err = jsapi.ReadAck(answer, err)
		f.s.usage.Published(events.StreamEvents, err)
		switch {
		case err == nil: // a duplicate is this message: nobody else knows its id
			f.done(m)
		case jsapi.IsUnfit(err) && of.Fault == "":
			of.Fault = "it is too large for an event: " + err.Error()
			f.s.metrics.unfit.Inc()
			f.store(m, of)
		default:
			f.s.metrics.failed.Inc()
			f.back(m, Failing, "an event was not stored: "+err.Error())
		}
	})
}

// done acks a message whose event is stored.
func (f *feed) done(m *nats.Msg) {
	if m.Reply != "" {
		_ = f.pump.conn.NC.Publish(m.Reply, nil) // otherwise it comes again, and is a duplicate
	}
	f.s.metrics.stored.Inc()
	f.mu.Lock()
	f.flight--
	f.stored++
	f.ahead++
	f.fails, f.condition = 0, condition{}
	more := f.credits+f.flight <= window/2
	f.mu.Unlock()
	if more {
		f.pump.want(f)
	}
}

var nak = []byte("-NAK")

// back gives a message back to its source, and backs off.
func (f *feed) back(m *nats.Msg, state State, why string) {
	if m.Reply != "" {
		_ = f.pump.conn.NC.Publish(m.Reply, nak) // otherwise it comes again after its lease
	} else {
		f.s.metrics.lost.Inc()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flight--
	if now := time.Now(); !now.Before(f.until) {
		f.backOff(now, state, why)
	}
}

// status reads what the server says of a request.
func (f *feed) status(m *nats.Msg, now time.Time) {
	code := m.Header.Get("Status")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heard = now; code == "100" {
		return
	}
	if n, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")); err == nil && n >= 0 {
		f.credits -= min(n, f.credits)
		f.fails = 0 // the request came to its end as it should
		return
	}
	f.credits = 0
	f.backOff(now, Failing, "JetStream says "+code+" "+m.Header.Get("Description"))
	if code != "408" {
		jsapi.Signal(f.s.changed) // it, or its stream, may be gone
	}
}

// beat gives up requests of which nothing is heard. With all, it gives up all: they were those of another connection.
func (f *feed) beat(now time.Time, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all || f.credits > 0 && now.Sub(f.heard) > silence {
		f.credits = 0
	}
}

// end has the feed ask for nothing more.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
}
