package events

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Headers of an event that was parked or delayed, beside the original ones.
const (
	parkedPrefix = "Parked-"
	// An original header that has a meaning for NATS, or that looks like one of Pinwheel's, is kept under this prefix.
	parkedOriginal = "Parked-Original-"

	headerParkedSubject = "Parked-Subject" // as stored in the event stream
	headerParkedID      = "Parked-Event-Id"
	headerParkedStored  = "Parked-Stored"
	headerParkedAttempt = "Parked-Attempt" // of the next run
	headerParkedCrashes = "Parked-Crashes"
	headerParkedStream  = "Parked-Stream" // where it was stored first
	headerParkedSeq     = "Parked-Seq"
	headerParkedKey     = "Parked-Key" // see Event.Key

	// ParkedRecord is a header for package consumer only: its record of the failed runs.
	ParkedRecord = "Parked-Record"
)

// EncodeParked makes the headers of e as a parked or delayed event. The message body is Event.Body.
func EncodeParked(e *Event, r Runs) Header {
	h := make(Header, len(e.Header)+8)
	for name, values := range e.Header {
		if serverHonoured(name) || hasPrefixFold(name, parkedPrefix) {
			name = parkedOriginal + name
		}
		h[name] = values
	}
	h.Set(headerParkedSubject, e.Origin.Subject)
	h.Set(headerParkedID, e.ID)
	h.Set(headerParkedStored, formatTime(e.Stored))
	h.Set(headerParkedAttempt, strconv.Itoa(r.Attempt))
	h.Set(headerParkedCrashes, strconv.Itoa(r.Crashes))
	if first := e.FirstStored(); first.Stream != "" {
		h.Set(headerParkedStream, first.Stream)
		h.Set(headerParkedSeq, strconv.FormatUint(first.Seq, 10))
	}
	if e.Key != "" {
		h.Set(headerParkedKey, e.Key)
	}
	return h
}

// DecodeParked makes the Event of a message that EncodeParked made, as it was then, but with the given origin. It sets
// origin.Subject to the subject in the event stream. Like Decode, it always returns an Event, and a Failure when
// EncodeParked did not make the message.
func (d Decoder) DecodeParked(origin Origin, header Header, body []byte, stored time.Time) (*Event, Runs, *Failure) {
	e := new(Event)
	runs, failure := d.DecodeParkedTo(e, origin, header, body, stored)
	return e, runs, failure
}

// DecodeParkedTo does what DecodeParked does, for an Event that is a part of another struct. It overwrites all of e.
func (d Decoder) DecodeParkedTo(e *Event, origin Origin, header Header, body []byte,
	stored time.Time) (Runs, *Failure) {
	original := make(Header, len(header))
	for name, values := range header {
		if after, ok := strings.CutPrefix(name, parkedOriginal); ok {
			original[after] = values
		} else if !strings.HasPrefix(name, parkedPrefix) && !serverHonoured(name) {
			original[name] = values
		}
	}
	parkedSubject := origin.Subject
	origin.Subject = header.Get(headerParkedSubject)
	attempt, err := strconv.Atoi(header.Get(headerParkedAttempt))
	crashes, err2 := strconv.Atoi(header.Get(headerParkedCrashes))
	at, err3 := time.Parse(time.RFC3339Nano, header.Get(headerParkedStored))
	if err != nil || err2 != nil || err3 != nil || attempt < 1 || crashes < 0 {
		origin.Subject = parkedSubject
		*e = Event{Header: original, Body: body, Stored: stored, Origin: origin, ID: strconv.FormatUint(origin.Seq, 10)}
		return FirstRun, Fail(ReasonMalformed, "parked message %d does not have the headers of a parked event", origin.Seq)
	}
	failure := d.DecodeTo(e, origin, original, body, at)
	e.Key, e.DeliverAt = d.parkedKey(parkedSubject, header), time.Time{}
	if seq, err := strconv.ParseUint(header.Get(headerParkedSeq), 10, 64); err == nil {
		e.First = Stored{header.Get(headerParkedStream), seq}
	}
	if id := header.Get(headerParkedID); id != "" && len(id) <= MaxEventID {
		e.ID = id
	}
	return Runs{attempt, crashes}, failure
}

// parkedKey is the key of a parked or delayed event. If its message has none, it is the last token of its subject in
// the stream of schedules: earlier binaries delayed events without that header.
func (d Decoder) parkedKey(subject string, h Header) string {
	if key := h.Get(headerParkedKey); key != "" || !strings.HasPrefix(subject, string(d.Subjects)+".schedules.") {
		return key
	}
	return subject[strings.LastIndexByte(subject, '.')+1:]
}

// ParkedID is the message id that keeps e from being parked twice. It has the time when e was stored, because a stream
// that is deleted and created again gives the same sequences to other events.
func ParkedID(e *Event) string {
	return fmt.Sprintf("%s:%d:%d", e.Origin.Stream, e.Origin.Seq, e.Stored.UnixNano())
}
