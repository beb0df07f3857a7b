package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// StreamStats describes the content of a stream.
type StreamStats struct {
	Messages uint64    `json:"messages"`
	Bytes    uint64    `json:"bytes"`
	Oldest   time.Time `json:"oldest,omitzero"` // when its first message was stored
}

// FleetStats describes what is stored for the whole fleet. A stream that is being created again is nil.
type FleetStats struct {
	Dead   *StreamStats `json:"dead,omitempty"`
	Events *StreamStats `json:"events,omitempty"`
	Node   string       `json:"node"`
	Parked *StreamStats `json:"parked,omitempty"`
}

// Stats returns what is stored for the whole fleet.
func (o *Operations) Stats(ctx context.Context, _ None) (FleetStats, error) {
	all := FleetStats{Node: o.node}
	for _, of := range []struct {
		into                   **StreamStats
		stream, filter, anchor string
	}{
		{&all.Events, events.StreamEvents, o.subjects.AllStored(), o.subjects.Anchor()},
		{&all.Parked, events.StreamParked, o.subjects.ParkedOwner("*"), o.subjects.ParkedAnchor()},
		{&all.Dead, events.StreamDead, o.subjects.AllDead(), ""},
	} {
		switch one, err := o.streamStats(ctx, of.stream, of.filter, of.anchor); {
		case err == nil:
			*of.into = &one
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return all, err
		}
	}
	return all, nil
}

// streamStats describes the messages of a stream that match filter. All other messages of the stream are under anchor.
func (o *Operations) streamStats(ctx context.Context, stream, filter, anchor string) (one StreamStats, err error) {
	s, err := o.js.Stream(ctx, stream)
	if err != nil {
		return one, fmt.Errorf("stream %s: %w", stream, err)
	}
	one.Bytes = s.CachedInfo().State.Bytes
	if one.Messages, err = resources.Count(ctx, o.js, stream, anchor); err != nil || one.Messages == 0 {
		return one, err
	}
	first, err := stored.Get(ctx, o.nc, stream, stored.Request{Seq: 1, Next: filter})
	if errors.Is(err, stored.ErrNone) { // it was removed just now
		return one, nil
	}
	if err != nil {
		return one, fmt.Errorf("oldest message of stream %s: %w", stream, err)
	}
	one.Oldest = first.Time
	return one, nil
}

// What one request of a search may bring.
const (
	searchBatch, searchBytes = 1000, 4 << 20
	searchFound              = 10 // an owner may publish many events with one ID
	// searchTime is the CPU time of a search for each event that it reads, and again for each searchSize bytes of bodies:
	// what nats-server and the connection take, which is not that of the goroutine.
	searchTime = 10 * time.Microsecond
	searchSize = 4 << 10
)

// search returns sequences of messages that seem to be events with an ID. It reads a thousand messages with a request,
// and calls paid after each with how many came, and with how many bytes. Publishers may write every header of these
// answers, also those that end a batch: an owner that does so does not find its own events. So what is found is only a
// hint.
func (o *Operations) search(ctx context.Context, p queuePlace,
	filter, id string, paid func(read, size int)) (found []uint64, err error) {
	sub, err := o.nc.SubscribeSync(o.nc.NewInbox())
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	read, size := 0, 0
	defer func() { paid(read, size) }() // of the last batch
	for next := uint64(1); ; {
		request := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q,"batch":%d,"max_bytes":%d}`, next, filter, searchBatch,
			searchBytes)
		if err := o.nc.PublishRequest("$JS.API.DIRECT.GET."+p.stream, sub.Subject, request); err != nil {
			return nil, err
		}
		last := next - 1
		for {
			m, err := sub.NextMsgWithContext(ctx)
			if err != nil {
				return nil, err
			}
			seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
			if err != nil || m.Header.Get("Status") != "" && len(m.Data) == 0 {
				break // the end of the batch, or there are no more
			}
			read, size = read+1, size+len(m.Data)
			last = max(last, seq)
			if !hasValue(m.Header, id) {
				continue // most are sorted out without being decoded
			}
			of := &stored.Message{Subject: m.Header.Get(jetstream.SubjectHeader), Sequence: seq, Header: m.Header}
			if q, _, _ := o.queued(p, of); q.ID == id {
				if found = append(found, seq); len(found) == searchFound {
					return found, nil
				}
			}
		}
		if last < next || len(found) > 0 {
			return found, nil
		}
		paid(read, size)
		next, read, size = last+1, 0, 0
	}
}

// searchFor is search, for which the owner pays whose API the request came to.
func (s *Server) searchFor(ctx context.Context, p queuePlace, r ShowEvent) ([]uint64, error) {
	return s.search(ctx, p, p.filter(s.subjects, r.Owner, cmp.Or(r.Worker, "*")), r.ID, s.gate.payer(r.by))
}

// payer returns what charges an owner, or nobody with "", for messages that were read for it, and for their bytes.
func (g *gate) payer(owner string) func(read, size int) {
	return func(read, size int) {
		if g != nil && owner != "" {
			g.charge(owner, paidFor(read, size))
		}
	}
}

// paidFor is the CPU time of so many messages that were read, with so many bytes.
func paidFor(read, size int) time.Duration { return time.Duration(read+size/searchSize) * searchTime }

// hasValue reports whether a header may have the ID of an event, which ends there or before a colon.
func hasValue(h nats.Header, id string) bool {
	for _, values := range h {
		for _, v := range values {
			if rest, ok := strings.CutPrefix(strings.Trim(v, " \t\r\n"), id); ok && (rest == "" || rest[0] == ':') {
				return true
			}
		}
	}
	return false
}
