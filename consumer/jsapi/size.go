package jsapi

import "github.com/nats-io/nats.go"

const (
	// MaxStoredHeaders is the maximum size of headers that JetStream stores, 65535 bytes, minus room for the headers that
	// make it check before it stores.
	MaxStoredHeaders = 1<<16 - 1 - 1<<10
	// SteeringSize is the room for those headers in a message.
	SteeringSize = 512
)

// HeaderSize is how many bytes of a message are headers.
func HeaderSize(h nats.Header) int {
	const line = len("NATS/1.0\r\n")
	n := line + 2
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return n
}

// Fits reports whether JetStream takes m, with the headers that steer it, where a message has at most maxPayload bytes.
func Fits(m *nats.Msg, maxPayload int64) bool {
	headers := HeaderSize(m.Header)
	return headers <= MaxStoredHeaders && int64(headers+len(m.Data)) < maxPayload-SteeringSize
}

// HeaderBytes is how many bytes of a received message are its header block, also if nats.go could not read it.
func HeaderBytes(m *nats.Msg) int { return m.Size() - len(m.Subject) - len(m.Reply) - len(m.Data) }

// Headers by which a publisher makes JetStream check before it stores: the last sequence of the subjects that a filter
// matches. Rollup makes it replace all messages of a subject by the new one, in one step.
const (
	HeaderExpectLastSubjectSeq     = "Nats-Expected-Last-Subject-Sequence"
	HeaderExpectLastSubjectSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
	HeaderRollup                   = "Nats-Rollup"
)
