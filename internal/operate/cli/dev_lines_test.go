package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

func TestLineOfABatch(t *testing.T) {
	t.Parallel()
	line := func(end *lifecycle.End) string {
		e := &lifecycle.Delivery{Event: events.Event{Owner: "dev", Worker: "w", Kind: events.Task, ID: "1"}}
		return eventLine(&lifecycle.Report{
			Attempt: &lifecycle.Attempt{Event: e, Batch: []*lifecycle.Delivery{e, e, e}, Worker: &workers.Worker{},
				Start: time.Now()},
			End: end,
		})
	}
	require.Empty(t, line(nil))
	require.Contains(t, line(&lifecycle.End{Started: true}), "batch dev/w  3 events  ✓ 3  ")
	failed := &lifecycle.End{
		Started: true, Failure: events.Fail(events.ReasonCPU, "x"),
		Items: []lifecycle.Item{{Decision: lifecycle.Acked}, {}, {Decision: lifecycle.Again}},
	}
	require.Contains(t, line(failed), "batch dev/w  3 events  ✓ 1  1 ask to run again  ✗ 1 cpu  ")
}

func TestBatchesOfAWorker(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	printTogether(func(name, format string, args ...any) { rows[name] = format }, &control.Worker{})
	require.Empty(t, rows)
	printTogether(func(name, format string, args ...any) { rows[name] = format }, &control.Worker{Queue: true})
	require.Contains(t, rows, "batches")
}

func TestLineOfAServiceCall(t *testing.T) {
	t.Parallel()
	e := &lifecycle.Delivery{Event: events.Event{Owner: "dev", Worker: "auth", Kind: events.Fetch, ID: "call-1"},
		Service: &events.ServiceCall{Method: "check"}}
	line := eventLine(&lifecycle.Report{
		Attempt: &lifecycle.Attempt{Event: e, Worker: &workers.Worker{}, Start: time.Now(), Number: 1},
		Reply:   &events.Reply{Status: 200}, End: &lifecycle.End{Started: true},
	})
	require.Contains(t, line, "event dev/auth  check()  200  ")
}
