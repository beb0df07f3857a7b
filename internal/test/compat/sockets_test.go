package compat_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// Sockets of a worker, and of clients to it, see what those of workerd see, call by call.
func TestSockets(t *testing.T) {
	t.Parallel()
	dir := packages(t)
	answers := runMiniflare(t, dir, filepath.Join(dir, "sockets.js"), `{"compatibilityDate": "2026-04-20"}`)
	require.Len(t, answers, 2)
	f := fleettest.Start(t, func(c *config.Config) { c.HTTPAddr, c.HTTPPaths = "127.0.0.1:0", "npm" })
	f.Deploy(t, filepath.Join(dir, "sockets.js"), "--owner", "npm")
	at := "http://" + f.HTTP + "/sockets"
	_, text := get(t, at+"/")
	calls := compareCalls(t, "sockets.js", cases(t, []byte(answers[0])), cases(t, []byte(text)))

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join(dir, "clients", "sockets.mjs"), at)
	cmd.WaitDelay = time.Second
	talks, err := cmd.Output()
	require.NoError(t, err)
	calls += compareCalls(t, "clients/sockets.mjs", cases(t, []byte(answers[1])), cases(t, talks))
	enoughCalls(t, calls, 200)
}

// A queue handler gets what that of workerd gets, and its decisions have the same end.
func TestQueues(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	const consumer = `{"maxBatchSize": 10, "maxBatchTimeout": 0, "maxRetries": 2}`
	producers, consumers := []string{`"QUEUE": "batches"`}, []string{`"batches": ` + consumer}
	for i := 1; i <= 5; i++ {
		producers = append(producers, fmt.Sprintf(`"QUEUE%d": "queue-%d"`, i, i))
		consumers = append(consumers, fmt.Sprintf(`"queue-%d": %s`, i, consumer))
	}
	answers := runMiniflare(t, f.dir, filepath.Join(f.dir, "batches.js"), fmt.Sprintf(`{"kvNamespaces": ["KV"],
		"queueProducers": {%s}, "queueConsumers": {%s}}`, strings.Join(producers, ", "), strings.Join(consumers, ", ")))
	ours := oneByOne(t, f.deploy(t, "batches.js"))
	enoughCalls(t, compareCalls(t, "batches.js", cases(t, []byte(answers[0])), ours), 100)
}
