package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// ask submits a direct event and returns the failure that it got at once, or nil.
func ask(d *Dispatcher, owner, name string) *events.Failure {
	e, c := direct(owner, name)
	d.Submit([]*lifecycle.Delivery{e})
	if len(c.replies) == 0 {
		return nil
	}
	return c.replies[0].Failure
}

// Suspects run one after the other, by owner. Events of the stream and of others are not concerned.
func TestSuspectsOfDirectEventsAreTriedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 1})
		for _, w := range []struct{ owner, name string }{{"a", "w"}, {"a", "v"}, {"b", "w"}, {"c", "w"}, {"other", "w"}} {
			d.Install(workers.Only(worker(w.owner, w.name)))
		}
		d.Suspect([]Suspect{{Owner: "a", Worker: "w", Try: true}, {Owner: "a", Worker: "v", Try: true},
			{Owner: "b", Worker: "w", Try: true}, {Owner: "c", Worker: "w", Try: true}})
		require.Nil(t, ask(d, "a", "w"))
		require.Nil(t, ask(d, "a", "v"), "those of one owner are tried together")
		f := ask(d, "b", "w")
		require.Equal(t, events.ReasonCrash, f.Reason)
		require.Equal(t, trialFor, f.RetryAfter)
		require.Nil(t, ask(d, "other", "w"))
		d.Submit(tasks("b", "w", 1))
		require.Empty(t, l.take(), "an event of the stream waits")
		time.Sleep(trialFor)
		require.Nil(t, ask(d, "b", "w"))
		require.Nil(t, ask(d, "a", "w"), "it is free")
		require.NotNil(t, ask(d, "c", "w"))
		time.Sleep(trialFor)
		require.Nil(t, ask(d, "c", "w"))
		require.Nil(t, ask(d, "b", "w"))
		require.EqualValues(t, 2, d.gates.trials.refused)
		time.Sleep(trialFor)
		require.Nil(t, ask(d, "c", "w"))
		require.Empty(t, d.gates.trials.suspects)

		d.Suspect([]Suspect{{Owner: "a", Worker: "w", Try: true}, {Owner: "b", Worker: "w", Try: true}})
		require.Nil(t, ask(d, "a", "w"))
		time.Sleep(trialsFor)
		require.Nil(t, ask(d, "a", "w"))
		require.Empty(t, d.gates.trials.suspects, "those without requests are free too")
	})
}

// Only direct events are refused of a worker during whose direct events processes died. Other processes learn it.
func TestDirectEventsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 1})
		next, _ := newDispatcher(t, Config{Threads: 1})
		for _, d := range []*Dispatcher{d, next} {
			d.Install(workers.Only(worker("a", "w")))
			d.Install(workers.Only(worker("b", "w")))
		}
		require.Nil(t, ask(d, "a", "w"), "it waits, and is refused when it would start")
		d.Suspect([]Suspect{{Owner: "a", Worker: "w", Times: 3, Left: 4 * time.Second}})
		next.HearBans(d.Bans())
		for _, d := range []*Dispatcher{d, next} {
			f := ask(d, "a", "w")
			require.Equal(t, events.ReasonCrash, f.Reason)
			require.Equal(t, 4*time.Second, f.RetryAfter)
			require.Contains(t, f.Message, "3 times lately")
			require.Nil(t, ask(d, "b", "w"))
		}
		d.Submit(tasks("a", "w", 1))
		require.Empty(t, l.take())
		var kinds []events.Kind
		for run := d.Next(0, 1); len(run) > 0; run = d.Next(0, 1) {
			kinds = append(kinds, run[0].Event.Kind)
		}
		require.ElementsMatch(t, []events.Kind{events.Fetch, events.Task}, kinds, "the direct event of b, and the task of a")
		time.Sleep(4 * time.Second)
		require.Nil(t, ask(d, "a", "w"))
		require.Nil(t, ask(next, "a", "w"))
	})
}
