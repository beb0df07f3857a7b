package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Where an event is stored that has not ended.
const (
	inLane    = "lane"    // in the stream of events: it waits there, or a process has it
	inSource  = "source"  // the same, of a source of the worker
	isParked  = "parked"  // its owner had no room for it, or is paused
	isHeld    = "held"    // its worker is paused, or was
	isDelayed = "delayed" // it waits for its time
	isDue     = "due"     // its time has come
)

// queuePlace is a place where events of an owner are that have not ended.
type queuePlace struct {
	name, stream string
	filter       func(s events.Subjects, owner, worker string) string // worker may be "*"
}

// queuePlaces are all of them, in the order of lists.
var queuePlaces = []queuePlace{
	{inLane, events.StreamEvents, func(s events.Subjects, owner, worker string) string {
		return s.StoredFor(owner, worker)[0]
	}},
	{inSource, events.StreamEvents, func(s events.Subjects, owner, worker string) string {
		return s.StoredFor(owner, worker)[1]
	}},
	{isParked, events.StreamParked, events.Subjects.ParkedFor},
	{isHeld, events.StreamParked, func(s events.Subjects, owner, worker string) string {
		return events.Held(s.ParkedFor(owner, worker))
	}},
	{isDelayed, events.StreamSchedules, func(s events.Subjects, owner, worker string) string {
		return scheduled(s, owner, worker, "", isDelayed)
	}},
	{isDue, events.StreamSchedules, func(s events.Subjects, owner, worker string) string {
		return scheduled(s, owner, worker, "", isDue)
	}},
}

// scheduled is the filter for the events of a worker in the stream of schedules, or for the one with an ID.
func scheduled(s events.Subjects, owner, worker, id, place string) string {
	filter := s.WaitingEvents(owner, worker, id)
	if place == isDue {
		filter = strings.Replace(filter, ".at.", ".due.", 1)
	}
	return filter
}

// QueuePlaces are the names of the places, in the order of lists.
func QueuePlaces() []string {
	names := make([]string, len(queuePlaces))
	for i, p := range queuePlaces {
		names[i] = p.name
	}
	return names
}

// placeOf finds a place by its name.
func placeOf(name string) (queuePlace, bool) {
	for _, p := range queuePlaces {
		if p.name == name {
			return p, true
		}
	}
	return queuePlace{}, false
}

// QueuedEvent is an event that has not ended.
type QueuedEvent struct {
	Ref     string    `json:"ref"`   // PLACE:SEQUENCE, by which it is found at once while it stays there
	Place   string    `json:"place"` // lane, source, parked, held, delayed or due
	Owner   string    `json:"owner"`
	Worker  string    `json:"worker"`
	Kind    string    `json:"kind"`
	ID      string    `json:"id"`
	Stored  time.Time `json:"stored"`      // first
	At      time.Time `json:"at,omitzero"` // when a delayed event is due
	Attempt int       `json:"attempt"`     // its next run, or the one in progress, as far as that is stored
	Bytes   int       `json:"bytes"`       // of the body
	// Headers, and the body as Body or in base64, if one event was asked for, and the body fits the answer.
	Headers    map[string][]string `json:"headers,omitempty"`
	Body       *string             `json:"body,omitempty"`
	BodyBase64 []byte              `json:"bodyBase64,omitempty"`
}

// queued decodes a message of a place. ok is false for messages that are no events.
func (o *Operations) queued(p queuePlace, m *stored.Message) (q QueuedEvent, e *events.Event, ok bool) {
	decoder, runs := events.Decoder{Subjects: o.subjects}, events.FirstRun
	origin := events.Origin{Stream: p.stream, Seq: m.Sequence, Subject: m.Subject}
	// Failures are ignored: such an event waits as others do.
	if p.stream == events.StreamEvents {
		e, _ = decoder.Decode(origin, events.Header(m.Header), m.Data, m.Time)
	} else {
		e, runs, _ = decoder.DecodeParked(origin, events.Header(m.Header), m.Data, m.Time)
	}
	q = QueuedEvent{
		Ref: p.name + ":" + strconv.FormatUint(m.Sequence, 10), Place: p.name,
		Owner: e.Owner, Worker: e.Worker, Kind: e.Kind.String(), ID: e.ID,
		Stored: e.Stored, Attempt: runs.Attempt, Bytes: len(m.Data),
	}
	if p.name == isDelayed {
		q.At, _ = time.Parse(time.RFC3339Nano, strings.TrimPrefix(m.Header.Get("Nats-Schedule"), "@at "))
	}
	return q, e, e.Owner != ""
}

// ListEvents chooses events of an owner that have not ended.
type ListEvents struct {
	Owner  string `json:"owner,omitempty"`
	Worker string `json:"worker,omitempty"` // WORKER or OWNER/WORKER
	Place  string `json:"place,omitempty"`
	Kind   string `json:"kind,omitempty"`    // only those of this kind
	Older  int64  `json:"olderMs,omitempty"` // only those that were stored at least so many milliseconds ago
	After  string `json:"after,omitempty"`   // a Ref
	Limit  int    `json:"limit,omitempty"`
}

// EventList is a page of the list of events.
type EventList struct {
	Events []QueuedEvent `json:"events"`
	// Next is the Ref after which the next page begins; "" at the end. A page may have fewer events than asked for.
	Next string `json:"next,omitempty"`
}

// maxQueueScanned is how many events are read for a page at most.
const maxQueueScanned = 5000

// parse checks the request and returns the places that it asks for, and the sequence after which the first one begins.
func (r *ListEvents) parse() (places []queuePlace, after uint64, err error) {
	if err := SplitWorker(&r.Owner, &r.Worker); err != nil {
		return nil, 0, err
	}
	if err := cmp.Or(OwnerName{r.Owner}.check(), CheckName("worker", r.Worker)); err != nil {
		return nil, 0, err
	}
	if _, err := events.ParseKind(r.Kind); err != nil && r.Kind != "" {
		return nil, 0, wrongField("kind", " %.20q: it is fetch, task or scheduled", r.Kind)
	}
	if r.Older < 0 {
		return nil, 0, wrongField("olderMs", " is %d: it is 0 or more", r.Older)
	}
	begun := r.After == ""
	first, seq, _ := strings.Cut(r.After, ":")
	for _, p := range queuePlaces {
		if p.name == first {
			if after, err = strconv.ParseUint(seq, 10, 64); err != nil {
				break
			}
			begun = true
		}
		if begun && (r.Place == "" || r.Place == p.name) {
			places = append(places, p)
		}
	}
	if _, known := placeOf(r.Place); !known && r.Place != "" {
		return nil, 0, wrongField("place", " %.20q: it is lane, source, parked, held, delayed or due", r.Place)
	}
	if !begun {
		return nil, 0, wrongField("after", " %.40q: it is what the page before has as next", r.After)
	}
	return places, after, nil
}

// chooses reports whether the request is about an event. before is what Older says, as a time.
func (r *ListEvents) chooses(q *QueuedEvent, before time.Time) bool {
	return q.Owner == r.Owner && (r.Kind == "" || q.Kind == r.Kind) && (r.Older == 0 || !q.Stored.After(before))
}

// filters reports whether the request is about some of an owner's or worker's events only.
func (r *ListEvents) filters() bool { return r.Place != "" || r.Kind != "" || r.Older > 0 }

// scan passes at most limit events that r chooses to take, from the first place on, those of each place in the order in
// which they came there. It ends when take does not take one, or after maxQueueScanned messages. next is the Ref after
// which the next page begins; "" at the end.
func (o *Operations) scan(ctx context.Context, r *ListEvents, places []queuePlace, after uint64, limit int,
	take func(p queuePlace, q *QueuedEvent, m *stored.Message) (taken bool, err error)) (next string, err error) {
	before, scanned, taken := time.Now().Add(-time.Duration(r.Older)*time.Millisecond), 0, 0
	for _, p := range places {
		filter := p.filter(o.subjects, r.Owner, cmp.Or(r.Worker, "*"))
		last := p.name + ":" + strconv.FormatUint(after, 10)
		for m, err := range stored.All(ctx, o.nc, p.stream, filter, after+1) {
			if err != nil {
				return "", err
			}
			if taken == limit || scanned == maxQueueScanned {
				return last, nil
			}
			scanned++
			q, _, ok := o.queued(p, m)
			if ok && r.chooses(&q, before) {
				if is, err := take(p, &q, m); !is || err != nil {
					return last, err
				}
				taken++
			}
			last = q.Ref
		}
		after = 0
	}
	return "", nil
}

// listEvents lists events of an owner that have not ended, those of each place in the order in which they came there.
func (o *Operations) listEvents(ctx context.Context, r ListEvents) (EventList, error) {
	list := EventList{Events: []QueuedEvent{}}
	places, after, err := r.parse()
	if err != nil {
		return list, err
	}
	limit, err := listed(r.Limit)
	if err != nil {
		return list, err
	}
	size := 0
	list.Next, err = o.scan(ctx, &r, places, after, limit,
		func(_ queuePlace, q *QueuedEvent, _ *stored.Message) (bool, error) {
			text, err := json.Marshal(q)
			if size += len(text) + 1; err != nil || size > o.answerRoom() && len(list.Events) > 0 {
				return false, err
			}
			list.Events = append(list.Events, *q)
			return true, nil
		})
	return list, err
}

// ShowEvent names an event of an owner, by its Ref or by its ID.
type ShowEvent struct {
	asker
	Owner  string `json:"owner,omitempty"`
	Worker string `json:"worker,omitempty"` // WORKER or OWNER/WORKER; "" = any
	ID     string `json:"id"`
}

// findWithin is how long an event is looked for by its ID.
const findWithin = 15 * time.Second

// showEvent returns an event with its headers and its body.
func (s *Server) showEvent(ctx context.Context, r ShowEvent) (QueuedEvent, error) {
	if err := SplitWorker(&r.Owner, &r.Worker); err != nil {
		return QueuedEvent{}, err
	}
	if err := cmp.Or(OwnerName{r.Owner}.check(), CheckName("worker", r.Worker)); err != nil {
		return QueuedEvent{}, err
	}
	if r.ID == "" || len(r.ID) > events.MaxEventID {
		return QueuedEvent{}, wrongField("id", " has %d bytes: it is 1 to %d", len(r.ID), events.MaxEventID)
	}
	ctx, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	p, m, err := s.findEvent(ctx, r)
	if err != nil {
		return QueuedEvent{}, err
	}
	q, e, _ := s.queued(p, m)
	q.Headers = e.Header
	q.withBody(m.Data)
	if text, err := json.Marshal(q); err == nil && len(text) > s.answerRoom() {
		q.Body, q.BodyBase64 = nil, nil // bytes shows that there is one
	}
	return q, nil
}

// withBody sets the body.
func (q *QueuedEvent) withBody(body []byte) {
	if text := string(body); strings.ToValidUTF8(text, "") == text {
		q.Body = &text
		return
	}
	q.BodyBase64 = body
}

// findEvent finds an event: by its Ref with one request; by an ID that is the number of its message, or while it is
// delayed, with a few; else it searches all events of the owner.
func (s *Server) findEvent(ctx context.Context, r ShowEvent) (queuePlace, *stored.Message, error) {
	is := func(p queuePlace, m *stored.Message, id bool) bool {
		q, _, ok := s.queued(p, m)
		return ok && q.Owner == r.Owner && (r.Worker == "" || q.Worker == r.Worker) && (!id || q.ID == r.ID)
	}
	name, number, byRef := strings.Cut(r.ID, ":")
	if p, known := placeOf(name); known && byRef {
		if seq, err := strconv.ParseUint(number, 10, 64); err == nil {
			m, err := stored.Get(ctx, s.nc, p.stream, stored.Request{Seq: seq})
			if err == nil && workers.Covers([]string{p.filter(s.subjects, r.Owner, "*")}, m.Subject) && is(p, m, false) {
				return p, m, nil
			}
			if err != nil && !errors.Is(err, stored.ErrNone) {
				return p, nil, err
			}
		}
	}
	if seq, err := strconv.ParseUint(r.ID, 10, 64); err == nil { // an event without an ID has that of its message
		m, err := stored.Get(ctx, s.nc, events.StreamEvents, stored.Request{Seq: seq})
		if p := queuePlaces[0]; err == nil && is(p, m, true) {
			return p, m, nil
		}
	}
	for _, p := range queuePlaces {
		if p.stream != events.StreamSchedules {
			continue
		}
		filter := scheduled(s.subjects, r.Owner, cmp.Or(r.Worker, "*"), r.ID, p.name)
		m, err := stored.Get(ctx, s.nc, p.stream, stored.Request{Seq: 1, Next: filter})
		if err == nil && is(p, m, true) {
			return p, m, nil
		}
	}
	for _, p := range queuePlaces {
		if p.stream == events.StreamSchedules {
			continue
		}
		found, err := s.searchFor(ctx, p, r)
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
			return p, nil, &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf(
				"event %.80q was not found within %s: there are too many; a ref as events.list has it finds one at once", r.ID,
				findWithin)}
		}
		if err != nil {
			return p, nil, err
		}
		for _, seq := range found {
			if m, err := stored.Get(ctx, s.nc, p.stream, stored.Request{Seq: seq}); err == nil && is(p, m, true) {
				return p, m, nil
			}
		}
	}
	return queuePlace{}, nil, &Error{Code: http.StatusNotFound, Text: fmt.Sprintf(
		"no event %.80q of %s waits or runs", r.ID, r.Owner)}
}
