package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Events that a limit of the whole fleet holds back want no processes, wherever they wait: in lanes, parked, and in
// processes. Events of others do, and those of a worker whose limit has places left.
func TestLimitsOfTheFleetWantNoProcesses(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	s := newScaled(t, func() { <-open }, "PINWHEEL_OWNER_MAX_QUEUED=2")
	t.Cleanup(func() { close(open) })
	s.deploy("acme", "one", s.source, `{"concurrency": 2, "limits": {"cpuMs": 60000, "wallMs": 900000}}`)
	s.deploy("bound", "w", s.source, `{"limits": {"cpuMs": 60000, "wallMs": 900000}}`)
	policies, err := deploy.OpenPolicies(t.Context(), s.js, deploy.Config{})
	require.NoError(t, err)
	limit := func(n int) {
		_, err := policies.Set(t.Context(), "bound", func(p *workers.Policy) { p.FleetMaxRunning = n })
		require.NoError(t, err)
	}
	limit(2)
	const many = 10 * perProcess
	const prefix = events.Subjects(events.DefaultPrefix)
	for range many {
		require.NoError(t, s.publishTo("acme", "one"))
		require.NoError(t, s.publishTo("bound", "w"))
	}
	// Of each, two run.
	s.await("only events of limits wait", func(now scaleAnswer) bool {
		return now.Waiting == 2*(many-fewest) && now.Limited == now.Waiting && now.Wanted <= fewest
	})
	require.Eventually(t, func() bool {
		parked, err := resources.Count(t.Context(), s.js, events.StreamParked, prefix.ParkedAnchor())
		return err == nil && parked > 0
	}, patience, 20*time.Millisecond)
	s.deploy("other", "w", s.source, `{"limits": {"cpuMs": 60000, "wallMs": 900000}}`)
	for range 4 * perProcess {
		require.NoError(t, s.publishTo("other", "w"))
	}
	s.await("others wait too", func(now scaleAnswer) bool {
		return now.Limited == 2*(many-fewest) && now.Wanted == 4
	})
	limit(2 + many)
	s.await("the owner may run more", func(now scaleAnswer) bool {
		return now.Limited == many-fewest && now.Wanted > most
	})
}

// However many ask at once, the fleet is asked once a second at most, and each gets an answer.
func TestManyWhoAskForTheScaleShareOneAnswer(t *testing.T) {
	t.Parallel()
	s := newScaled(t, func() {})
	s.await("idle", func(now scaleAnswer) bool { return now.Processes == fewest })
	asked := make(chan *nats.Msg, 1000)
	_, err := s.nc.ChanSubscribe("pinwheel.control.flow", asked)
	require.NoError(t, err)
	require.NoError(t, s.nc.Flush())
	began := time.Now()
	var all sync.WaitGroup
	for range 300 {
		all.Go(func() {
			status, body := s.processes[0].Get("/scale")
			if status != http.StatusOK && status != http.StatusServiceUnavailable || status == http.StatusOK &&
				!json.Valid(body) {
				t.Errorf("%d: %s", status, body)
			}
		})
	}
	all.Wait()
	require.NoError(t, s.nc.Flush())
	require.LessOrEqual(t, len(asked), 1+int(time.Since(began)/time.Second), fmt.Sprint(len(asked), " questions"))
}

// What waits until it is resumed wants no processes, however much it is. When it is resumed, it does.
func TestPausedEventsWantNoProcesses(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	s := newScaled(t, func() { <-open })
	t.Cleanup(func() { close(open) })
	s.deploy("acme", "one", s.source, `{"limits": {"cpuMs": 60000, "wallMs": 900000}}`)
	s.deploy("bound", "w", s.source, `{"limits": {"cpuMs": 60000, "wallMs": 900000}}`)
	policies, err := deploy.OpenPolicies(t.Context(), s.js, deploy.Config{})
	require.NoError(t, err)
	pause := func(owner string, paused map[string]workers.Pause) {
		_, err := policies.Set(t.Context(), owner, func(p *workers.Policy) { p.Paused = paused })
		require.NoError(t, err)
	}
	since := workers.Pause{Since: time.Now()}
	pause("acme", map[string]workers.Pause{"one": since})
	pause("bound", map[string]workers.Pause{workers.EveryWorker: since})
	const many = 6 * perProcess
	for range many {
		require.NoError(t, s.publishTo("acme", "one"))
		require.NoError(t, s.publishTo("bound", "w"))
	}
	s.await("all is paused", func(now scaleAnswer) bool {
		return now.Paused == 2*many && now.Waiting == 0 && now.Wanted <= fewest && now.OldestSeconds == 0
	})
	for range 4 * perProcess {
		require.NoError(t, s.publishTo("acme", "w"))
	}
	s.await("others wait", func(now scaleAnswer) bool { return now.Paused == 2*many && now.Waiting > 0 })
	pause("bound", nil)
	s.await("one is resumed", func(now scaleAnswer) bool { return now.Paused == many && now.Waiting > many })
}
