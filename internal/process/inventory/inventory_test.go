package inventory_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
)

// Everything of a fleet has a bound but schedules, which JetStream does not let refuse messages. The shipped
// configuration of NATS has room for all bounds, and a fifth for the streams of owners.
func TestBoundsFitTheShippedConfiguration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "nats", "nats.conf"))
	require.NoError(t, err)
	m := regexp.MustCompile(`(?m)^  max_file_store: (\d+)GB$`).FindSubmatch(text)
	require.NotNil(t, m)
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(t, err)
	storage := n << 30 // nats-server reads GB so
	cfg := config.Default()
	cfg.HTTPAcme, cfg.Runs = "letsencrypt", "all"
	reserved, unbounded := int64(0), []string(nil)
	for _, r := range inventory.Resources(cfg, 1<<20) {
		if r.Consumer != nil {
			continue
		}
		most := sizeOf(r)
		if reserved += most; most <= 0 {
			unbounded = append(unbounded, r.StreamName())
		}
	}
	require.ElementsMatch(t, []string{events.StreamSchedules}, unbounded)
	require.LessOrEqual(t, reserved, storage/10*8, "doctor warns of more")
	t.Logf("%d MiB of %d MiB are reserved", reserved>>20, storage>>20)

	cfg.WorkersMaxBytes = 0 // the buckets of versions and bundles have no bound, as those of an earlier release
	require.EqualValues(t, -1, inventory.Deploy(cfg).MaxBytes)
	require.EqualValues(t, 512<<20, inventory.Deploy(cfg).AssetsMaxBytes)
	cfg.AssetsMaxBytes = 0
	require.EqualValues(t, -1, inventory.Deploy(cfg).AssetsMaxBytes)
}

// The variable that is named for a size is the one that decides it. The size of the secrets is fixed.
func TestVariablesOfSizes(t *testing.T) {
	t.Parallel()
	with := inventory.ResourcesFor(config.Default(), 1<<20)
	before := with(nil)
	for _, variable := range []string{"PINWHEEL_MAX_BYTES", "PINWHEEL_DEAD_LETTER_BYTES", "PINWHEEL_WORKERS_MAX_BYTES",
		"PINWHEEL_ASSETS_MAX_BYTES"} {
		for i, r := range with(map[string]string{variable: "32MiB"}) {
			if r.Consumer != nil {
				continue
			}
			changed, named := sizeOf(r) != sizeOf(before[i]), inventory.VariableOf(r, "max_bytes") == variable
			require.Equal(t, changed, named, "%s of %s", variable, r)
		}
	}
}

func sizeOf(r resources.Resource) int64 {
	switch {
	case r.Stream != nil:
		return r.Stream.MaxBytes
	case r.Bucket != nil:
		return r.Bucket.MaxBytes
	case r.Objects != nil:
		return r.Objects.MaxBytes
	}
	return 0
}
