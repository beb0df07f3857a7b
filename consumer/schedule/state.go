package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// stateStore reads and writes ticks and their states in the stream of schedules.
type stateStore struct {
	nc       *nats.Conn
	subjects events.Subjects
}

// errTickTaken means that the state has changed, or that the event of an earlier tick prevents this one. Nothing was
// stored.
var errTickTaken = errors.New("the tick was made elsewhere")

const (
	tickWait = 5 * time.Second
	// removedTTL is how long the state of an ended schedule is kept.
	removedTTL = 30 * 24 * time.Hour
)

// read gets a schedule's state and its sequence from the stream's leader; it returns nil and 0 when there is none.
func (s stateStore) read(ctx context.Context, owner, worker, name string) (*tickState, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, tickWait)
	defer cancel()
	m, err := stored.Get(ctx, s.nc, events.StreamSchedules,
		stored.Request{Last: s.subjects.ScheduleState(owner, worker, name)})
	switch {
	case errors.Is(err, stored.ErrNone):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	st := &tickState{}
	if err := json.Unmarshal(m.Data, st); err != nil {
		return nil, m.Sequence, nil // not ours, or broken: it is overwritten
	}
	return st, m.Sequence, nil
}

// commit replaces the state with sequence live.seq by st, and stores the events of ticks: all of it or nothing. It
// returns the new sequence. The error is errTickTaken when the state has another sequence, or when the schedule forbids
// overlap and the event of an earlier tick is there.
func (s stateStore) commit(ctx context.Context, live *liveSchedule, st *tickState, ticks []time.Time) (uint64, error) {
	body, err := json.Marshal(st)
	if err != nil {
		return 0, err
	}
	h := nats.Header{jsapi.HeaderRollup: {"sub"}, jsapi.HeaderExpectLastSubjectSeq: {strconv.FormatUint(live.seq, 10)}}
	if st.Removed {
		h.Set("Nats-TTL", removedTTL.String())
	}
	batch := []*nats.Msg{{Subject: s.subjects.ScheduleState(live.owner, live.worker, live.schedule.Name), Header: h,
		Data: body}}
	for _, tick := range ticks {
		batch = append(batch, s.event(live, tick))
	}
	if len(batch) > 1 {
		id := nats.NewInbox()[len(nats.InboxPrefix):]
		for i, m := range batch {
			m.Header.Set("Nats-Batch-Id", id)
			m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
			if i == len(batch)-1 {
				m.Header.Set("Nats-Batch-Commit", "1")
			}
		}
	}
	return s.publish(ctx, batch)
}

// event is the message of a tick.
func (s stateStore) event(live *liveSchedule, tick time.Time) *nats.Msg {
	e := workers.NewTick(s.subjects, live.owner, live.worker, live.schedule, tick)
	h := nats.Header(events.EncodeParked(e, events.FirstRun))
	switch e.Overlaps() {
	case events.OverlapForbid:
		h.Set(jsapi.HeaderExpectLastSubjectSeq, "0")
		h.Set(jsapi.HeaderExpectLastSubjectSubject, s.subjects.Anywhere(e))
	case events.OverlapReplace: // the event before it is purged if it waits for a retry
		h.Set("Nats-Scheduler", s.subjects.Waiting(e))
		h.Set("Nats-Schedule-Next", "purge")
	case events.OverlapAllow:
	}
	return &nats.Msg{Subject: s.subjects.Due(e), Header: h}
}

// publish stores a batch, and returns the sequence of its first message. JetStream answers the last message for all.
func (s stateStore) publish(ctx context.Context, batch []*nats.Msg) (uint64, error) {
	last := len(batch) - 1
	for _, m := range batch[:last] {
		if err := s.nc.PublishMsg(m); err != nil {
			return 0, err
		}
	}
	answer, err := s.request(ctx, batch[last])
	ack, err := jsapi.ReadAck(answer, err)
	switch {
	case jsapi.IsWrongLastSequence(err):
		return 0, errTickTaken
	case err != nil:
		return 0, err
	}
	return ack.Seq - uint64(last), nil
}

func (s stateStore) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, tickWait)
	defer cancel()
	return s.nc.RequestMsgWithContext(ctx, m)
}
