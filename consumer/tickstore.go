package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// tickStore is the stream of schedules as the ticker uses it.
type tickStore struct {
	nc       *nats.Conn
	subjects events.Subjects
}

// errTickTaken: the state is not what it was thought to be, or an event is in the way. Nothing was stored.
var errTickTaken = errors.New("the tick was made elsewhere")

const (
	tickWait = 5 * time.Second
	// removedTTL is how long it is noted that a schedule has ended.
	removedTTL = 30 * 24 * time.Hour
)

// read gets a schedule's state and its sequence from the stream's leader; nil and 0 when there is none.
func (s tickStore) read(ctx context.Context, owner, worker, name string) (*tickState, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, tickWait)
	defer cancel()
	m, err := stored.Get(ctx, s.nc, StreamSchedules, stored.Request{Last: s.subjects.ScheduleState(owner, worker, name)})
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

// commit stores the state of a schedule in place of the one with sequence s.seq, and the events of ticks: all of it or nothing. It
// returns the new sequence. The error is errTickTaken when the state has another sequence, or when the schedule forbids
// overlap and the event of an earlier tick is there.
func (s tickStore) commit(ctx context.Context, live *liveSchedule, st *tickState, ticks []time.Time) (uint64, error) {
	body, err := json.Marshal(st)
	if err != nil {
		return 0, err
	}
	h := nats.Header{headerRollup: {"sub"}, headerExpectLastSubjectSeq: {strconv.FormatUint(live.seq, 10)}}
	if st.Removed {
		h.Set("Nats-TTL", removedTTL.String())
	}
	batch := []*nats.Msg{{Subject: s.subjects.ScheduleState(live.owner, live.worker, live.schedule.Name), Header: h, Data: body}}
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
func (s tickStore) event(live *liveSchedule, tick time.Time) *nats.Msg {
	e := events.NewTick(s.subjects, live.owner, live.worker, live.schedule, tick)
	h := nats.Header(events.EncodeParked(e))
	switch e.Overlaps() {
	case events.OverlapForbid:
		h.Set(headerExpectLastSubjectSeq, "0")
		h.Set(headerExpectLastSubjectSubject, s.subjects.Anywhere(e))
	case events.OverlapReplace: // and with it goes the one before, if it waits for a retry
		h.Set("Nats-Scheduler", s.subjects.Waiting(e))
		h.Set("Nats-Schedule-Next", "purge")
	case events.OverlapAllow:
	}
	return &nats.Msg{Subject: s.subjects.Due(e), Header: h}
}

// publish stores a batch, whose last message is answered for all, and returns the sequence of the first.
func (s tickStore) publish(ctx context.Context, batch []*nats.Msg) (uint64, error) {
	last := len(batch) - 1
	for _, m := range batch[:last] {
		if err := s.nc.PublishMsg(m); err != nil {
			return 0, err
		}
	}
	answer, err := s.request(ctx, batch[last])
	seq, err := storedAt(answer, err)
	switch {
	case isWrongLastSequence(err):
		return 0, errTickTaken
	case err != nil:
		return 0, err
	}
	return seq - uint64(last), nil //nolint:gosec // never negative
}

func (s tickStore) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, tickWait)
	defer cancel()
	return s.nc.RequestMsgWithContext(ctx, m)
}
