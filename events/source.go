package events

import (
	"strconv"
	"strings"
	"time"
)

// Headers of an event that is a message of a source. The fleet alone writes them, and an event has them only if the
// fleet stored it under a subject that Sourced knows: those that others write are dropped.
const (
	HeaderSourceStream    = "Source-Stream"    // missing for a core subject
	HeaderSourceSubject   = "Source-Subject"   // of the message
	HeaderSourceSequence  = "Source-Sequence"  // in the stream; the revision of a key
	HeaderSourceTime      = "Source-Time"      // RFC 3339: when the source stored it, or a core message came
	HeaderSourceKey       = "Source-Key"       // of a KV bucket
	HeaderSourceOperation = "Source-Operation" // on a key or an object: put, delete or purge
	// HeaderSourceFault says why the message cannot be an event. The event has no body then, and is malformed.
	HeaderSourceFault = "Source-Fault"
)

const sourcePrefix = "Source-"

var sourceHeaders = [...]string{HeaderSourceStream, HeaderSourceSubject, HeaderSourceSequence, HeaderSourceTime,
	HeaderSourceKey, HeaderSourceOperation, HeaderSourceFault}

// isSourceHeader reports whether a header of this name says where an event of a source came from.
func isSourceHeader(name string) bool {
	return hasPrefixFold(name, sourcePrefix) && oneOfFold(name, sourceHeaders[:]...)
}

// SourceMessage is what the fleet knows of a message of a source.
type SourceMessage struct {
	Stream    string // "" = it is of a core subject
	Subject   string
	Sequence  uint64
	Created   time.Time // when the stream was created: another one may get its name, and give its sequences
	Time      time.Time
	Key       string
	Operation string
	Fault     string
}

// ID names the message: source:STREAM:CREATED:SEQUENCE. It is the id of its event.
func (m SourceMessage) ID() string {
	return "source:" + m.Stream + ":" + strconv.FormatInt(m.Created.UnixNano(), 10) + ":" +
		strconv.FormatUint(m.Sequence, 10)
}

// Headers makes the headers of the event of the message. Of those of the message, which its publisher wrote, it leaves
// out all that steer NATS or Pinwheel. secret is what nobody else can know: it makes the
// message id of the event, which is ID:SECRET.
func (m SourceMessage) Headers(of Header, secret string) Header {
	h := make(Header, len(of)+6)
	for name, values := range of {
		if !steersEvents(name) {
			h[name] = values
		}
	}
	texts := make([]string, 0, len(sourceHeaders)+2) // one allocation for the values of all headers
	set := func(name, value string) {
		if value != "" {
			texts = append(texts, value)
			h[name] = texts[len(texts)-1 : len(texts) : len(texts)]
		}
	}
	if m.Stream != "" {
		set(HeaderSourceStream, m.Stream)
		set(HeaderSourceSequence, strconv.FormatUint(m.Sequence, 10))
	}
	set(HeaderSourceSubject, m.Subject)
	set(HeaderSourceTime, formatTime(m.Time))
	set(HeaderSourceKey, m.Key)
	set(HeaderSourceOperation, m.Operation)
	set(HeaderSourceFault, m.Fault)
	if m.Stream != "" {
		set(HeaderMsgID, m.ID()+":"+secret)
	}
	return h
}

// steersEvents reports whether a header of this name means something to NATS or to Pinwheel, other than the type of the
// body and the trace.
func steersEvents(name string) bool {
	return serverHonoured(name) || knownHeader(name) >= 0 || isSourceHeader(name) ||
		hasPrefixFold(name, HeaderHTTPPrefix) || hasPrefixFold(name, deadPrefix) || hasPrefixFold(name, parkedPrefix)
}

// sourceSuffix ends the stored subject of an event of a source.
const sourceSuffix = ".source"

// Source is where the fleet publishes an event of a source: <prefix>.events.<lane>.task.<owner>.<worker>.source. It is
// stored as it is. Only the fleet may publish there: it has two tokens more than the subjects of publishers, and one
// more than what the stream makes of those.
func (s Subjects) Source(owner, worker string) string {
	return string(s) + ".events." + strconv.Itoa(LaneOf(owner)) + ".task." + owner + "." + worker + sourceSuffix
}

// AllSources is the filter for these.
func (s Subjects) AllSources() string { return string(s) + ".events.*.task.*.*" + sourceSuffix }

// Sourced reports whether a stored subject is one that Source makes.
func (s Subjects) Sourced(subject string) bool {
	return strings.HasSuffix(subject, sourceSuffix) && strings.Count(subject, ".") == 6 &&
		strings.HasPrefix(subject, string(s)+".events.")
}

// readSource checks the source of an event that the fleet stored. Its id is the message id without the secret.
func (e *Event) readSource(p *problem) {
	if strings.HasPrefix(e.ID, "source:") && e.ID == e.Header.Get(HeaderMsgID) {
		e.ID = e.ID[:strings.LastIndexByte(e.ID, ':')]
	}
	if fault := e.Header.Get(HeaderSourceFault); fault != "" {
		p.add("message %s of stream %s is no event: %s", e.Header.Get(HeaderSourceSequence),
			e.Header.Get(HeaderSourceStream), fault)
	}
}
