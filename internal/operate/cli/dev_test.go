package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
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
	require.Eventually(t, func() bool { return strings.Contains(s.String(), what) }, time.Minute, 5*time.Millisecond,
		"waiting for %q in:\n%s", what, s)
}

func (s *screen) showsTimes(t *testing.T, what string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(s.String(), what) == n }, time.Minute, 5*time.Millisecond,
		"waiting for %d times %q in:\n%s", n, what, s)
}

func devConfig(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.NatsPort, cfg.Data, cfg.AdminAddr = -1, natstest.StoreDir(t), ""
	cfg.DrainTimeout = 5 * time.Second
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
		cfg, err := withDevHTTP(devConfig(t), -1)
		if err != nil {
			done <- err
			return
		}
		done <- runDev(ctx, cfg, zerolog.Nop(), out, []string{path}, map[string]string{"WHO": "Ada"})
	}()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()

	out.shows(t, "is dev/greet, version 1-")
	out.shows(t, "pinwheel send fetch dev/greet")
	url := strings.Fields(strings.SplitAfter(out.String(), "Pinwheel on ")[1])[0]
	nc, err := natstest.Dial(strings.TrimSuffix(url, ","))
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

	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+/greet/`).FindString(out.String())
	resp, err := http.Get(at)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "one", string(body), at)

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
	err := runDev(context.Background(), devConfig(t), zerolog.Nop(), &screen{},
		[]string{filepath.Join(t.TempDir(), "none.js")}, nil)
	require.ErrorContains(t, err, "no such file")
	require.Equal(t, exitUsage, exitCode(err))
	require.ErrorContains(t, runDev(context.Background(), devConfig(t), zerolog.Nop(), &screen{}, []string{t.TempDir()},
		nil), "no .js or .ts files")
}

// The values in .dev.vars are secrets of the worker beside it. They replace vars of the manifest, and satisfy what it
// names. .env is read only without it, and $NAME in its values is replaced. A change of the file is like one of the
// source.
func TestDevVars(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	save("w.js", `const text = (value) => value === "" ? "empty" : value;
		export default { fetch: (request, env) =>
			new Response([env.API_KEY, env.MODE, env.ONLY_ENV, env.GIVEN].map(text).join()) }`)
	save("w.pinwheel.json", `{"secrets": ["API_KEY"], "vars": {"MODE": "manifest"}}`)
	save(".dev.vars", "API_KEY='pa$$ #1'\nMODE=dev # why\n")
	save(".env", "ONE=1\nONLY_ENV=${ONE}\nMODE=env\nAPI_KEY=env\nGIVEN=env\n")
	ctx, cancel := context.WithCancel(context.Background())
	out := &screen{}
	done := make(chan error, 1)
	cfg := devConfig(t)
	go func() {
		done <- runDev(ctx, cfg, zerolog.Nop(), out, []string{dir}, map[string]string{"GIVEN": "flag"})
	}()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	out.shows(t, "is dev/w, version 1-")
	info, err := os.Stat(filepath.Join(cfg.Data, "secrets.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "dev makes a key of its own")
	nc, err := natstest.Dial(strings.TrimSuffix(strings.Fields(strings.SplitAfter(out.String(), "Pinwheel on ")[1])[0],
		","))
	require.NoError(t, err)
	defer nc.Close()
	answers := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool {
			m, err := nc.Request("pinwheel.call.fetch.dev.w", nil, time.Minute)
			require.NoError(t, err)
			return string(m.Data) == want
		}, time.Minute, 5*time.Millisecond, "%s\n%s", want, out)
	}
	answers("pa$$ #1,dev,,flag")
	save(".dev.vars", "API_KEY=two\nMODE=dev")
	answers("two,dev,,flag")
	save(".dev.vars", "API_KEY=\nMODE=''\nONLY_ENV=\n")
	answers("empty,empty,empty,flag")
	save(".dev.vars", "API_KEY=two\nmore s3cret things\n")
	out.shows(t, filepath.Join(dir, ".dev.vars")+":2:1: there is no = after the name")
	require.NotContains(t, out.String(), "s3cret")
	require.NoError(t, os.Remove(filepath.Join(dir, ".dev.vars")))
	answers("env,env,1,flag")
	save(".env.local", "MODE=local$ONE")
	answers("env,local1,1,flag")
	require.NotContains(t, out.String(), "pa$$")

	elsewhere := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(elsewhere, []byte("API_KEY=of-this-machine\n"), 0o600))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, ".dev.vars")))
	out.shows(t, ".dev.vars is a link: a file with secrets is read only where it is")
	answers("env,local1,1,flag")
}

// runsDev runs dev on the paths until the end of the test.
func runsDev(t *testing.T, paths ...string) *screen {
	t.Helper()
	return runsDevWith(t, devConfig(t), paths...)
}

func runsDevWith(t *testing.T, cfg config.Config, paths ...string) *screen {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, done := &screen{}, make(chan error, 1)
	go func() { done <- runDev(ctx, cfg, zerolog.Nop(), out, paths, nil) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return out
}

// Workers of dev may have every host, also when a former version comes back.
func TestRollbackInDevWithRoutes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.js")
	save := func(n int) {
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "export default { fetch: () => new Response('%d') }", n), 0o600))
	}
	save(1)
	require.NoError(t, os.WriteFile(strings.TrimSuffix(path, ".js")+".pinwheel.json",
		[]byte(`{"http": {"routes": ["shop.test/*"]}}`), 0o600))
	out := runsDev(t, path)
	out.shows(t, "is dev/w, version 1-")
	save(2)
	out.shows(t, "is dev/w, version 2-")
	cfg := config.Default()
	cfg.NatsURL = strings.TrimSuffix(strings.Fields(strings.SplitAfter(out.String(), "Pinwheel on ")[1])[0], ",")
	told := &screen{}
	require.Zero(t, MainWith(cfg, []string{"rollback", "dev/w"}, strings.NewReader(""), told, told), told)
	require.Contains(t, told.String(), "rolled back dev/w: 1-")
}

// What workers have stored by bindings is in the data directory: it is there when dev runs again.
func TestDevKeepsData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := devConfig(t)
	for name, text := range map[string]string{
		"w.js": `export default { async fetch(request, env) {
			const key = "https://cache.test/k";
			if (new URL(request.url).pathname === "/put") {
				await env.KV.put("k", "of KV", { metadata: 1 });
				await env.FILES.put("k", "of objects");
				await caches.default.put(key, new Response("of the cache", { headers: { "cache-control": "max-age=3600" } }));
				return new Response("stored");
			}
			const cached = await caches.default.match(key);
			return Response.json([await env.KV.get("k"), await (await env.FILES.get("k"))?.text() ?? null, await cached?.text() ?? null]);
		} }`,
		"w.pinwheel.json": `{"kv": {"KV": "space"}, "objects": {"FILES": "files"}}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	// once runs dev, and returns the answers to requests for the paths.
	once := func(paths ...string) (answers []string) {
		ctx, cancel := context.WithCancel(context.Background())
		out, done := &screen{}, make(chan error, 1)
		go func() { done <- runDev(ctx, cfg, zerolog.Nop(), out, []string{dir}, nil) }()
		defer func() {
			cancel()
			require.NoError(t, <-done)
		}()
		out.shows(t, "is dev/w, version 1-")
		nc, err := natstest.Dial(strings.TrimSuffix(strings.Fields(strings.SplitAfter(out.String(), "Pinwheel on ")[1])[0],
			","))
		require.NoError(t, err)
		defer nc.Close()
		for _, path := range paths {
			m := nats.NewMsg("pinwheel.call.fetch.dev.w")
			m.Header.Set(events.HeaderURL, "http://w.test"+path)
			var answer string
			require.Eventually(t, func() bool { // the worker may still be on its way to the dispatcher
				got, err := nc.RequestMsg(m, time.Minute)
				require.NoError(t, err)
				answer = string(got.Data)
				return !strings.Contains(answer, "no-worker")
			}, time.Minute, 5*time.Millisecond)
			answers = append(answers, answer)
		}
		return answers
	}
	require.Equal(t, []string{"[null,null,null]", "stored"}, once("/", "/put"))
	require.Equal(t, []string{`["of KV","of objects","of the cache"]`}, once("/"))
}

func TestDevOfDirectories(t *testing.T) {
	t.Parallel()
	const code = "// @ai none\nexport default { task() {} };\n"
	root := project(t, map[string]string{
		"shop/wrangler.toml": "name = 'store'\nmain = 'src/index.ts'\n", "shop/src/index.ts": code, "shop/src/util.ts": "",
		"loose/a.js": code, "loose/b.js": code,
	})
	out := runsDev(t, filepath.Join(root, "shop"), filepath.Join(root, "loose"))
	out.shows(t, filepath.Join(root, "shop")+" is dev/store, version 1-")
	out.shows(t, filepath.Join(root, "shop/src/index.ts")+":1:4: warning: @ai means nothing here: the words are @mode")
	out.shows(t, "is dev/a, version 1-")
	out.shows(t, "is dev/b, version 1-")
	require.NotContains(t, out.String(), "dev/util")

	save := func(path, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	save("shop/src/index.ts", "export default { task( };")
	out.shows(t, "index.ts:1:24: ")
	save("shop/src/index.ts", "export default { task() { return 2 } };")
	out.shows(t, "is dev/store, version 2-")
	save("shop/wrangler.toml", "name = 'a'\nmain = 'src/index.ts'\n")
	out.shows(t, filepath.Join(root, "loose/a.js")+" and "+filepath.Join(root, "shop")+" are both the worker a")
	save("shop/wrangler.toml", "name = 'market'\nmain = 'src/index.ts'\n")
	out.shows(t, "is dev/market, version 1-")
	out.shows(t, filepath.Join(root, "shop")+" has another name: dev/store runs no more")
}

func TestDevRefusesTwoOfOneName(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a/index.js": "", "b/index.js": "", "index/pinwheel.json": "{}",
		"index/index.ts": ""})
	for _, paths := range [][]string{{"a", "b"}, {"a/index.js", "b/index.js"}, {"a", "index"}} {
		one, other := filepath.Join(root, paths[0]), filepath.Join(root, paths[1])
		err := runDev(context.Background(), devConfig(t), zerolog.Nop(), &screen{}, []string{one, other}, nil)
		require.Equal(t, exitUsage, exitCode(err), paths)
		require.ErrorContains(t, err, one)
		require.ErrorContains(t, err, other)
		require.ErrorContains(t, err, "are both the worker index")
	}
}
