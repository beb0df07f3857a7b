package hostileowners

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// prefix: a process with another PINWHEEL_PREFIX is started by mistake beside a fleet.
func prefix(t *testing.T, f *fleet) (harm string) {
	f.deploy("acme", "echo", `export default { task: event => event.payload }`, "")
	js, err := jetstream.New(f.as("acme"))
	require.NoError(t, err)
	publish := func() error {
		_, err := js.Publish(t.Context(), subjects.Event(events.Task, "acme", "echo"), []byte("1"),
			jetstream.WithRetryAttempts(0))
		return err
	}
	require.NoError(t, publish())
	p := f.launch("PINWHEEL_PREFIX=other")
	until(t, "the process has ended, or does harm", func() bool {
		if err := publish(); err != nil {
			harm = fmt.Sprintf("events of the fleet that was there are not stored any more: %v", err)
		}
		if strings.Contains(p.Log(), `"message":"updated"`) {
			harm = "it has changed the streams of the fleet that was there"
		}
		return harm != "" || !p.Alive()
	})
	if harm == "" {
		require.Contains(t, p.Log(), "PINWHEEL_PREFIX=pinwheel")
		require.Contains(t, p.Log(), "this one has other")
		require.NoError(t, publish())
	}
	return harm
}
