package jsapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Ack is JetStream's answer about a message that it has.
type Ack struct {
	Seq       uint64
	Duplicate bool // it had a message of this id already, and stored nothing
}

// ReadAck reads the answer to a publish. It reads the usual answers of nats-server without a JSON decoder.
func ReadAck(m *nats.Msg, err error) (Ack, error) {
	if err != nil {
		return Ack{}, err
	}
	stored, plain := bytes.CutPrefix(m.Data, storedStart)
	name, number, ok := bytes.Cut(stored, storedSeq)
	if number, end := bytes.CutSuffix(number, storedEnd); plain && ok && end && len(name) > 0 {
		if seq, err := strconv.ParseUint(string(number), 10, 64); err == nil {
			return Ack{Seq: seq}, nil
		}
	}
	var ack struct {
		Stream    string `json:"stream"`
		Seq       uint64 `json:"seq"`
		Duplicate bool   `json:"duplicate"`
		Error     *Error `json:"error"`
	}
	err = json.Unmarshal(m.Data, &ack)
	switch {
	case err != nil:
		return Ack{}, fmt.Errorf("answer to a publish: %w", err)
	case ack.Error != nil:
		return Ack{}, ack.Error
	case ack.Stream == "":
		return Ack{}, fmt.Errorf("answer to a publish names no stream: %.100q", m.Data)
	}
	return Ack{Seq: ack.Seq, Duplicate: ack.Duplicate}, nil
}

var storedStart, storedSeq, storedEnd = []byte(`{"stream":"`), []byte(`","seq":`), []byte(`}`)

// maxPubAck is the maximum length of JetStream's answer to a publish, in bytes.
const maxPubAck = 4096

var pubAckStart, pubAckError = []byte(`{"stream":"` + ourStreams), []byte(`{"error":{`)

// ourStreams is the prefix of the names of all streams of the fleet. Owners can publish to no other streams.
const ourStreams = "PINWHEEL_"

// IsPubAck reports whether a message is an answer of JetStream to a publish, and so no event. NATS lets a client that
// may publish use any reply subject. If an owner uses the subject of another owner's events, the server itself
// publishes the PubAck there. Such an answer has no headers and nothing but fields of a PubAck, with the name of a
// stream of the fleet.
func IsPubAck(m *nats.Msg) bool {
	body := m.Data
	if len(m.Header) > 0 || HeaderBytes(m) > 0 || len(body) > maxPubAck || !bytes.HasPrefix(body, pubAckStart) &&
		!bytes.HasPrefix(body, pubAckError) || guard.PubAckEvents.Off() {
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
	return d.Decode(&ack) == nil && !d.More() && strings.HasPrefix(ack.Stream, ourStreams) &&
		(ack.Seq != nil || ack.Error != nil)
}
