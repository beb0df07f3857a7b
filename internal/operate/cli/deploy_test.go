package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func TestDeployRefusesWithThePlaceInTheAuthorsFile(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	dir := t.TempDir()
	for _, c := range []struct {
		name, text string
		want       string // after the path of the directory
	}{
		{"syntax.js", "export default {\n  fetch( {\n};\n", "/syntax.js:3:2: "},
		{"types.ts", "type A = string;\n\nexport const a: A = 'x';\n", "/types.ts:1:1: acme/types is refused: no handler"},
		{"throws.ts", "interface X { a: string }\n\nconst x: X | null = null;\nconsole.log(x!.a);\nexport default { fetch() {} };\n", "/throws.ts:4:16: acme/throws is refused: TypeError: Cannot read properties of null (reading 'a')\n    at throws.ts:4:16\n"},
		{"missing.js", "import './nothing.js';\n", "/missing.js:1:8: "},
		{"hostile.js", "import './\\x1b[2Jnothing.js';\n", "/hostile.js:1:8: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.name)
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			r := f.Pinwheel("deploy", path, "--owner", "acme")
			require.Equal(t, 1, r.Code)
			require.Empty(t, r.Out)
			require.True(t, strings.HasPrefix(r.Err, dir+c.want), r.Err)
			requirePrintable(t, r.Err)
		})
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ok.pinwheel.json"), []byte(`{"limits":{"cpuMs":-1}}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ok.js"), []byte("export default { fetch() {} }"), 0o600))
	r := f.Pinwheel("deploy", filepath.Join(dir, "ok.js"), "--owner", "acme")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, filepath.Join(dir, "ok.pinwheel.json")+":1:")
	require.Equal(t, "WORKER  VERSION  HANDLERS  DEPLOYED\n", f.Pinwheel("workers", "ls").Out, "nothing was stored")
}

// In GitHub Actions each mistake with a place is also an annotation of that place, from the root of the repository.
// requirePrintable requires that text does not steer a terminal.
func requirePrintable(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		require.False(t, unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r), "%q", text)
	}
}

// What an author writes in the code, its name and its manifest does not steer the terminal of who deploys it, or reads
// about it.
func TestAuthorsDoNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	const steers = `\x1b]0;own\x07\u009b2J\u202e`
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	hostile := write("w.js", "// \x1b[31mred\nconsole.log('"+steers+"'); export default { fetch: () => new Response('"+steers+
		"', {headers: {x: 'é\u0080'}}), scheduled() {}, task() { throw new Error('"+steers+"') } };\n")
	thrown := write("x.js", "throw new Error('"+steers+"')\n")
	write("w.pinwheel.json", `{"vars": {"A": "\u001b[2J"}, "schedules": [{"name": "s", "cron": "0 3 * * *"}]}`)
	write("bad.pinwheel.json", `{"limits": {"\u001b[2J": 1}}`)
	bad := write("bad.js", "export default { fetch() {} };\n")
	for _, args := range [][]string{
		{"deploy", thrown, "--owner", "acme"},
		{"deploy", bad, "--owner", "acme"},
		{"deploy", "\x1b[2J.js", "--owner", "acme"},
		{"deploy", hostile, "--owner", "acme", "--tag", "t", "--message", "m\u009b31m"},
		{"workers", "ls"}, {"workers", "show", "acme/w"}, {"versions", "ls", "acme/w"}, {"deployments", "ls", "acme/w"},
		{"versions", "ls", "acme/w", "--json"}, {"schedules", "ls"}, {"schedules", "ls", "--json"},
		{"send", "task", "acme/w", "--header", "Event-Id=e\u009b1"},
		{"send", "fetch", "acme/w", "--path", "/\u009b1", "--method", "\u009b"},
		{"audit", "ls"}, {"audit", "ls", "--json"}, {"dead", "ls"}, {"dead", "show", "1"}, {"dead", "show", "1", "--json"},
		{"kv", "get", "acme/\x1b[2J", "k"}, {"\x1b[2J"}, {"workers", "show", "\x1b[2J"}, {"doctor"},
		{"owners", "show", "acme"},
	} {
		r := f.Pinwheel(args...)
		requirePrintable(t, r.Err)
		if args[0] == "deploy" && args[1] == hostile {
			require.Zero(t, r.Code, r.Err)
		}
		if args[0] != "send" { // a body is data
			requirePrintable(t, r.Out)
		}
	}
	r := f.Pinwheel("send", "fetch", "acme/w")
	require.Equal(t, "\x1b]0;own\x07\u009b2J\u202e", r.Out, "a file gets the data as it is")
}

// Only these files write to what is not made printable: they draw, open loggers, or start a program of the user's.
func TestRawOutputIsListed(t *testing.T) {
	t.Parallel()
	listed := []string{"console.go", "dead_action.go", "dev.go", "serve.go", "terminal/colors.go", "terminal/input.go",
		"terminal/list.go", "terminal/progress.go", "terminal/screen.go", "terminal/terminal.go"}
	var found []string
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	below, err := filepath.Glob("terminal/*.go")
	require.NoError(t, err)
	for _, path := range append(files, below...) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		require.NotRegexp(t, `os\.Std(out|err)`, string(text), path)
		if strings.Contains(string(text), "Raw.") {
			found = append(found, path)
		}
	}
	require.Equal(t, listed, found)
}

func TestDeployAnnotatesMistakesInActions(t *testing.T) {
	f := fleettest.Start(t)
	dir := filepath.Join(t.TempDir(), "a, b")
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_WORKSPACE", filepath.Dir(dir))
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	// annotations of a deploy that is refused.
	annotations := func(path string) (list []string) {
		t.Helper()
		r := f.Pinwheel("deploy", path, "--owner", "acme")
		require.Equal(t, 1, r.Code, r.Err)
		require.NotRegexp(t, `^::`, r.Err, "what is for people comes first")
		for line := range strings.Lines(r.Err) {
			if strings.HasPrefix(line, "::") {
				list = append(list, strings.TrimSuffix(line, "\n"))
			}
		}
		return list
	}
	two := annotations(put("two.js", "import './no%0A.js';\nimport './nothing.js';\nexport default {};\n"))
	require.Len(t, two, 2)
	require.Contains(t, two[0], `::error file=a%2C b/two.js,line=1,col=8::Could not resolve "./no%250A.js"`)
	require.Contains(t, two[1], `::error file=a%2C b/two.js,line=2,col=8::Could not resolve "./nothing.js"`)

	throws := put("throws.ts", "interface X { a: string }\n\nconst x: X | null = null;\nconsole.log(x!.a);\nexport default { fetch() {} };\n")
	require.Equal(t, []string{"::error file=a%2C b/throws.ts,line=4,col=16::acme/throws is refused: TypeError: Cannot read properties of null (reading 'a')"}, annotations(throws))
	put("lib/deep.ts", "export const n = ((): number => {\n  throw new Error('50%\\n2');\n})();\n")
	require.Equal(t, []string{"::error file=a%2C b/lib/deep.ts,line=2,col=9::acme/imports is refused: Error: 50%25%0A2"},
		annotations(put("imports.ts", "import { n } from './lib/deep';\nexport default { task: () => n };\n")))
	require.Equal(t, []string{"::error file=a%2C b/none.ts,line=2,col=1::acme/none is refused: no handler: the module exports no default object or class with fetch, task, queue or scheduled, and adds no event listener"},
		annotations(put("none.ts", "\nexport default {};\n")))

	put("ok.pinwheel.json", "{\n  \"limits\": {\"cpuMs\": -1},\n  \"queues\": {\"Q\": \"a b\"}\n}")
	manifest := annotations(put("ok.js", "export default { fetch() {} }"))
	require.Len(t, manifest, 1)
	require.Regexp(t, `^::error file=a%2C b/ok.pinwheel.json,line=2,col=\d+::limits.cpuMs is -1`, manifest[0])
	large := put("large.js", "")
	require.NoError(t, os.Truncate(large, 100<<20))
	require.Equal(t, []string{"::error file=a%2C b/large.js::the source cannot be read: it has 104857600 bytes: at most 33554432 are read"}, annotations(large))
	// What the owner may not have is told at its place in the manifest too.
	put("bus.pinwheel.json", "{\n  \"nats\": {\"BUS\": {\"publish\": [\"orders\"]}}\n}")
	manifest = annotations(put("bus.js", "export default { fetch() {} }"))
	require.Len(t, manifest, 1)
	require.Regexp(t, `^::error file=a%2C b/bus.pinwheel.json,line=2,col=\d+::nats.BUS.publish\[0\] is orders, which the owner is not granted`, manifest[0])

	t.Setenv("GITHUB_WORKSPACE", filepath.Join(dir, "lib"))
	require.Regexp(t, `^::error file=`+strings.ReplaceAll(throws, ",", "%2C")+`,line=4,`, annotations(throws)[0],
		"it is not in the repository")
	t.Setenv("GITHUB_ACTIONS", "")
	require.Empty(t, annotations(throws))
}

func TestDeployWarnsOfHandlersThatNothingCalls(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { task() {}, email() {} }`), 0o600))
	r := f.Pinwheel("deploy", path, "--owner", "acme")
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Err, "warn: acme/w: nothing calls email(), which the default export has: ")
	require.Contains(t, r.Out, "(task)")
}

func TestDeployOfAQueueHandler(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "w.js")
	deploy := func(code string) fleettest.Result {
		require.NoError(t, os.WriteFile(path, []byte("// a worker\n\nexport default {"+code+"};\n"), 0o600))
		return f.Pinwheel("deploy", path, "--owner", "acme")
	}
	r := deploy("queue() {}, task() {}")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, path+":3:1: acme/w is refused: the module has a queue handler and a task handler: both take its tasks, so keep one of them")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "w.pinwheel.json"),
		[]byte(`{"batch": {"maxSize": 50}}`), 0o600))
	require.Contains(t, deploy("task() {}").Err, path+":3:1: acme/w is refused: the manifest has a batch, and the module has no queue handler")
	r = deploy("queue() {}")
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Out, "(task)")
	require.Regexp(t, `batches +up to 50 events, which gather for up to 5s`, f.Pinwheel("workers", "show", "acme/w").Out)
	require.Contains(t, f.Pinwheel("workers", "show", "acme/w", "--json").Out, `"batch":{"maxSize":50,"maxWaitMs":5000}`)
}

// While a module is checked, it can reach the addresses that workers of the fleet can reach. The fleet's processes
// report these addresses, and this command's own setting is ignored.
func TestDeployChecksWithTheFleetsAddresses(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte("config"))
	}))
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t,
		os.WriteFile(path, []byte(`const config = await (await fetch("`+s.URL+`")).text(); export default { task: () => config }`),
			0o600))
	f := fleettest.Start(t)
	f.Config.AllowPrivateAddresses = config.List{"127.0.0.1"}
	r := f.Pinwheel("deploy", path, "--owner", "acme")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "the fleet's PINWHEEL_ALLOW_PRIVATE_ADDRESSES can allow it")
	f = fleettest.Start(t, func(c *config.Config) { c.AllowPrivateAddresses = config.List{"127.0.0.1"} })
	f.Config.AllowPrivateAddresses = nil
	r = f.Pinwheel("deploy", path, "--owner", "acme")
	require.Zero(t, r.Code, r.Err)
}

func TestDeployAndWorkers(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "greet.ts")
	source := func(text string) {
		require.NoError(t, os.WriteFile(path, []byte("console.log('loading');\nexport default { fetch(r: Request, env: any) { return new Response("+text+" + env.WHO) } }\n"),
			0o600))
	}
	source("'hi '")
	args := []string{path, "--owner", "acme", "--var", "WHO=you=me", "--queue", "JOBS=other"}
	first := f.Pinwheel(append([]string{"deploy"}, args...)...)
	require.Regexp(t, `^deployed acme/greet version 1-[0-9a-f]{12} \(fetch\), active in 1 of 1 process\n$`, first.Out, first.Err)
	require.Equal(t, "info: acme/greet: loading\n", first.Err, "the author sees what the module prints")
	require.Equal(t, strings.Replace(first.Out, "deployed", "unchanged", 1), f.Deploy(t, args...))
	require.Equal(t, "hi you=me", f.Pinwheel("send", "fetch", "acme/greet").Out)
	source("'hello '")
	require.Regexp(t, `^deployed acme/greet version 2-`, f.Deploy(t, args...))
	require.Equal(t, "hello you=me", f.Pinwheel("send", "fetch", "acme/greet").Out)
	require.Regexp(t, `^deployed other/again version 1-`, f.Deploy(t, path, "--owner", "other", "--name", "again"))

	r := f.Pinwheel("workers", "ls")
	require.Regexp(t, `^WORKER +VERSION +HANDLERS +DEPLOYED\nacme/greet +2-\S+ +fetch +\S+ \S+\nother/again +1-\S+ +fetch +\S+ \S+\n$`, r.Out)
	require.NotContains(t, f.Pinwheel("workers", "ls", "--owner", "other").Out, "acme")

	r = f.Pinwheel("workers", "show", "acme/greet")
	require.Zero(t, r.Code, r.Err)
	for _, want := range []string{
		`worker +acme/greet\n`, `version +2-`, `handlers +fetch\n`, `file +greet.js, \d+ bytes bundled\n`, `mode +pinned\n`,
		`vars +WHO\n`,
		`queue +JOBS to acme/other\n`, `limits +cpu 500ms, wall 30s, heap 128 MB`, `retries +5 attempts`,
		`kept +2-\S+ of .*, active\n`, `kept +1-`,
	} {
		require.Regexp(t, want, r.Out)
	}
	require.NotContains(t, r.Out, "you=me", "values may be secrets")
	require.Contains(t, f.Pinwheel("workers", "show", "acme/greet", "--code").Out, `"hello "`)
	require.Contains(t, f.Pinwheel("workers", "show", "acme/greet", "--code", "--version", strings.Fields(first.Out)[3]).
		Out, `"hi "`)
	var shown struct {
		Owner, Name, Version string
		Vars                 []string
		Versions             []struct{ Version string }
	}
	require.NoError(t, json.Unmarshal([]byte(f.Pinwheel("workers", "show", "acme/greet", "--json").Out), &shown))
	require.Equal(t, "acme greet WHO", shown.Owner+" "+shown.Name+" "+strings.Join(shown.Vars, ","))
	require.Len(t, shown.Versions, 2)
	require.Len(t, strings.Split(strings.TrimSpace(f.Pinwheel("workers", "ls", "--json").Out), "\n"), 2)

	require.Equal(t, "removed acme/greet; no events wait for it\n", f.Pinwheel("workers", "rm", "acme/greet").Out)
	for _, args := range [][]string{{"rm"}, {"show"}} {
		r = f.Pinwheel("workers", args[0], "acme/greet")
		require.Equal(t, 1, r.Code)
		require.Equal(t, "pinwheel: no such worker: acme/greet; 'pinwheel workers ls' lists them\n", r.Err)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(f.Pinwheel("send", "fetch", "acme/greet").Err, "HTTP 404")
	}, patience, tick)
}

func TestDeployWithoutAProcessStoresAndSaysSo(t *testing.T) {
	t.Parallel()
	f := alone(t)
	srv := natstest.Start(t)
	f.Config.NatsURL = srv.URL()
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	assets := consumer.DefaultConfig()
	assets.Node = "test"
	require.NoError(t, consumer.CreateAssets(t.Context(), js, assets, 1<<20))
	r := f.Pinwheel("deploy", write(t, "w.js", "export default { scheduled() {} }"), "--owner", "acme")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, "pinwheel: acme/w is stored, but no process of the fleet is running; the next one that starts will take it up\n", r.Err)
	require.Regexp(t, `^deployed acme/w version 1-[0-9a-f]{12} \(scheduled\), active in 0 of 0 processes\n$`, r.Out)
}

func TestDeployOfADirectory(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	dir := filepath.Join(t.TempDir(), "shop")
	put := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	put("src/index.ts", "// @ai none\nexport default { fetch(r: Request, env: any) { return new Response('hi ' + env.WHO) } } satisfies object;\n")
	put("wrangler.jsonc", `{"name": "greeter", "main": "src/index.ts", "vars": {"WHO": "you"}, "compatibility_date": "2026-07-01",}`)
	r := f.Pinwheel("deploy", dir, "--owner", "acme")
	require.Regexp(t, `^deployed acme/greeter version 1-[0-9a-f]{12} \(fetch\), active in 1 of 1 process\n$`, r.Out, r.Err)
	require.Contains(t, r.Err, dir+"/src/index.ts:1:4: warning: @ai means nothing here")
	require.Contains(t, r.Err, dir+"/wrangler.jsonc: note: these keys make no difference here: compatibility_date\n")
	require.Equal(t, "hi you", f.Pinwheel("send", "fetch", "acme/greeter").Out)
	require.Regexp(t, `^deployed acme/other version 1-`, f.Deploy(t, dir, "--owner", "acme", "--name", "other"))

	put("src/index.ts", "throw new Error('no');\n")
	r = f.Pinwheel("deploy", dir, "--owner", "acme")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "\n"+dir+"/src/index.ts:1:7: acme/greeter is refused: Error: no")

	put("wrangler.jsonc", "{\n  \"d1_databases\": [{\"binding\": \"DB\"}]\n}")
	r = f.Pinwheel("deploy", dir, "--owner", "acme")
	require.Equal(t, 1, r.Code)
	require.True(t, strings.HasPrefix(r.Err, dir+`/wrangler.jsonc:2:3: key "d1_databases": there is no SQL database`), r.Err)

	require.NoError(t, os.Remove(filepath.Join(dir, "wrangler.jsonc")))
	put("src/index.ts", "export default { task() {} }")
	named := filepath.Join(filepath.Dir(dir), "not a name")
	require.NoError(t, os.Rename(dir, named))
	r = f.Pinwheel("deploy", named, "--owner", "acme")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "give it a name in the manifest, or with --name")
}
