package cancels

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/cancel"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// idle is a process that has no events.
type idle struct {
	mu       sync.Mutex
	answered []uint64
}

func (*idle) Cancel(_ context.Context, list []cancel.ID, _ cancel.Mode) ([]cancel.State, error) {
	return make([]cancel.State, len(list)), nil
}

func (p *idle) AnswerCancelled(_ string, m *stored.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = append(p.answered, m.Sequence)
}

func (*idle) Now() time.Time { return time.Now() }

// Each event whose message was deleted is answered, although another message cannot be deleted, and a message that is
// another one by now stays.
func TestWhatIsDeletedIsAnswered(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc, err := natstest.Dial(srv.URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	var list []Event
	for _, cfg := range []jetstream.StreamConfig{
		{Name: "FREE", Subjects: []string{"free.>"}}, {Name: "FIXED", Subjects: []string{"fixed.>"}, DenyDelete: true},
	} {
		_, err := js.CreateStream(t.Context(), cfg)
		require.NoError(t, err)
	}
	for _, subject := range []string{"free.1", "free.2", "fixed.1", "free.3", "free.4"} {
		_, err := js.Publish(t.Context(), subject, []byte("x"))
		require.NoError(t, err)
	}
	for _, stream := range []string{"FREE", "FIXED"} {
		for m, err := range stored.All(t.Context(), nc, stream, ">", 1) {
			require.NoError(t, err)
			list = append(list, NewEvent(stream, m))
		}
	}
	require.Len(t, list, 5)
	other := *list[3].Message
	other.Time = other.Time.Add(1)
	list[3].Message = &other
	p := &idle{}
	f := &Fleet{NC: nc, Prefix: "p", ID: "me", Process: p, Known: func() []string { return []string{"me"} },
		Log: zerolog.Nop()}
	ctx, stop := context.WithCancel(t.Context())
	var hearing sync.WaitGroup
	hearing.Go(func() { f.Hear(ctx) })
	defer hearing.Wait()
	defer stop()
	require.Eventually(t, func() bool {
		_, err := nc.Request(f.subject(), []byte(`{"events":[{"stream":"X","seq":1}],"mode":"all"}`), time.Second)
		return err == nil
	}, time.Minute, time.Millisecond)
	outcomes, silent, err := f.Cancel(t.Context(), list)
	require.ErrorContains(t, err, "FIXED")
	require.Empty(t, silent)
	require.Equal(t, []Outcome{Cancelled, Cancelled, Cancelled}, outcomes[:3])
	require.Equal(t, []uint64{1, 2, 3}, p.answered)
	s, err := js.Stream(t.Context(), "FREE")
	require.NoError(t, err)
	require.EqualValues(t, 1, s.CachedInfo().State.Msgs, "another event under the same number")
}
