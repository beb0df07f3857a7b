package events

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/internal/lib/percent"
)

// Decoder makes events of stored messages. The zero Decoder is not usable: set Subjects and ReplyPrefixes. Many
// goroutines may use it at once.
type Decoder struct {
	Subjects Subjects
	// ReplyPrefixes are the allowed beginnings of a Reply-To. The fleet publishes replies with its own rights, so a
	// publisher must not choose any subject. OwnerInPrefix stands for the event's owner.
	ReplyPrefixes []string
}

// Decode makes an Event of a stored message. origin.Subject is the stored subject, stored the time of the message in
// the stream. The Event keeps header and body; it does not copy them. Decode removes white space around header values.
//
// It always returns an Event, with all that it could read. When the message breaks the contract, the Failure has the
// reason malformed, and names what is wrong and what is allowed. Such an event must not run.
func (d Decoder) Decode(origin Origin, header Header, body []byte, stored time.Time) (*Event, *Failure) {
	e := new(Event)
	return e, d.DecodeTo(e, origin, header, body, stored)
}

// DecodeTo does what Decode does, for an Event that is a part of another struct. It overwrites all of e.
func (d Decoder) DecodeTo(e *Event, origin Origin, header Header, body []byte, stored time.Time) *Failure {
	*e = Event{Header: header, Body: body, Stored: stored, Origin: origin}
	p := problem{}
	if e.HeadersLost() {
		p.addErr(ErrHeadersLost)
	}
	_, kind, owner, worker, ok := d.Subjects.ParseStored(e.Origin.Subject)
	if !ok {
		p.add("subject %q is not %s.events.KIND.OWNER.WORKER", e.Origin.Subject, d.Subjects)
	} else {
		e.Owner, e.Worker = owner, worker
		var err error
		if e.Kind, err = ParseKind(kind); err != nil {
			p.add("%v", err)
		}
		if !ValidName(owner) || !ValidName(worker) {
			p.addErr(CheckName("owner", owner))
			p.addErr(CheckName("worker", worker))
		}
	}
	e.Sourced = ok && d.Subjects.Sourced(e.Origin.Subject)
	d.readHeaders(e, &p)
	if e.Sourced {
		e.readSource(&p)
	}
	if e.ID == "" {
		e.ID = strconv.FormatUint(e.Origin.Seq, 10)
	}
	if e.Kind != Fetch || e.ReplyTo == "" {
		e.Credit = 0
	}
	if e.Parts != nil && e.Kind != Fetch {
		p.add("header %s: only a fetch event has a body in parts", HeaderBodyID)
	}
	switch e.Kind {
	case Fetch:
		e.completeFetch(&p)
	case Task:
		if isJSON(e.Header) && !json.Valid(bytes.TrimPrefix(e.Body, []byte("\ufeff"))) {
			p.add("body is not the JSON that %s says it is", HeaderContentType)
		}
	}
	return p.failure
}

// problem keeps the first error.
type problem struct{ failure *Failure }

func (p *problem) add(format string, args ...any) {
	if p.failure == nil {
		p.failure = Fail(ReasonMalformed, format, args...)
	}
}

func (p *problem) addErr(err error) {
	if err != nil {
		p.add("%v", err)
	}
}

// readHeaders reads in one pass all headers that have a meaning for Pinwheel. The case of names makes no difference:
// reply-to is Reply-To.
func (d Decoder) readHeaders(e *Event, p *problem) {
	var msgID, deliverAt, deliverAfter string
	var seen [len(knownHeaders)]bool
	size := 0
	for name, values := range e.Header {
		trimValues(values)
		p.addErr(checkWritable(name, values))
		size += storedSize(name, values)
		if hasPrefixFold(name, HeaderHTTPPrefix) {
			e.addHTTPHeaders(name[len(HeaderHTTPPrefix):], values, p)
			continue
		}
		i := knownHeader(name)
		if i < 0 {
			continue
		}
		known := knownHeaders[i]
		if len(values) != 1 || seen[i] {
			p.add("header %s does not appear once: its case makes no difference", known)
			continue
		}
		seen[i] = true
		switch known {
		case HeaderMsgID:
			msgID = values[0]
			continue
		case HeaderDeliverAt:
			deliverAt = cmp.Or(values[0], " ")
			continue
		case HeaderDeliverAfter:
			deliverAfter = cmp.Or(values[0], " ")
			continue
		}
		d.readHeader(e, known, values[0], p)
	}
	p.addErr(checkStoredSize(size))
	e.delay(deliverAt, deliverAfter, p)
	if e.ID == "" {
		e.ID = msgID
	}
	if !validID(e.ID) {
		p.add("header %s: it is at most %d bytes of UTF-8", HeaderEventID, MaxEventID)
		e.ID = ""
	}
	if !validID(e.VersionKey) {
		p.add("header %s: it is at most %d bytes of UTF-8", HeaderVersionKey, MaxEventID)
	}
}

// trimValues removes the white space around values. It would be lost when the event is stored again.
func trimValues(values []string) {
	for i, v := range values {
		if t := trimHeader(v); len(t) != len(v) {
			values[i] = t
		}
	}
}

// MaxEventID is the longest Event-Id, and the longest Version-Key, in bytes.
const MaxEventID = 256

func validID(id string) bool { return len(id) <= MaxEventID && utf8.ValidString(id) }

// readHeader reads one header that may appear only once. name is one of knownHeaders.
func (d Decoder) readHeader(e *Event, name, value string, p *problem) {
	var err error
	switch name {
	case HeaderReplyTo:
		if reason := d.refuseReplyTo(value, e.Owner); reason != "" {
			p.add("header %s %q: %s", name, value, reason)
			return
		}
		e.ReplyTo = value
	case HeaderEventID:
		e.ID = value
	case HeaderDeadline:
		if e.Deadline, err = time.Parse(time.RFC3339Nano, value); err != nil {
			p.add("header %s %q: it is a time in RFC 3339, like 2026-01-02T15:04:05.123Z", name, value)
		}
	case HeaderWorkerVersion:
		e.Version = value
	case HeaderVersionKey:
		e.VersionKey = value
	case HeaderMethod:
		if !isToken(value) || isForbiddenMethod(value) {
			p.add("header %s %q: it is an HTTP method other than CONNECT, TRACE and TRACK", name, value)
			return
		}
		e.Method = value
	case HeaderURL:
		e.URL = value
	case HeaderScheduledTime:
		if e.ScheduledTime, err = strconv.ParseInt(value, 10, 64); err != nil || !isJSTime(e.ScheduledTime) {
			p.add("header %s %q: it is milliseconds since the epoch, 0 to %d", name, value, int64(maxJSTime))
		}
	case HeaderCron:
		e.Cron = value
	case HeaderBodyCredit:
		if e.Credit, err = strconv.ParseInt(value, 10, 64); err != nil || e.Credit < 1 || e.Credit > maxCredit {
			p.add("header %s %q: it is a number of bytes, 1 to %d", name, value, int64(maxCredit))
			e.Credit = 0
		}
	case HeaderBodyID:
		if !ValidName(value) {
			p.add("header %s %q: it is 1 to %d of A-Z a-z 0-9 _ -", name, value, MaxName)
			return
		}
		e.parts().ID = value
	case HeaderBodyParts:
		if value == LiveParts {
			e.parts().Live = true
			return
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxParts {
			p.add("header %s %q: it is a number of parts, 1 to %d, or %s for a body that comes while the event runs",
				name, value, maxParts, LiveParts)
			return
		}
		e.parts().N = n
	}
}

func (e *Event) parts() *Parts {
	if e.Parts == nil {
		e.Parts = &Parts{}
	}
	return e.Parts
}

// maxCredit is larger than any body.
const maxCredit = 1 << 53

// maxJSTime is the latest time a JavaScript Date can hold (ECMA-262 §21.4.1.1).
const maxJSTime = 8.64e15

// knownHeaders are the headers that Decode reads. Each may appear once.
var knownHeaders = [...]string{
	HeaderReplyTo, HeaderEventID, HeaderDeadline, HeaderWorkerVersion, HeaderVersionKey,
	HeaderMethod, HeaderURL, HeaderScheduledTime, HeaderCron, HeaderMsgID, HeaderBodyCredit, HeaderBodyID, HeaderBodyParts,
	HeaderDeliverAt, HeaderDeliverAfter,
}

// knownHeader is the index of a name in knownHeaders, or -1.
func knownHeader(name string) int {
	for i, known := range knownHeaders {
		if len(name) == len(known) && strings.EqualFold(name, known) {
			return i
		}
	}
	return -1
}

// refuseReplyTo is the reason why replies may not go to the subject, or "".
func (d Decoder) refuseReplyTo(subject, owner string) string {
	if d.Subjects.Owned(subject) || strings.HasPrefix(subject, "$") {
		return "replies never go to subjects of NATS or Pinwheel"
	}
	if !validPublishSubject(subject) {
		return "it is not a subject that can be published to"
	}
	for _, prefix := range d.ReplyPrefixes {
		if hasReplyPrefix(subject, prefix, owner) {
			return ""
		}
	}
	return "it must begin with " + strings.Join(d.ReplyPrefixes, " or ")
}

// CheckReplyTo returns an error that says why replies to the owner's events may not go to subject, or nil.
func (d Decoder) CheckReplyTo(subject, owner string) error {
	if reason := d.refuseReplyTo(subject, owner); reason != "" {
		return fmt.Errorf("reply subject %q: %s", subject, reason)
	}
	return nil
}

// validPublishSubject follows NATS: no empty tokens, no white space, no wildcards.
func validPublishSubject(s string) bool {
	if s == "" || len(s) > 1024 || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") || strings.Contains(s, "..") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '*' || r == '>' })
}

func (e *Event) addHTTPHeaders(name string, values []string, p *problem) {
	if !isToken(name) {
		p.add("header %s%s: %q is not the name of an HTTP header", HeaderHTTPPrefix, name, name)
		return
	}
	for _, v := range values {
		if strings.ContainsAny(v, "\x00\r\n") {
			p.add("header %s%s: its value has a NUL or a line break", HeaderHTTPPrefix, name)
			return
		}
		e.HTTPHeaders = append(e.HTTPHeaders, name, v)
	}
}

// completeFetch sets the defaults of a fetch event, and checks its URL.
func (e *Event) completeFetch(p *problem) {
	if e.Method == "" {
		e.Method = "GET"
		if len(e.Body) > 0 || e.Parts != nil {
			e.Method = "POST"
		}
	}
	if b := e.Parts; b != nil && (b.ID == "" || b.N == 0 && !b.Live || len(e.Body) > 0) {
		p.add("headers %s and %s: a body in parts has both, and the event itself no body", HeaderBodyID, HeaderBodyParts)
	}
	if (e.Method == "GET" || e.Method == "HEAD") && e.Parts != nil {
		p.add("%s %s cannot carry a body, and this one has one in parts", HeaderMethod, e.Method)
	}
	if (e.Method == "GET" || e.Method == "HEAD") && len(e.Body) > 0 {
		p.add("%s %s cannot carry a body, and this one has %d bytes", HeaderMethod, e.Method, len(e.Body))
	}
	switch {
	case e.URL == "" || e.URL == "/":
		e.URL = "http://" + e.Worker + "." + e.Owner + ".pinwheel/" // baseURL and a slash, in one allocation
		return
	case strings.HasPrefix(e.URL, "/"):
		e.URL = baseURL(e.Owner, e.Worker) + e.URL
	}
	u, err := url.Parse(percent.Escape(e.URL))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		p.add("header %s %q: it is a path that begins with / or an absolute http or https URL", HeaderURL, e.URL)
	}
}

// baseURL comes before the path of a fetch event: http://<worker>.<owner>.pinwheel.
func baseURL(owner, worker string) string { return "http://" + worker + "." + owner + ".pinwheel" }

func isJSON(h Header) bool {
	for name, values := range h {
		if len(values) > 0 && strings.EqualFold(name, HeaderContentType) {
			media, _, _ := strings.Cut(values[0], ";")
			media = strings.TrimSpace(media)
			return strings.EqualFold(media, "application/json") || hasSuffixFold(media, "+json")
		}
	}
	return false
}

func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}

func isForbiddenMethod(m string) bool {
	return strings.EqualFold(m, "CONNECT") || strings.EqualFold(m, "TRACE") || strings.EqualFold(m, "TRACK")
}

// ParseAckSubject reads the origin of a delivery from its ack subject, in both formats of the server:
// $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<ns>.<pending> and
// $JS.ACK.<domain>.<account hash>.<the same>[.<token>].
//
// Only the ack subject decides whether a message is a delivery. Headers and body do not.
func ParseAckSubject(subject string) (origin Origin, stored time.Time, pending uint64, err error) {
	bad := func() (Origin, time.Time, uint64, error) {
		return Origin{}, time.Time{}, 0, fmt.Errorf("%q is not the ack subject of a JetStream delivery", subject)
	}
	var tokens [13]string
	n := 0
	for rest := subject; ; n++ {
		if n == len(tokens) {
			return bad()
		}
		token, after, more := strings.Cut(rest, ".")
		tokens[n], rest = token, after
		if !more {
			n++
			break
		}
	}
	if n < 9 || tokens[0] != "$JS" || tokens[1] != "ACK" {
		return bad()
	}
	t := tokens[2:9]
	if n >= 11 {
		t = tokens[4:11]
	} else if n != 9 {
		return bad()
	}
	delivered, err1 := strconv.Atoi(t[2])
	seq, err2 := strconv.ParseUint(t[3], 10, 64)
	nanos, err3 := strconv.ParseInt(t[5], 10, 64)
	pending, err4 := strconv.ParseUint(t[6], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || delivered < 1 || t[0] == "" || t[1] == "" {
		return bad()
	}
	origin = Origin{Stream: t[0], Consumer: t[1], Seq: seq, Deliveries: delivered, AckSubject: subject}
	return origin, time.Unix(0, nanos), pending, nil
}

// isJSTime reports whether JavaScript has such a time, in milliseconds since the epoch.
func isJSTime(ms int64) bool { return ms >= 0 && ms <= maxJSTime }
