package hostileowners

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// attack is something that an owner does to other owners. docs/guides/security.md lists the attacks by name.
type attack struct {
	name  string
	guard guard.Guard // prevents it
	also  guard.Guard // is off without it too, so that the harm comes soon; "" = none
	env   []string    // of the fleet's process, where the attack is slow with the defaults
	// run carries out the attack, as acme. harm describes what it did to others, and is empty if it did nothing.
	run func(t *testing.T, f *fleet) (harm string)
}

var attacks = []attack{
	{name: "forged overtakes", guard: guard.StoredHeaders, env: []string{"PINWHEEL_OVERTAKE=640", "PINWHEEL_WINDOW=256",
		"PINWHEEL_OWNER_MAX_QUEUED=10000"}, run: overtakes},
	{name: "endless sweep", guard: guard.StoredHeaders, run: sweeps},
	{name: "another prefix", guard: guard.FleetPrefix, run: prefix},
	{name: "foreign credits", guard: guard.BodyOwner, run: foreignCredits},
	{name: "pubacks as events", guard: guard.PubAckEvents, run: pubAcksAsEvents},
	{name: "event ids", guard: guard.EventIDs, env: []string{"PINWHEEL_HTTP_ADDR=127.0.0.1:0",
		"PINWHEEL_HTTP_DOMAIN=w.test"}, run: eventIDs},
	{name: "unwritable events", guard: guard.WritableHeaders, env: []string{"PINWHEEL_WINDOW=128"},
		run: unwritableEventsOf},
	{name: "unschedule flood", guard: guard.RequestRates, run: unscheduleFlood},
	{name: "request flood", guard: guard.RequestRates, run: requestFlood},
	{name: "secrets", guard: guard.SecretBounds, run: secretsWithoutEnd},
	{name: "full buckets", guard: guard.StoredShares, env: []string{"PINWHEEL_WORKERS_MAX_BYTES=2MiB",
		"PINWHEEL_MAX_BYTES=16MiB"}, run: fullBuckets},
	{name: "sends", guard: guard.SendRates, env: []string{"PINWHEEL_MAX_BYTES=8MiB"}, run: sends},
	{name: "full streams", guard: guard.StoredShares, env: []string{"PINWHEEL_MAX_BYTES=8MiB"}, run: fullStreams},
	{name: "dead letters", guard: guard.StoredShares, env: []string{"PINWHEEL_MAX_BYTES=16MiB",
		"PINWHEEL_DEAD_LETTER_BYTES=16MiB", "PINWHEEL_WORKERS_MAX_BYTES=2MiB", assets2MiB, store224MiB}, run: deadLetters},
	{name: "delayed events", guard: guard.StoredShares, env: []string{"PINWHEEL_MAX_BYTES=16MiB",
		"PINWHEEL_DEAD_LETTER_BYTES=8MiB", "PINWHEEL_WORKERS_MAX_BYTES=2MiB", assets2MiB, store224MiB}, run: delayedEvents},
	{name: "results", guard: guard.StoredShares, env: []string{"PINWHEEL_MAX_BYTES=64MiB", "PINWHEEL_ACK_WAIT=3s"},
		run: results},
	{name: "body parts", guard: guard.StoredShares, env: []string{"PINWHEEL_MAX_BYTES=16MiB"}, run: bodyParts},
	{name: "timers", guard: guard.TimerBudget, env: []string{"PINWHEEL_THREADS=1"}, run: timers},
	{name: "long turn", guard: guard.CPUWhileRunning, env: []string{"PINWHEEL_THREADS=1"}, run: longTurn},
	{name: "long domains", guard: guard.LinearWork, run: longDomains},
	{name: "lost threads", guard: guard.CrashSuspects, also: guard.NativeWork,
		env: []string{"PINWHEEL_THREADS=2", "PINWHEEL_BACKGROUND_THREADS=2"}, run: costThreads},
	{name: "native work", guard: guard.NativeWork, run: nativeWork},
	// in no cell: it counts the processes that are there
	{name: "module checks", guard: guard.ModuleChecks, env: []string{"PINWHEEL_CELL=shared"}, run: moduleChecks},
	{name: "held responses", guard: guard.RunMemory, env: []string{allowLoopback}, run: heldResponses},
	{name: "all connections", guard: guard.HostConnections, env: []string{allowLoopback}, run: allConnections},
	{name: "redirects", guard: guard.Redirects, env: []string{allowLoopback}, run: redirects},
	{name: "private addresses", guard: guard.PublicAddresses, run: privateAddresses},
	{name: "file lists", guard: guard.FileLists, run: fileLists},
	{name: "file cache", guard: guard.FileLists, env: []string{"PINWHEEL_HTTP_ADDR=127.0.0.1:0",
		"PINWHEEL_HTTP_DOMAIN=w.test", "PINWHEEL_HTTP_CACHE=2MiB"}, run: fileCache},
	{name: "file rules", guard: guard.FileRules, env: []string{"PINWHEEL_HTTP_ADDR=127.0.0.1:0",
		"PINWHEEL_HTTP_DOMAIN=w.test"}, run: fileRules},
	{name: "deploy files", guard: guard.DeployFiles, run: readDeployingMachine},
}

const (
	// allowLoopback lets workers reach the servers of a test.
	allowLoopback = "PINWHEEL_ALLOW_PRIVATE_ADDRESSES=127.0.0.1"
	assets2MiB    = "PINWHEEL_ASSETS_MAX_BYTES=2MiB"
	// store224MiB gives the server less storage than the limits of its streams.
	store224MiB = storeVariable + "=234881024"
)

// docs/guides/security.md lists exactly these attacks.
func TestAttacksAreListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "security.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| attack | guard |")
	require.True(t, found)
	var listed, tried []string
	for _, m := range regexp.MustCompile(`(?m)^\| \*\*([a-z ]+)\*\*: `).FindAllStringSubmatch(table, -1) {
		listed = append(listed, m[1])
	}
	for _, a := range attacks {
		tried = append(tried, a.name)
	}
	require.Equal(t, tried, listed)
}

// With its guard on, an attack does no harm.
func TestAttacks(t *testing.T) {
	t.Parallel()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, a.run(t, openFleet(t, a.env...)), "harm")
		})
	}
}
