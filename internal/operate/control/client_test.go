package control

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A process that is stopped gets its share of the requests, and answers none. Requests that may be repeated go to
// another process then.
func TestProcessThatDoesNotAnswerIsNotAskedForEver(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	subject := "pinwheel.control." + FilesMissing.Name
	_, err := nc.QueueSubscribe(subject, "q", func(*nats.Msg) {})
	require.NoError(t, err)
	_, err = natstest.Connect(t, srv).QueueSubscribe(subject, "q", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"missing":["a"]}`))
	})
	require.NoError(t, err)
	c := NewClient(natstest.Connect(t, srv), "pinwheel", "")
	c.answerWithin = 20 * time.Millisecond
	for range 20 {
		require.Eventually(t, func() bool { // the second subscription may come later than the first request
			a, err := Ask(t.Context(), c, FilesMissing, MissingFiles{OwnerFiles: OwnerFiles{Owner: "acme"}})
			return err == nil && len(a.Missing) == 1
		}, time.Minute, time.Millisecond)
	}
}

// A request that changes something is sent once, also if its process does not answer: that process may handle it yet.
func TestChangesAreNotSentTwice(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var sent atomic.Int32
	nc := natstest.Connect(t, srv)
	_, err := nc.QueueSubscribe("pinwheel.control."+FilesStore.Name, "q", func(*nats.Msg) { sent.Add(1) })
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	c := NewClient(natstest.Connect(t, srv), "pinwheel", "")
	c.answerWithin = time.Millisecond
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	_, err = Ask(ctx, c, FilesStore, StoreFiles{OwnerFiles: OwnerFiles{Owner: "acme"}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualValues(t, 1, sent.Load())
}
