package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// The figures are those of a fleet that runs events.
func TestTop(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "echo.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { task: (event) => event.payload }`), 0o600))
	f.Deploy(t, path, "--owner", "acme")
	stop := make(chan struct{})
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = f.NC.Request(string(events.DefaultPrefix)+".call.task.acme.echo", []byte("1"), patience)
			}
		}
	})
	defer publishing.Wait()
	defer close(stop)
	var look struct {
		EventsPerSecond float64
		DurationP50Ms   *float64
		Processes       []struct {
			Node            string
			EventsPerSecond float64
		}
	}
	require.Eventually(t, func() bool {
		r := f.Pinwheel("top", "--count", "1", "--json", "--interval", "200ms")
		require.Zero(t, r.Code, r.Err)
		require.NoError(t, json.Unmarshal([]byte(r.Out), &look))
		return look.EventsPerSecond > 0
	}, patience, time.Millisecond)
	require.NotNil(t, look.DurationP50Ms)
	require.Len(t, look.Processes, 1)
	require.InDelta(t, look.EventsPerSecond, look.Processes[0].EventsPerSecond, 0.001)

	r := f.Pinwheel("top", "--count", "2", "--interval", "200ms")
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Out, look.Processes[0].Node)
	require.Equal(t, 2, strings.Count(r.Out, "pinwheel top"))

	for _, wrong := range [][]string{{"--interval", "1ms"}, {"--count", "-1"}, {"extra"}} {
		require.Equal(t, 2, f.Pinwheel(append([]string{"top"}, wrong...)...).Code)
	}
}

func TestTopWithoutAFleet(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	f.Config.Prefix = "other"
	r := f.Pinwheel("top", "--count", "1")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "no process of a fleet answers")
}
