package dispatch

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// inShares is the deployment of versions 1-x and 2-x in which 2-x has the given percentage, as part of one rollout.
func inShares(percent float64) workers.Deployment {
	d := workers.Deployment{Number: 5, Rollout: &workers.Rollout{ID: 3}}
	d.Split = []workers.Share{{Version: "1-x", Percent: 100 - percent}, {Version: "2-x", Percent: percent}}
	return d
}

// runKeys runs an event of each key and returns the versions that ran them.
func runKeys(t *testing.T, d *Dispatcher, keys int) map[string]string {
	t.Helper()
	ran := map[string]string{}
	for i := range keys {
		e := task("o", "w", i)
		e.ID = fmt.Sprint("id-", i)
		if i%2 == 0 {
			e.VersionKey = fmt.Sprint("key-", i)
		}
		d.Submit([]*lifecycle.Delivery{e})
		batch := d.Next(0, 1)
		require.Len(t, batch, 1)
		ran[cmp.Or(e.VersionKey, e.ID)] = batch[0].Worker.Version
		report(d, 0, 1, batch)
	}
	return ran
}

func TestSplitIsExactAndMovesNoKeyBack(t *testing.T) {
	const keys = 2000
	d, _ := newDispatcher(t, Config{Threads: 1})
	in := versions(2)
	before := map[string]string{}
	for _, percent := range []float64{0.5, 10, 33.33, 50, 99.99} {
		in.Deployment = inShares(percent)
		d.Install(in)
		ran := runKeys(t, d, keys)
		share := 0
		for key, v := range ran {
			want := "1-x"
			if events.SplitPoint("o", "w", key) < workers.Points(percent) {
				want = "2-x"
				share++
			}
			require.Equal(t, want, v, "%s at %v %%", key, percent)
			if before[key] == "2-x" {
				require.Equal(t, "2-x", v, "%s moved back at %v %%", key, percent)
			}
		}
		require.InDelta(t, percent*keys/100, share, 3.5*22.4, "keys are spread evenly") // 3.5 standard deviations
		before = ran
	}
}

// A process that knows of a step runs the events that were stored before it takes effect as one that does not know of
// it.
func TestStepTakesEffectForEventsStoredLater(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1})
	in := versions(2)
	run := func(stored time.Time, key string) string {
		e := task("o", "w", 1)
		e.Stored, e.VersionKey = stored, key
		d.Submit([]*lifecycle.Delivery{e})
		batch := d.Next(0, 1)
		require.Len(t, batch, 1)
		report(d, 0, 1, batch)
		return batch[0].Worker.Version
	}
	key := ""
	for i := 0; key == ""; i++ {
		if p := events.SplitPoint("o", "w", fmt.Sprint(i)); p >= 1000 && p < 2000 {
			key = fmt.Sprint(i)
		}
	}
	step := time.Now()
	old := inShares(10).Split
	for _, next := range [][]workers.Share{inShares(20).Split, {{Version: "2-x", Percent: 100}}} {
		in.Deployment = workers.Deployment{Number: 5, Split: old, Rollout: &workers.Rollout{ID: 3},
			Stored: step.Add(-time.Hour)}
		d.Install(in)
		require.Equal(t, "1-x", run(step.Add(workers.StepDelay), key), "the step is not known here")
		in.Deployment = workers.Deployment{Number: 6, Split: next, Before: old, Rollout: &workers.Rollout{ID: 3},
			Stored: step}
		d.Install(in)
		require.Equal(t, step.Add(workers.StepDelay), in.Deployment.Effective())
		require.Equal(t, "1-x", run(step.Add(-time.Hour), key), "an event that waited")
		require.Equal(t, "1-x", run(step.Add(workers.StepDelay-1), key))
		require.Equal(t, "2-x", run(step.Add(workers.StepDelay), key))
		require.Equal(t, "2-x", run(time.Time{}, key), "an event without a time")
		in.Deployment.Before = nil // a rollback
		d.Install(in)
		require.Equal(t, "2-x", run(step.Add(-time.Hour), key))
	}
}

func TestOutcomesCountTheRunsOfASplit(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1})
	in := versions(3)
	in.Deployment = inShares(50)
	d.Install(in)
	run := func(e *lifecycle.Delivery, reports ...lifecycle.Report) string {
		d.Submit([]*lifecycle.Delivery{e})
		batch := d.Next(0, 1)
		require.Len(t, batch, 1)
		for _, r := range reports {
			r.Attempt = batch[0]
			d.Report(0, []lifecycle.Report{r})
		}
		return batch[0].Worker.Version
	}
	fine := lifecycle.Report{End: &lifecycle.End{Started: true}}
	failed := lifecycle.Report{End: &lifecycle.End{Started: true, NoRetry: true,
		Failure: events.Fail(events.ReasonException, "x")}}
	var want workers.Outcomes
	for i := range 40 {
		e := task("o", "w", i)
		e.ID = fmt.Sprint(i)
		end := []lifecycle.Report{fine}
		switch i % 4 {
		case 1:
			end = []lifecycle.Report{failed}
		case 2: // an error page is a failure too
			e.Kind, e.ReplyTo = events.Fetch, "inbox"
			end = []lifecycle.Report{{Reply: &events.Reply{Status: 503}}, fine}
		case 3: // did not run
			end = []lifecycle.Report{{End: &lifecycle.End{Interrupted: true}}}
		}
		runs := &want.Base
		if run(e, end...) == "2-x" {
			runs = &want.Candidate
		}
		if i%4 == 3 { // it runs again
			again := d.Next(0, 1)
			require.Len(t, again, 1)
			d.Report(0, []lifecycle.Report{{Attempt: again[0], End: &lifecycle.End{Started: true}}})
		}
		runs.Ended++
		if i%4 == 1 || i%4 == 2 {
			runs.Failed++
		}
	}
	for _, pin := range []string{"1-x", "2-x", "3-x"} {
		e := task("o", "w", 100)
		e.Version = pin
		require.Equal(t, pin, run(e, failed))
	}
	id, got := d.Outcomes("o", "w")
	require.Equal(t, 3, id)
	require.Equal(t, want, got)

	in.Deployment = inShares(60)
	d.Install(in)
	_, got = d.Outcomes("o", "w")
	require.Equal(t, want, got, "the next step of the same rollout")
	in.Deployment.Rollout = &workers.Rollout{ID: 6}
	d.Install(in)
	id, got = d.Outcomes("o", "w")
	require.Equal(t, 6, id)
	require.Zero(t, got)
	id, _ = d.Outcomes("o", "none")
	require.Zero(t, id)
}

func TestWithoutAnActiveVersionNothingRuns(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	in := versions(1)
	d.Install(in)
	d.Submit(tasks("o", "w", 1))
	s := l.take()
	require.Len(t, s, 1)
	require.Equal(t, lifecycle.Dead, s[0].Outcome.Verdict)
	require.Equal(t, "worker o/w has no active version: its versions wait to be promoted", s[0].Outcome.Failure.Message)
	e := task("o", "w", 2)
	e.Version = "1"
	d.Submit([]*lifecycle.Delivery{e})
	require.Len(t, d.Next(0, 1), 1, "an event that names a version runs")
}
