package hostileowners

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// unwritableOwners is how many owners, which need not exist, have unwritableEvents events each: together several times
// as many as the window has places.
const unwritableOwners, unwritableEvents = 40, 20

// unwritableEventsOf: events with a header that nats.go does not write, so that their dead letters cannot be stored as
// they are, take every place in the window.
func unwritableEventsOf(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "echo", echoCode, "")
	var list []natstest.Raw
	for i := range unwritableEvents {
		for owner := range unwritableOwners {
			list = append(list, natstest.Raw{
				Subject: subjects.Event(events.Task, fmt.Sprint("nobody", owner), "none"),
				Header:  "NATS/1.0\r\na/b: c\r\n\r\n", Body: fmt.Sprint(i),
			})
		}
	}
	natstest.PublishAllRaw(t, strings.Replace(f.url, "://", "://fleet:fleet-secret@", 1), list)
	until(t, "the process has taken as many as its window has places",
		func() bool { return f.processes[0].Metric("pinwheel_deliveries_total") >= 128 })
	beta := f.as("beta")
	for range 3 {
		if harm = tryCall(t, beta, "beta", "echo"); harm != "" {
			return harm
		}
	}
	letters := deadletter.NewStore(f.js, subjects)
	until(t, "every event has its letter", func() bool {
		n, err := letters.Count(t.Context(), deadletter.Filter{Reason: events.ReasonMalformed})
		return err == nil && n == len(list)
	})
	for l, err := range letters.List(t.Context(), deadletter.Filter{Limit: 10}) {
		require.NoError(t, err)
		require.Equal(t, list[0].Header, string(l.Block))
	}
	require.Less(t, strings.Count(f.processes[0].Log(), "\n"), len(list)/4, "lines of the log")
	return ""
}
