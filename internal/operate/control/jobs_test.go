package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
)

// openJobs returns jobs of a process with n letters.
func openJobs(t *testing.T, n int) *jobs {
	t.Helper()
	b := jsapitest.Open(t)
	for i := range n {
		d := events.NewDeadLetter(jsapitest.Task(uint64(i+1), "e", time.Now()),
			events.NewFailure(events.ReasonCPU, fmt.Sprint("letter ", i), ""), "1-a", "node", 1, time.Now())
		_, err := b.JS.PublishMsg(t.Context(), &nats.Msg{Subject: jsapitest.Prefix.DeadLetter(d, events.ReasonCPU),
			Header: nats.Header(d.Encode()), Data: []byte("x")})
		require.NoError(t, err)
	}
	js := &jobs{ops: &Operations{dead: deadletter.NewStore(b.JS, jsapitest.Prefix)}, id: "one", life: &life{},
		gate: newGate(func(ownerRequest) {}, prometheus.NewRegistry()), log: zerolog.Nop()}
	js.life.ctx, js.life.end = context.WithCancel(t.Context())
	t.Cleanup(func() { js.life.end(); js.gate.queue.Close(); js.life.running.Wait() })
	return js
}

// ended waits for the end of a job.
func (js *jobs) ended(t *testing.T, j Job) (end Job) {
	t.Helper()
	require.Eventually(t, func() bool { end = js.find(j.Job).now(); return end.State != "running" }, time.Minute,
		time.Millisecond)
	return end
}

// A job of an owner that has no CPU time left waits before each letter. Jobs of operators and of other owners run.
func TestJobsWaitForTheirOwnersTime(t *testing.T) {
	t.Parallel()
	const letters = 3
	js := openJobs(t, letters)
	js.gate.charge("acme", ownerTimeBurst+time.Hour)
	begun := func(j Job, err error) Job {
		require.NoError(t, err)
		return j
	}
	held := []Job{
		begun(js.replay(t.Context(), Replay{Selection: Selection{Filter: Filter{Kind: "task", asker: asker{"acme"}}}})),
		begun(js.purge(t.Context(), Selection{IDs: []uint64{1, 2}, Filter: Filter{asker: asker{"acme"}}})),
	}
	for owner, has := range map[string]int{"beta": 0, "": letters} {
		one := js.ended(t,
			begun(js.purge(t.Context(), Selection{Filter: Filter{Kind: "task", asker: asker{owner}}, DryRun: true})))
		require.Equal(t, "done", one.State, one.Error)
		require.Equal(t, has, one.Done, "jobs of owner %q", owner)
	}
	for _, j := range held {
		now := js.find(j.Job).now()
		require.Equal(t, "running", now.State)
		require.Zero(t, now.Done+now.Failed)
		js.find(j.Job).cancel()
		require.Equal(t, "cancelled", js.ended(t, j).State)
	}
	n := 0
	for range js.ops.dead.List(t.Context(), deadletter.Filter{}) {
		n++
	}
	require.Equal(t, letters, n, "nothing was done")
}

// The CPU time of a job counts for its owner, while it runs and at its end, and not that of an operator's.
func TestCPUTimeOfJobsIsCharged(t *testing.T) {
	t.Parallel()
	const used = 20 * time.Millisecond
	g := newGate(func(ownerRequest) {}, prometheus.NewRegistry())
	defer g.queue.Close()
	left := func(owner string) float64 {
		now := time.Now()
		return g.time.Left(owner, now)
	}
	for _, owner := range []string{"acme", ""} {
		before, began := left(owner), time.Now()
		g.job(owner, func(wait func(context.Context) error) {
			burn(used)
			require.NoError(t, wait(t.Context()))
			during := left(owner)
			burn(used)
			if owner != "" {
				require.Less(t, during, before, "it is charged while it runs")
			}
		})
		if owner == "" {
			require.GreaterOrEqual(t, left(owner), before)
			continue
		}
		back := time.Since(began).Seconds() * float64(ownerTime.Microseconds())
		require.LessOrEqual(t, left(owner), before-float64(2*used.Microseconds())+back)
	}
	g.charge("acme", ownerTimeBurst+time.Hour)
	gone, end := context.WithCancel(t.Context())
	end()
	g.job("acme", func(wait func(context.Context) error) { require.ErrorIs(t, wait(gone), context.Canceled) })
	g.job("", func(wait func(context.Context) error) { require.NoError(t, wait(t.Context())) })
}
