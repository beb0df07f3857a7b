package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// An owner is charged for an event while it runs: it is heavy before the event's end, and the end charges only the
// rest.
func TestRunningEventsAreCharged(t *testing.T) {
	c := newCrowd(t, Config{Threads: 2, Background: 2}, "noisy", "quiet")
	c.spend("quiet", time.Millisecond)
	c.d.Submit(tasks("noisy", "w", 1))
	batch := c.d.Next(0, 1)
	require.Len(t, batch, 1)
	o := c.d.owners["noisy"]
	c.d.Running(0, batch[0], time.Second)
	require.Equal(t, light, c.class("noisy"), "its share")
	credit := o.credit
	c.d.Running(0, batch[0], time.Second)
	require.Equal(t, credit, o.credit, "the same second")
	c.d.Running(0, batch[0], 3*time.Second)
	require.Equal(t, heavy, c.class("noisy"), "and its event goes on")
	require.Equal(t, 3*time.Second, o.spent)
	require.Equal(t, credit-2*time.Second, o.credit)
	report(c.d, 0, 4*time.Second, batch)
	require.Equal(t, 4*time.Second, o.spent)
	require.Equal(t, credit-3*time.Second, o.credit)
	c.d.Running(0, batch[0], time.Hour)
	require.Equal(t, 4*time.Second, o.spent, "it is over")
}

// An owner is also charged for persistent contexts between events, and for modules that do not load.
func TestCPUBesideEventsIsCharged(t *testing.T) {
	c := newCrowd(t, Config{Threads: 2, Background: 2}, "noisy", "quiet")
	c.spend("quiet", time.Millisecond)
	c.d.Charge("noisy", 2*time.Second)
	require.Equal(t, heavy, c.class("noisy"))
	require.Equal(t, -2*time.Second+quantum, c.d.owners["noisy"].credit)
	c.d.Charge("nobody", time.Second)

	c = newCrowd(t, Config{Threads: 2, Background: 2}, "noisy", "quiet")
	c.spend("quiet", time.Millisecond)
	for range 2 {
		c.d.Submit(tasks("noisy", "w", 1))
		c.d.Report(0, []lifecycle.Report{{Attempt: c.d.Next(0, 1)[0], End: &lifecycle.End{
			CPU: time.Second, Failure: events.NewFailure(events.ReasonException, "the module failed to load", ""),
		}}})
	}
	require.Equal(t, heavy, c.class("noisy"))
}

// A run is asked to yield only when another event waits that no thread can take.
func TestWhoYields(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 2, Background: 1})
	for _, o := range []string{"long", "quiet"} {
		d.Install(workers.Only(worker(o, "w")))
	}
	for thread := range 2 {
		require.Empty(t, d.Next(thread, 1))
	}
	d.Submit(tasks("long", "w", 4))
	first := d.Next(0, 1)
	d.Running(0, first[0], time.Millisecond) // so its events are not short
	second := d.Next(1, 1)
	yields := func(thread int, batch []*lifecycle.Attempt) bool {
		return d.Running(thread, batch[0], 50*time.Millisecond)
	}
	require.False(t, yields(0, first), "only events of the same owner wait")
	d.Submit(tasks("quiet", "w", 1))
	require.True(t, yields(0, first))
	require.True(t, yields(1, second))
	require.False(t, yields(2, first), "a thread that runs no such events delays no one")
	require.False(t, yields(-1, first), "it is away already")
	ground := &lifecycle.Attempt{Worker: worker("long", "w")}
	require.True(t, d.Running(0, ground, time.Second), "a context of another owner, between events")
	require.True(t, d.Running(0, &lifecycle.Attempt{Worker: worker("quiet", "w")}, time.Second),
		"the other way round, too")
	require.Equal(t, "quiet", d.Next(0, 1)[0].Event.Owner)
	require.False(t, yields(0, first), "no event waits any more")
	l.take()
}

// Events that run beside their threads count: of one owner there are at most as many as there are threads before it
// starts nothing more.
func TestAwayIsBounded(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 2})
	d.Install(workers.Only(worker("long", "w")))
	d.Submit(tasks("long", "w", 10))
	var away []*lifecycle.Attempt
	for thread := range 2 {
		batch := d.Next(thread, 1)
		d.Away(batch[0], true)
		d.Away(batch[0], true)
		away = append(away, batch...)
	}
	require.Empty(t, d.Next(0, 1))
	l.takeWoken()
	d.Away(away[0], false)
	require.Equal(t, []int{0}, l.takeWoken())
	third := d.Next(0, 1)
	require.Len(t, third, 1)
	require.Equal(t, 1, d.owners["long"].away)
	d.Away(third[0], true)
	require.Empty(t, d.Next(0, 1))
	report(d, 1, time.Second, away[1:])
	require.Equal(t, 1, d.owners["long"].away, "what is over is not away")
	require.Len(t, d.Next(0, 1), 1)
}
