package consumer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
)

// Events that wait until their worker is resumed are counted, and come when the worker is removed instead.
func TestHeldEventsOfARemovedWorkerCome(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.Catalog = &catalog.Catalog{}
	cfg.Catalog.Install(workers.Only(&workers.Worker{Owner: "acme", Name: "w"}))
	cfg.Catalog.SetPolicy("acme", workers.Policy{Paused: map[string]workers.Pause{"w": {Since: time.Now()}}})
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Parked {
			return ack(e)
		}
		return lifecycle.Settlement{Event: e, Order: lifecycle.HoldWorker}, true
	}}
	f := start(t, nc, cfg, d)
	const n = 7
	for range n {
		publish(t, nc, events.Task, "acme", nil, "waits")
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Equal(t, n, stored(t, js, events.StreamParked))
	waiting, err := consumer.BacklogOf(t.Context(), js, subjects, "acme", "w")
	require.NoError(t, err)
	require.Equal(t, consumer.Backlog{Parked: n}, waiting)
	cfg.Catalog.Remove("acme", "w")
	f.Remove("acme", "w")
	eventuallyStored(t, js, events.StreamParked, 0)
	require.Len(t, d.events(), 2*n)
}
