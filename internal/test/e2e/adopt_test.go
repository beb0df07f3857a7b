package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A process with smaller sizes and ages deletes nothing: it works with what the fleet has, and says so. Only 'pinwheel
// resources apply' changes what exists, and it says before what would be lost.
func TestAProcessWithSmallerSizesDeletesNothing(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	h := openFleet(t, func(c *config.Config) { c.NatsURL, c.DeadLetterBytes = srv.URL(), 64<<20 })
	js := h.js
	const letters = 1500
	for i := range letters {
		_, err := js.PublishAsync(fmt.Sprintf("%s.dead.acme.gone.task.no-worker.PINWHEEL_EVENTS.%d", events.DefaultPrefix, 1_000_000+i),
			make([]byte, 1000))
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	configOf := func(stream string) jetstream.StreamConfig {
		s, err := js.Stream(t.Context(), stream)
		require.NoError(t, err)
		return s.CachedInfo().Config
	}
	stored := func() int {
		s, err := js.Stream(t.Context(), events.StreamDead)
		require.NoError(t, err)
		return int(s.CachedInfo().State.Msgs)
	}
	names := []string{events.StreamEvents, events.StreamDead, events.StreamResults, events.StreamBodies,
		events.StreamParked, events.StreamSchedules}
	before := map[string]jetstream.StreamConfig{}
	for _, name := range names {
		before[name] = configOf(name)
	}

	small := h.fleet.Config()
	small.DeadLetterBytes, small.DeadLetterAge, small.ResultAge = 1<<20, time.Minute, time.Second
	small.MaxBytes, small.Duplicates, small.AckWait = 1<<20, 100*time.Millisecond, 2*small.AckWait
	log := &output{}
	second, err := fleet.Open(small, zerolog.New(log))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, second.Run(ctx)) })
	defer running.Wait()
	defer cancel()
	gauge := func(name, stream string) float64 {
		all, err := second.Gatherer().Gather()
		require.NoError(t, err)
		for _, f := range all {
			for _, m := range f.GetMetric() {
				if f.GetName() == name && m.GetLabel()[0].GetValue() == stream {
					return m.GetGauge().GetValue()
				}
			}
		}
		return 0
	}
	command := func(cfg config.Config, args ...string) (code int, out, errs string) {
		var o, e bytes.Buffer
		code = cli.MainWith(cfg, args, strings.NewReader(""), &o, &e)
		return code, o.String(), e.String()
	}
	require.Eventually(t, func() bool { return gauge("pinwheel_stored_bytes", events.StreamDead) > 0 }, patience,
		10*time.Millisecond)
	require.EqualValues(t, before[events.StreamDead].MaxBytes, gauge("pinwheel_stored_bytes_limit", events.StreamDead))
	require.EqualValues(t, before[events.StreamEvents].MaxBytes,
		gauge("pinwheel_stored_bytes_limit", events.StreamSchedules), "the fleet's, not its own")
	require.Equal(t, h.fleet.Config().AckWait, second.Config().AckWait, "it renews leases as the fleet's consumers have it")
	for _, name := range names {
		require.Equal(t, before[name], configOf(name))
	}
	require.Equal(t, letters, stored())
	for _, line := range []string{
		`"variable":"PINWHEEL_DEAD_LETTER_BYTES","here":"1MiB","fleet":"64MiB"`, `"variable":"PINWHEEL_ACK_WAIT"`, `"variable":"PINWHEEL_RESULT_AGE"`,
	} {
		require.Contains(t, log.String(), line)
	}
	require.NotContains(t, log.String(), "updated")

	_, out := runDoctor(t, h.fleet.Config())
	require.Contains(t, out, "settings", out)
	require.Regexp(t, `was started with settings that are not the fleet's: .*stream PINWHEEL_DEAD: max_bytes is 64MiB and should be 1MiB`, out)

	small.DeadLetterAge, small.AckWait = h.fleet.Config().DeadLetterAge, h.fleet.Config().AckWait
	code, out, errs := command(small, "resources", "apply")
	require.Equal(t, 2, code)
	require.Regexp(t, `stream PINWHEEL_DEAD +max_bytes +64MiB +1MiB +PINWHEEL_DEAD_LETTER_BYTES +\d+ of 1500 messages\n`, out)
	require.Regexp(t, `stream PINWHEEL_EVENTS +duplicate_window +\S+ +100ms +PINWHEEL_DUPLICATES +message ids older than 100ms`, out)
	require.Contains(t, errs, "nothing was changed: --yes makes these changes")
	require.Equal(t, letters, stored())
	code, dry, _ := command(small, "resources", "apply", "--dry-run")
	require.Zero(t, code)
	require.Equal(t, out, dry)
	require.Equal(t, before[events.StreamDead], configOf(events.StreamDead))

	code, _, errs = command(small, "resources", "apply", "--yes")
	require.Zero(t, code, errs)
	require.EqualValues(t, 1<<20, configOf(events.StreamDead).MaxBytes)
	require.Equal(t, time.Second, configOf(events.StreamResults).MaxAge)
	require.Eventually(t, func() bool { return stored() < letters }, patience, 50*time.Millisecond,
		"now the owner's share is smaller")
	code, out, errs = command(small, "resources", "apply")
	require.Zero(t, code, out)
	require.Contains(t, errs, "nothing differs")
	_, out, _ = command(small, "audit", "--json")
	require.Contains(t, out, `"action":"resources.apply"`)
}
