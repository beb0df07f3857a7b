package guarantees_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// remakes are the faults that delete a stream with its content. The stream is created again by the fleet or by hand. By
// hand, sequences occur again that processes hold events of.
func (b *breaker) remakes() []chance {
	return []chance{
		{"remake events", 1, b.remake}, {"remake events by hand", 2, b.remake}, {"remake parked", 1, b.remake},
		{"remake parked by hand", 1, b.remake},
		{"remake schedules", 1, b.remake}, {"remake schedules by hand", 1, b.remake},
	}
}

// queues are the streams that may be deleted and created again. An event moves from the first to the others, and
// between those, but never back.
var queues = []string{events.StreamEvents, events.StreamParked, events.StreamSchedules}

// ofRemake returns the stream that a fault deletes, and the streams whose events may be lost with it.
func ofRemake(kind string) (name string, there []string) {
	switch {
	case strings.Contains(kind, "parked"):
		return queues[1], queues
	case strings.Contains(kind, "schedules"):
		return queues[2], queues
	}
	return queues[0], queues[:1]
}

// remake deletes a stream and makes sure that it is created again. It records the events that are lost with it. All
// others must end as if nothing had happened.
func (b *breaker) remake(kind string, who int, long time.Duration) {
	if !b.serving.TryLock() {
		return
	}
	defer b.serving.Unlock()
	b.replaying.Lock()
	defer b.replaying.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name, streams := ofRemake(kind)
	before, err := b.stream(ctx, name)
	if err != nil {
		return // the fleet is about to create it
	}
	hand, sharp := strings.Contains(kind, "by hand"), name == events.StreamEvents
	if hand && sharp {
		b.burst()
		pause(150 * time.Millisecond) // now some events run, and others wait for their time
	}
	began := time.Now()
	there, err := b.idsIn(ctx, streams)
	if err != nil {
		return
	}
	defer b.model.broken(kind)()
	remade := b.model.deleted(there, began)
	err = answered(ctx, func(ctx context.Context) error { return b.js.DeleteStream(ctx, name) })
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		b.t.Errorf("%s: %v", kind, err)
	}
	if hand {
		b.makeByHand(ctx, before.CachedInfo())
	}
	b.untilRemade(ctx, kind, before.CachedInfo())
	remade()
	if hand && sharp {
		b.burst()
		pause(1600 * time.Millisecond) // the earlier events end while the new ones run
		b.killAll("kill fleet, all", who, long)
	}
}

// answered repeats a request until it has an answer. A stream or a cluster whose leader is gone gives none.
func answered(ctx context.Context, request func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := request(once)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err
		}
	}
}

// stream looks at a stream.
func (b *breaker) stream(ctx context.Context, name string) (s jetstream.Stream, err error) {
	err = answered(ctx, func(ctx context.Context) error {
		s, err = b.js.Stream(ctx, name)
		return err
	})
	return s, err
}

// burst publishes identical events. Two bursts, one in a stream and one in its replacement, have the same sequences and
// all other properties in common.
func (b *breaker) burst() {
	for i := range 16 {
		o := &order{id: b.nextID(), kind: events.Task, owner: owners[0], worker: "job", what: "long"}
		if i%2 == 0 {
			o.what, o.delay = "ok", 3*time.Second
		}
		o.body = fmt.Sprintf(`{"id":%q,"what":%q}`, o.id, o.what)
		b.publish(o)
	}
}

// makeByHand creates a stream again so that it begins with the next sequence after the last observed state.
func (b *breaker) makeByHand(ctx context.Context, before *jetstream.StreamInfo) {
	cfg := before.Config
	cfg.FirstSeq = before.State.LastSeq + 1
	err := answered(ctx, func(ctx context.Context) error {
		_, err := b.js.CreateStream(ctx, cfg)
		return err
	})
	if err == nil {
		b.count("streams made again by hand")
	} // otherwise a process was faster
}

// untilRemade waits until a new stream has replaced the old one.
func (b *breaker) untilRemade(ctx context.Context, kind string, before *jetstream.StreamInfo) {
	for ; ; pause(10 * time.Millisecond) {
		s, err := b.stream(ctx, before.Config.Name)
		if err == nil && !s.CachedInfo().Created.Equal(before.Created) {
			return
		}
		if ctx.Err() != nil {
			b.t.Errorf("%s: nobody has made stream %s again: %v", kind, before.Config.Name, err)
			return
		}
	}
}

// idsIn returns the IDs of the events in streams.
func (b *breaker) idsIn(ctx context.Context, streams []string) (map[string]bool, error) {
	ids := map[string]bool{}
	for _, name := range streams {
		s, err := b.stream(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", name, err)
		}
		for seq := uint64(1); ; seq++ {
			var m *jetstream.RawStreamMsg
			err := answered(ctx, func(ctx context.Context) (err error) {
				m, err = s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(">"))
				return err
			})
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("stream %s: %w", name, err)
			}
			seq = m.Sequence
			ids[m.Header.Get(events.HeaderEventID)] = true
		}
	}
	return ids, nil
}

// deleted records that the events with these IDs, and events published after since, may be lost, until the returned
// function is called.
func (m *model) deleted(there map[string]bool, since time.Time) (remade func()) {
	note := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, o := range m.list {
			under := o.published.IsZero() || o.published.After(since)
			if under || there[o.id] {
				o.lost = true
			}
			o.unsure = o.unsure || under // if it was published again, that is another event
		}
	}
	note()
	return note
}
