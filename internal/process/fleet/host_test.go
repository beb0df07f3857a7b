package fleet

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// What the stream does not take is an error that says how much of a batch is stored.
func TestQueueBatchNotStored(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SOME", Subjects: []string{"pinwheel.>"},
		MaxMsgs: 3, Discard: jetstream.DiscardNew})
	require.NoError(t, err)
	batches, err := openBatches(nc)
	require.NoError(t, err)
	h := &host{js: js, subjects: events.DefaultPrefix, batches: batches,
		admit: func(string, int, int) *events.Failure { return nil }, published: func(error) {}}
	tasks := make([]isolates.Message, 5)
	require.ErrorContains(t, h.Enqueue(t.Context(), "acme", "w", tasks), "3 of 5 tasks are known to be stored: nats: API error: code=503 err_code=10077 description=maximum messages exceeded")
	require.ErrorContains(t, h.Enqueue(t.Context(), "acme", "w", tasks[:1]), "the task was not stored: ")
	require.ErrorContains(t, h.Enqueue(t.Context(), "acme", "w", make([]isolates.Message, maxBatch+1)),
		"the batch has 101 messages: at most 100")
	large := []isolates.Message{{Body: make([]byte, maxBatchBytes)}, {Body: []byte("x")}}
	require.ErrorContains(t, h.Enqueue(t.Context(), "acme", "w", large), "the bodies of the batch have 262145 bytes: at most 262144 together")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	nc.Close()
	require.ErrorContains(t, h.Enqueue(ctx, "acme", "w", tasks), "0 of 5 tasks are known to be stored: nats: connection closed")
}
