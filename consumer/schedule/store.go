package schedule

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

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/cron"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Store lists, pauses and cancels schedules and delayed events. It needs no running Consumer, and may be used by many
// goroutines at once.
type Store struct {
	js     jetstream.JetStream
	states stateStore
}

// NewStore makes a Store. Nothing is asked of NATS yet.
func NewStore(js jetstream.JetStream, s events.Subjects) *Store {
	return &Store{js, stateStore{js.Conn(), s}}
}

// Status is the status of a schedule.
type Status struct {
	Last    time.Time // the last tick that was made or left out; zero = none yet
	Next    time.Time // zero = paused
	Skipped time.Time // the last tick that was left out because of overlap; zero = none
	Node    string    // that made the last tick
	Paused  bool
}

// Status returns the status of a schedule of the active version of a worker.
func (s *Store) Status(ctx context.Context, in workers.Installation, sched workers.Schedule) (Status, error) {
	spec, err := cron.Parse(sched.Cron, sched.TimeZone)
	if err != nil {
		return Status{}, fmt.Errorf("schedule %s of %s: %w", sched.Name, in.Target(), err)
	}
	live := newLiveSchedule(in, sched)
	if live.state, _, err = s.states.read(ctx, in.Owner, in.Name, sched.Name); err != nil {
		return Status{}, fmt.Errorf("schedule %s of %s: %w", sched.Name, in.Target(), err)
	}
	status := Status{Next: spec.Next(live.base())}
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

// Next returns the next n ticks of a schedule of the active version of a worker. It returns none while the
// schedule is paused.
func (s *Store) Next(ctx context.Context, in workers.Installation, sched workers.Schedule,
	n int) (ticks []time.Time, paused bool, err error) {
	status, err := s.Status(ctx, in, sched)
	if err != nil || status.Paused {
		return nil, status.Paused, err
	}
	spec, err := cron.Parse(sched.Cron, sched.TimeZone)
	if err != nil {
		return nil, false, err
	}
	for t := status.Next; len(ticks) < n && !t.IsZero(); t = spec.Next(t) {
		ticks = append(ticks, t)
	}
	return ticks, false, nil
}

// Pause keeps a schedule of a worker from ticking until Resume, also in later versions.
func (s *Store) Pause(ctx context.Context, in workers.Installation, sched workers.Schedule) error {
	return s.change(ctx, in, sched, func(st *tickState) { st.Paused = true })
}

// Resume lets a schedule tick again. The ticks of the pause are not made up for.
func (s *Store) Resume(ctx context.Context, in workers.Installation, sched workers.Schedule) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	return s.change(ctx, in, sched, func(st *tickState) {
		if st.Paused {
			st.Paused, st.Last = false, max(st.Last, now.Unix())
		}
	})
}

// now is the time by the clock of NATS.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	var info struct {
		Now time.Time `json:"ts"`
	}
	err := s.states.api(ctx, "STREAM.INFO", nil, &info)
	return info.Now, err
}

func (s *Store) change(ctx context.Context, in workers.Installation, sched workers.Schedule, f func(*tickState)) error {
	live := newLiveSchedule(in, sched)
	for {
		st, seq, err := s.states.read(ctx, in.Owner, in.Name, sched.Name)
		if err != nil {
			return fmt.Errorf("schedule %s of %s: %w", sched.Name, in.Target(), err)
		}
		live.state, live.seq = st, seq
		if st == nil {
			st = live.after(live.base(), "")
		}
		st.Ticked = st.ticked()
		f(st)
		_, err = s.states.commit(ctx, live, st, nil)
		if err == nil || !errors.Is(err, errTickTaken) {
			return err
		}
	}
}

// WaitingEvent is an event that waits for its time or its next run.
type WaitingEvent struct {
	Event *events.Event // without a body
	Runs  events.Runs
	At    time.Time
}

// Waiting iterates over the events that wait, in the order in which they were delayed. An empty string stands for any
// owner or worker.
func (s *Store) Waiting(ctx context.Context, owner, worker string) iter.Seq2[*WaitingEvent, error] {
	return s.WaitingAfter(ctx, owner, worker, 0)
}

// WaitingAfter is Waiting, starting after a stream sequence (the Origin.Seq of an event).
func (s *Store) WaitingAfter(ctx context.Context, owner, worker string, after uint64) iter.Seq2[*WaitingEvent, error] {
	return func(yield func(*WaitingEvent, error) bool) {
		decoder := events.Decoder{Subjects: s.states.subjects}
		for m, err := range s.messages(ctx, owner, worker, "", after) {
			if err != nil {
				yield(nil, err)
				return
			}
			w := &WaitingEvent{}
			// The failure is ignored: whether the reply subject is allowed makes no difference here.
			origin := events.Origin{Stream: events.StreamSchedules, Seq: m.Sequence, Subject: m.Subject}
			w.Event, w.Runs, _ = decoder.DecodeParked(origin, events.Header(m.Header), nil, m.Time)
			w.At, _ = waitsUntil(m)
			if !yield(w, nil) {
				return
			}
		}
	}
}

// tooLate is how long before its time an event can no longer be cancelled. JetStream may have begun to collect the due
// messages, and delivers those even if they are removed.
const tooLate = time.Second

// Cancel ends the events with this id that wait for their time. They will not run, and no one is notified. It returns
// how many there were: 0 when there is no such event, or when its time is less than a second away, by the clock of
// NATS.
func (s *Store) Cancel(ctx context.Context, owner, worker, id string) (cancelled int, err error) {
	return s.cancel(ctx, owner, worker, id, func(context.Context) error { return nil })
}

// cancel is Cancel, but calls pace before each event, which may wait.
func (s *Store) cancel(ctx context.Context, owner, worker, id string,
	pace func(context.Context) error) (cancelled int, err error) {
	if err := checkCancel(owner, worker, id); err != nil {
		return 0, err
	}
	var now time.Time // by the clock of NATS
	for m, err := range s.messages(ctx, owner, worker, id, 0) {
		if err == nil {
			err = pace(ctx)
		}
		if err == nil && now.IsZero() {
			now, err = s.now(ctx)
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
		if err := s.states.api(ctx, "STREAM.PURGE", map[string]string{"filter": m.Subject}, &purge); err != nil {
			return cancelled, err
		}
		cancelled += purge.Purged
	}
	return cancelled, nil
}

// messages iterates over the messages that wait after a stream sequence, oldest first. Empty strings stand for any.
func (s *Store) messages(ctx context.Context, owner, worker, id string, after uint64) iter.Seq2[*stored.Message,
	error] {
	return stored.All(ctx, s.states.nc, events.StreamSchedules, s.states.subjects.WaitingEvents(owner, worker, id),
		after+1)
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

// api calls the JetStream API for the stream of schedules.
func (s stateStore) api(ctx context.Context, what string, ask, answer any) error {
	var body []byte
	if ask != nil {
		body, _ = json.Marshal(ask) // maps of strings cannot fail
	}
	m, err := s.request(ctx, &nats.Msg{Subject: "$JS.API." + what + "." + events.StreamSchedules, Data: body})
	if err == nil {
		err = jsapi.Decode(m.Data, answer)
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", events.StreamSchedules, err)
	}
	return nil
}
