package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/cron"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// Schedules lists, pauses and cancels what is to run at a time. It needs no running Consumer, and may be used by many goroutines at
// once.
type Schedules struct {
	js    jetstream.JetStream
	store tickStore
}

// NewSchedules makes a Schedules. Nothing is asked of NATS yet.
func NewSchedules(js jetstream.JetStream, s events.Subjects) *Schedules {
	return &Schedules{js, tickStore{js.Conn(), s}}
}

// ScheduleStatus is what is known of a schedule.
type ScheduleStatus struct {
	Last    time.Time // the last tick that was made or left out; zero = none yet
	Next    time.Time // zero = paused
	Skipped time.Time // the last tick that was left out because of overlap; zero = none
	Node    string    // that made the last
	Paused  bool
}

// Status is the state of a schedule of w, its active version.
func (b *Schedules) Status(ctx context.Context, w *events.Worker, s events.Schedule) (ScheduleStatus, error) {
	spec, err := cron.Parse(s.Cron, s.TimeZone)
	if err != nil {
		return ScheduleStatus{}, fmt.Errorf("schedule %s of %s: %w", s.Name, w.Target(), err)
	}
	live := newLiveSchedule(w, s)
	if live.state, _, err = b.store.read(ctx, w.Owner, w.Name, s.Name); err != nil {
		return ScheduleStatus{}, fmt.Errorf("schedule %s of %s: %w", s.Name, w.Target(), err)
	}
	status := ScheduleStatus{Next: spec.Next(live.base())}
	if st := live.state; st != nil {
		status.Node, status.Paused = st.Node, st.Paused
		if tick := st.ticked(); tick > 0 {
			status.Last = time.Unix(tick, 0).UTC()
		}
		if st.Skipped > 0 {
			status.Skipped = time.Unix(st.Skipped, 0).UTC()
		}
		if st.Paused {
			status.Next = time.Time{}
		}
	}
	return status, nil
}

// Next are the next n ticks of a schedule of w, its active version; none while it is paused.
func (b *Schedules) Next(ctx context.Context, w *events.Worker, s events.Schedule, n int) (ticks []time.Time, paused bool, err error) {
	status, err := b.Status(ctx, w, s)
	if err != nil || status.Paused {
		return nil, status.Paused, err
	}
	spec, err := cron.Parse(s.Cron, s.TimeZone)
	if err != nil {
		return nil, false, err
	}
	for t := status.Next; len(ticks) < n && !t.IsZero(); t = spec.Next(t) {
		ticks = append(ticks, t)
	}
	return ticks, false, nil
}

// Pause keeps a schedule of w from ticking, through later versions too, until Resume.
func (b *Schedules) Pause(ctx context.Context, w *events.Worker, s events.Schedule) error {
	return b.change(ctx, w, s, func(st *tickState) { st.Paused = true })
}

// Resume lets a schedule tick again. What it would have ticked meanwhile is not made up for.
func (b *Schedules) Resume(ctx context.Context, w *events.Worker, s events.Schedule) error {
	now, err := b.now(ctx)
	if err != nil {
		return err
	}
	return b.change(ctx, w, s, func(st *tickState) {
		if st.Paused {
			st.Paused, st.Last = false, max(st.Last, now.Unix())
		}
	})
}

// now is the time by the clock of NATS.
func (b *Schedules) now(ctx context.Context) (time.Time, error) {
	var info struct {
		Now time.Time `json:"ts"`
	}
	err := b.store.api(ctx, "STREAM.INFO", nil, &info)
	return info.Now, err
}

func (b *Schedules) change(ctx context.Context, w *events.Worker, s events.Schedule, f func(*tickState)) error {
	live := newLiveSchedule(w, s)
	for {
		st, seq, err := b.store.read(ctx, w.Owner, w.Name, s.Name)
		if err != nil {
			return fmt.Errorf("schedule %s of %s: %w", s.Name, w.Target(), err)
		}
		live.state, live.seq = st, seq
		if st == nil {
			st = live.after(live.base(), "")
		}
		st.Ticked = st.ticked()
		f(st)
		_, err = b.store.commit(ctx, live, st, nil)
		if err == nil || !errors.Is(err, errTickTaken) {
			return err
		}
	}
}

// WaitingEvent is an event that waits for its time: delayed, or for its next run.
type WaitingEvent struct {
	Event *events.Event // without a body
	At    time.Time
}

// Waiting goes through the events that wait, the one that was put off first first. Empty strings stand for any.
func (b *Schedules) Waiting(ctx context.Context, owner, worker string) iter.Seq2[*WaitingEvent, error] {
	return b.WaitingAfter(ctx, owner, worker, 0)
}

// WaitingAfter is Waiting from behind a stream sequence, which is the Origin.Seq of an event.
func (b *Schedules) WaitingAfter(ctx context.Context, owner, worker string, after uint64) iter.Seq2[*WaitingEvent, error] {
	return func(yield func(*WaitingEvent, error) bool) {
		decoder := events.Decoder{Subjects: b.store.subjects}
		for m, err := range b.messages(ctx, owner, worker, "", after) {
			if err != nil {
				yield(nil, err)
				return
			}
			w := &WaitingEvent{}
			// Whom it replies to is not for us to judge: only what it is.
			w.Event, _ = decoder.DecodeParked(events.Origin{Stream: StreamSchedules, Seq: m.Sequence, Subject: m.Subject}, events.Header(m.Header), nil, m.Time)
			w.At, _ = waitsUntil(m)
			if !yield(w, nil) {
				return
			}
		}
	}
}

// tooLate is how long before its time an event cannot be cancelled any more: JetStream has begun to look at what is due, and what it
// has taken up comes even if it is removed.
const tooLate = time.Second

// Cancel ends the events of this id that wait for their time; they will not run, and nobody is told. It returns how many there were: 0
// when there is no such event, or when its time is less than a second away, by the clock of NATS.
func (b *Schedules) Cancel(ctx context.Context, owner, worker, id string) (cancelled int, err error) {
	return b.cancel(ctx, owner, worker, id, func(context.Context) error { return nil })
}

// cancel is Cancel, which waits for pace before each event.
func (b *Schedules) cancel(ctx context.Context, owner, worker, id string, pace func(context.Context) error) (cancelled int, err error) {
	if err := checkCancel(owner, worker, id); err != nil {
		return 0, err
	}
	var now time.Time // by the clock of NATS
	for m, err := range b.messages(ctx, owner, worker, id, 0) {
		if err == nil {
			err = pace(ctx)
		}
		if err == nil && now.IsZero() {
			now, err = b.now(ctx)
		}
		if err != nil {
			return cancelled, err
		}
		at, err := waitsUntil(m)
		if err != nil || at.Sub(now) < tooLate {
			continue
		}
		var purge struct {
			Purged int `json:"purged"`
		}
		if err := b.store.api(ctx, "STREAM.PURGE", map[string]string{"filter": m.Subject}, &purge); err != nil {
			return cancelled, err
		}
		cancelled += purge.Purged
	}
	return cancelled, nil
}

// messages goes through what waits behind a stream sequence, the first stored first. Empty strings stand for any.
func (b *Schedules) messages(ctx context.Context, owner, worker, id string, after uint64) iter.Seq2[*stored.Message, error] {
	return stored.All(ctx, b.store.nc, StreamSchedules, b.store.subjects.WaitingEvents(owner, worker, id), after+1)
}

// waitsUntil is when a waiting event is due.
func waitsUntil(m *stored.Message) (time.Time, error) {
	return time.Parse(time.RFC3339Nano, strings.TrimPrefix(m.Header.Get(headerSchedule), "@at "))
}

// ErrEventID is the error of an id that no event can have.
var ErrEventID = errors.New("not an event id")

func checkCancel(owner, worker, id string) error {
	if id == "" || len(id) > events.MaxEventID {
		return fmt.Errorf("%w: event id %.40q: it is 1 to %d bytes", ErrEventID, id, events.MaxEventID)
	}
	return errors.Join(events.CheckName("owner", owner), events.CheckName("worker", worker))
}

// api asks JetStream something about the stream of schedules.
func (s tickStore) api(ctx context.Context, what string, ask, answer any) error {
	var body []byte
	if ask != nil {
		body, _ = json.Marshal(ask) // maps of strings cannot fail
	}
	m, err := s.request(ctx, &nats.Msg{Subject: "$JS.API." + what + "." + StreamSchedules, Data: body})
	var refused struct {
		Error *apiError `json:"error"`
	}
	if err == nil {
		err = errors.Join(json.Unmarshal(m.Data, &refused), json.Unmarshal(m.Data, answer))
	}
	if err == nil && refused.Error != nil {
		err = refused.Error
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", StreamSchedules, err)
	}
	return nil
}
