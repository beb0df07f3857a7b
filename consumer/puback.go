package consumer

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// maxPubAck is what no answer of JetStream to a publish is longer than, in bytes.
const maxPubAck = 4096

var pubAckStart, pubAckError = []byte(`{"stream":"` + ourStreams), []byte(`{"error":{`)

// ourStreams is what the names of all streams of the fleet begin with. Owners can publish to no other.
const ourStreams = "PINWHEEL_"

// isPubAck reports whether a message is an answer of JetStream to a publish, and so no event. NATS lets anybody who may publish name any reply
// subject: an owner who names that of another's events has the server itself publish the PubAck there. Such an answer has no headers and
// nothing but fields of a PubAck, with the name of a stream of the fleet.
func isPubAck(h nats.Header, body []byte) bool {
	if len(h) > 0 || len(body) > maxPubAck || !bytes.HasPrefix(body, pubAckStart) && !bytes.HasPrefix(body, pubAckError) || guard.PubAckEvents.Off() {
		return false
	}
	var ack struct {
		Error     *json.RawMessage `json:"error"`
		Stream    string           `json:"stream"`
		Seq       *uint64          `json:"seq"`
		Domain    string           `json:"domain"`
		Duplicate bool             `json:"duplicate"`
		Value     string           `json:"val"`
		Batch     string           `json:"batch"`
		Count     int              `json:"count"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(&ack) == nil && !d.More() && strings.HasPrefix(ack.Stream, ourStreams) && (ack.Seq != nil || ack.Error != nil)
}

// dropPubAcks acks answers of JetStream that were stored as events. Nobody is told: they are nobody's.
func (c *Consumer) dropPubAcks(batch []*held) {
	for _, h := range batch {
		c.pubAckDropped(h.event.Origin.Subject)
		c.ack(h)
	}
}

func (c *Consumer) pubAckDropped(subject string) {
	c.metrics.pubAcks.Inc()
	c.seldom.Warn().Str("subject", subject).Msg("an answer of JetStream came as an event, and is dropped: an owner published with the subject of events as reply subject (docs/security.md)")
}
