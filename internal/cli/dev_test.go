package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// screen keeps the output that the user sees.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) shows(t *testing.T, what string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.String(), what) }, time.Minute, 5*time.Millisecond, "waiting for %q in:\n%s", what, s)
}

func (s *screen) showsTimes(t *testing.T, what string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(s.String(), what) == n }, time.Minute, 5*time.Millisecond, "waiting for %d times %q in:\n%s", n, what, s)
}

func devConfig(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.NatsPort, cfg.Data, cfg.AdminAddr = -1, natstest.StoreDir(t), ""
	cfg.AckWait, cfg.DrainTimeout = 2*time.Second, 5*time.Second
	return cfg
}

func TestDevDeploysOnSave(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "greet.js")
	save := func(code string) { require.NoError(t, os.WriteFile(path, []byte(code), 0o600)) }
	const first = `export default { fetch() { console.log("called", { n: 1 }); return new Response("one") } }`
	save(first)
	ctx, cancel := context.WithCancel(context.Background())
	out := &screen{}
	done := make(chan error, 1)
	go func() {
		done <- runDev(ctx, devConfig(t), zerolog.Nop(), out, []string{path}, map[string]string{"WHO": "Ada"})
	}()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()

	out.shows(t, "is dev/greet, version 1-")
	out.shows(t, "pinwheel send fetch dev/greet")
	url := strings.Fields(strings.SplitAfter(out.String(), "Pinwheel on ")[1])[0]
	nc, err := nats.Connect(strings.TrimSuffix(url, ","))
	require.NoError(t, err)
	defer nc.Close()
	call := func() string {
		m, err := nc.Request("pinwheel.call.fetch.dev.greet", nil, time.Minute)
		require.NoError(t, err)
		return string(m.Data)
	}
	require.Eventually(t, func() bool { return call() == "one" }, time.Minute, 5*time.Millisecond)
	out.shows(t, "called { n: 1 }  (event ")
	require.Regexp(t, `event dev/greet  GET http://\S+/  200  \S+s  event \d+, attempt 1\n`, out.String())
	out.shows(t, "nats req -s "+strings.TrimSuffix(url, ",")+" pinwheel.call.fetch.dev.greet")

	save("export default {\n  fetch() { return new Response(; }\n}")
	out.shows(t, "✗")
	out.shows(t, "greet.js:2:33")
	require.Equal(t, "one", call(), "what worked goes on working")

	save(first)
	out.showsTimes(t, "is dev/greet, version 1-", 2)

	save(`export default { fetch: (request, env) => new Response("two " + env.WHO) }`)
	out.shows(t, "version 2-")
	require.Eventually(t, func() bool { return call() == "two Ada" }, time.Minute, 5*time.Millisecond)

	require.NoError(t, os.Remove(path))
	out.shows(t, "greet.js is gone: dev/greet runs no more")
	require.Eventually(t, func() bool { return strings.Contains(call(), "no-worker") }, time.Minute, 5*time.Millisecond)
	save(first)
	out.showsTimes(t, "is dev/greet, version 1-", 3)
}

func TestDevRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	err := runDev(context.Background(), devConfig(t), zerolog.Nop(), &screen{}, []string{filepath.Join(t.TempDir(), "none.js")}, nil)
	require.ErrorContains(t, err, "no such file")
	require.Equal(t, exitUsage, exitCode(err))
	require.ErrorContains(t, runDev(context.Background(), devConfig(t), zerolog.Nop(), &screen{}, []string{t.TempDir()}, nil), "no .js or .ts files")
}
