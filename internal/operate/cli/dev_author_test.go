package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// A directory has more than workers. What is missing comes, and what failed says what becomes of it.
func TestDevOfADirectoryOfAnAuthor(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"a.js": `import { text } from "./lib/text.js"; export default { fetch: () => new Response(text) }`,
		"b.js": `export default { task() { throw new Error("no stock") } }`, "b.pinwheel.json": `{"retries": {"maxAttempts": 2, "initialMs": 200}}`,
		"s.js": `export default { task() {} }`, "s.pinwheel.json": `{"secrets": ["KEY"]}`,
		"util.js": "export const one = 1", "effect.js": "globalThis.one = 1", "a.test.js": `import "node:test"`,
	})
	cfg, err := withDevHTTP(devConfig(t), -1)
	require.NoError(t, err)
	out := runsDevWith(t, cfg, dir)
	out.shows(t, "is dev/b, version 1-")
	out.shows(t, `Could not resolve "./lib/text.js"`)
	out.shows(t, "'pinwheel secrets set dev/s KEY' sets it, and KEY=… in "+filepath.Join(dir, ".dev.vars")+" does for dev")
	out.shows(t, "– "+filepath.Join(dir, "effect.js")+" is no worker: it has no handler\n")
	require.NotContains(t, out.String(), "util.js")
	require.NotContains(t, out.String(), "a.test.js")

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "lib"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib/text.js"), []byte(`export const text = "one"`), 0o600))
	out.shows(t, "is dev/a, version 1-")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".dev.vars"), []byte("KEY=1"), 0o600))
	out.shows(t, "is dev/s, version 1-")

	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/a/`).FindString(out.String())
	resp, err := http.Get(strings.TrimSuffix(address, "a/") + "nothing")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "no worker has this address; these have one:\n"+address+"\n", string(body))

	cfg.NatsURL = strings.TrimSuffix(strings.Fields(strings.SplitAfter(out.String(), "Pinwheel on ")[1])[0], ",")
	send := []string{"send", "task", "dev/b", "--no-wait"}
	require.Zero(t, MainWith(cfg, send, strings.NewReader(""), io.Discard, io.Discard))
	out.shows(t, "  dead letter 1: ")
	require.Regexp(t, `event dev/b  task  ✗ exception  \S+  retry in \d+ ms  event \d+, attempt 1\n`, out.String())
	require.Regexp(t, `event dev/b  task  ✗ exception  \S+  dead letter 1: PINWHEEL_NATS_URL=\S+ pinwheel dead show 1  event \d+, attempt 2\n`,
		out.String())

	before := strings.Count(out.String(), "is dev/a, version")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.js"), []byte("export const two = 2"), 0o600))
	out.shows(t, "b.js has no handler any more: dev/b runs no more")
	require.Equal(t, before, strings.Count(out.String(), "is dev/a, version"), "only what was touched is deployed again")
}

func TestDevSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	path := inFile(t, "slow.js", `export default { async task() { console.log("begins"); await new Promise((r) => setTimeout(r, 500)) } }`)
	cfg := devConfig(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, done := &screen{}, make(chan error, 1)
	go func() { done <- runDev(ctx, cfg, zerolog.Nop(), out, []string{path}, nil) }()
	out.shows(t, "is dev/slow, version 1-")
	cfg.NatsURL = strings.TrimSuffix(strings.Fields(strings.SplitAfter(out.String(), "Pinwheel on ")[1])[0], ",")
	send := []string{"send", "task", "dev/slow", "--no-wait"}
	require.Zero(t, MainWith(cfg, send, strings.NewReader(""), io.Discard, io.Discard))
	out.shows(t, "begins")
	cancel()
	require.NoError(t, <-done)
	out.shows(t, "ending: waits for 1 event of dev/slow, at most 5s; another Ctrl-C ends at once\n")
}

func TestATakenPortNamesItsFlag(t *testing.T) {
	t.Parallel()
	path := inFile(t, "w.js", "export default { task() {} }")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	for flag, to := range map[string]string{"--port": "http", "--nats-port": "nats"} {
		cfg := devConfig(t)
		if to == "http" {
			cfg.HTTPAddr = l.Addr().String()
		} else {
			cfg.NatsPort = port
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := runDev(ctx, cfg, zerolog.Nop(), &screen{}, []string{path}, nil)
		cancel()
		require.ErrorContains(t, err, "; "+flag+" names another port for dev, and -1 takes a free one")
		require.ErrorContains(t, err, fmt.Sprint(port))
	}
}

// Also when nothing runs, the end is told.
func TestDevSaysThatItEnds(t *testing.T) {
	t.Parallel()
	path := inFile(t, "w.js", "export default { task() {} }")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, done := &screen{}, make(chan error, 1)
	go func() { done <- runDev(ctx, devConfig(t), zerolog.Nop(), out, []string{path}, nil) }()
	out.shows(t, "is dev/w, version 1-")
	cancel()
	require.NoError(t, <-done)
	require.Contains(t, out.String(), "ending: no event runs\n")
}

// inFile is the path of a new file.
func inFile(t *testing.T, name, text string) string {
	t.Helper()
	return filepath.Join(project(t, map[string]string{name: text}), name)
}
