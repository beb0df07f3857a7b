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
	live := &liveSchedule{owner: w.Owner, worker: w.Name, schedule: s, deployed: w.DeployedAt.UnixMilli(), number: w.Number}
	if live.state, _, err = b.store.read(ctx, w.Owner, w.Name, s.Name); err != nil {
		return ScheduleStatus{}, fmt.Errorf("schedule %s of %s: %w", s.Name, w.Target(), err)
	}
	status := ScheduleStatus{Next: spec.Next(live.base())}
	if st := live.state; st != nil {
		status.Last, status.Node, status.Paused = time.Unix(st.Last, 0).UTC(), st.Node, st.Paused
		if st.Skipped > 0 {
			status.Skipped = time.Unix(st.Skipped, 0).UTC()
		}
		if st.Paused {
			status.Next = time.Time{}
		}
	}
	return status, nil
}

// Pause keeps a schedule of w from ticking, through later versions too, until Resume.
func (b *Schedules) Pause(ctx context.Context, w *events.Worker, s events.Schedule) error {
	return b.change(ctx, w, s, func(st *tickState) { st.Paused = true })
}

// Resume lets a schedule tick again. What it would have ticked meanwhile is not made up for.
func (b *Schedules) Resume(ctx context.Context, w *events.Worker, s events.Schedule) error {
	return b.change(ctx, w, s, func(st *tickState) {
		if st.Paused {
			st.Paused, st.Last = false, max(st.Last, time.Now().Unix())
		}
	})
}

func (b *Schedules) change(ctx context.Context, w *events.Worker, s events.Schedule, f func(*tickState)) error {
	live := &liveSchedule{owner: w.Owner, worker: w.Name, schedule: s, deployed: w.DeployedAt.UnixMilli(), number: w.Number}
	for {
		st, seq, err := b.store.read(ctx, w.Owner, w.Name, s.Name)
		if err != nil {
			return fmt.Errorf("schedule %s of %s: %w", s.Name, w.Target(), err)
		}
		live.state, live.seq = st, seq
		if st == nil {
			st = live.after(live.base(), "")
		}
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
	return func(yield func(*WaitingEvent, error) bool) {
		stream, err := b.js.Stream(ctx, StreamSchedules)
		if err != nil {
			yield(nil, fmt.Errorf("stream %s: %w", StreamSchedules, err))
			return
		}
		decoder := events.Decoder{Subjects: b.store.subjects}
		filter := jetstream.WithGetMsgSubject(b.store.subjects.WaitingEvents(owner, worker, ""))
		for seq := uint64(1); ; seq++ {
			m, err := stream.GetMsg(ctx, seq, filter)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("stream %s: %w", StreamSchedules, err))
				return
			}
			seq = m.Sequence
			w := &WaitingEvent{}
			// Whom it replies to is not for us to judge: only what it is.
			w.Event, _ = decoder.DecodeParked(events.Origin{Stream: StreamSchedules, Seq: seq, Subject: m.Subject}, events.Header(m.Header), nil, m.Time)
			w.At, _ = time.Parse(time.RFC3339Nano, strings.TrimPrefix(m.Header.Get(headerSchedule), "@at "))
			if !yield(w, nil) {
				return
			}
		}
	}
}

// Cancel ends the events of this id that wait for their time; they will not run, and nobody is told. It returns how many there were: 0
// when there is no such event, or when its time has come.
func (b *Schedules) Cancel(ctx context.Context, owner, worker, id string) (int, error) {
	if err := checkCancel(owner, worker, id); err != nil {
		return 0, err
	}
	answer, err := b.store.request(ctx, cancelRequest(b.store.subjects, owner, worker, id))
	return cancelled(answer, err)
}

func checkCancel(owner, worker, id string) error {
	if id == "" || len(id) > events.MaxEventID {
		return fmt.Errorf("event id %.40q: it is 1 to %d bytes", id, events.MaxEventID)
	}
	return errors.Join(events.CheckName("owner", owner), events.CheckName("worker", worker))
}

func cancelRequest(s events.Subjects, owner, worker, id string) *nats.Msg {
	body, _ := json.Marshal(map[string]string{"filter": s.WaitingEvents(owner, worker, id)}) // two strings cannot fail
	return &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + StreamSchedules, Data: body}
}

// cancelled reads the answer to a cancelRequest.
func cancelled(answer *nats.Msg, err error) (int, error) {
	var a struct {
		Purged int       `json:"purged"`
		Error  *apiError `json:"error"`
	}
	if err == nil {
		err = json.Unmarshal(answer.Data, &a)
	}
	if err == nil && a.Error != nil {
		err = a.Error
	}
	if err != nil {
		return 0, fmt.Errorf("stream %s: %w", StreamSchedules, err)
	}
	return a.Purged, nil
}

// openUnschedule takes requests to cancel events, which are for those who may not touch the stream.
func (c *Consumer) openUnschedule() (*nats.Subscription, error) {
	sub, err := c.nc.QueueSubscribe(c.cfg.Prefix.AllUnschedules(), callQueue, c.unschedule)
	if err != nil {
		return nil, fmt.Errorf("consumer: subscribe to cancellations of delayed events: %w", err)
	}
	return sub, nil
}

func (c *Consumer) unschedule(m *nats.Msg) {
	owner, worker, ok := c.cfg.Prefix.ParseUnschedule(m.Subject)
	id := string(m.Data)
	reply := func(n int, err error) {
		a := events.Unscheduled{Cancelled: n}
		if err != nil {
			a.Error = err.Error()
		}
		body, _ := json.Marshal(a) // a number and a string cannot fail
		if m.Reply != "" {
			_ = c.nc.Publish(m.Reply, body) // not connected: whoever asks asks again
		}
	}
	if err := checkCancel(owner, worker, id); err != nil || !ok {
		reply(0, err)
		return
	}
	if m.Reply != "" && c.decoder.CheckReplyTo(m.Reply, owner) != nil || c.asker.waiting() > maxCalls {
		return
	}
	c.asker.ask(cancelRequest(c.cfg.Prefix, owner, worker, id), c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		reply(cancelled(answer, err))
	})
}
