package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// alone is a Fleet for commands that must not find a fleet.
func alone(t *testing.T) *fleettest.Fleet {
	cfg := fleettest.Config(t)
	cfg.NatsURL = "nats://127.0.0.1:1" // no process listens on port 1
	return &fleettest.Fleet{Config: cfg}
}

// write writes a file to a directory of its own, and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestBadUsageExits2AndSaysWhatIsAllowed(t *testing.T) {
	t.Parallel()
	f := alone(t)
	js := write(t, "w.js", "export default {}")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"frobnicate"}, `unknown command "frobnicate" for "pinwheel"`},
		{[]string{"send"}, "accepts 2 arg(s), received 0"},
		{[]string{"send", "--frob"}, "unknown flag: --frob"},
		{[]string{"send", "fetsch", "a/b"}, `kind "fetsch": it is one of fetch, task, scheduled`},
		{[]string{"send", "fetch", "ab"}, `worker "ab": write it as OWNER/WORKER`},
		{[]string{"send", "fetch", "a/b.c"}, `worker "b.c": a name is 1 to 64 of A-Z a-z 0-9 _ -`},
		{[]string{"send", "fetch", "a/b", "--header", "x"}, `--header "x": write it as NAME=VALUE`},
		{[]string{"send", "fetch", "a/b", "--header", "http-url=/"}, "--header http-url: use --path"},
		{[]string{"send", "fetch", "a/b", "--header", "Http-Header-X=1"}, "--header Http-Header-X: use the name alone, X"},
		{[]string{"send", "task", "a/b", "--header", "Reply-To=x"}, "--header Reply-To: use --no-wait, or nothing"},
		{[]string{"send", "fetch", "a/b", "--data", "x", "--data-file", js}, "--data and --data-file: choose one"},
		{[]string{"send", "fetch", "a/b", "--data-file", "/no/such"}, "--data-file: open /no/such: no such file"},
		{[]string{"send", "task", "a/b", "--method", "GET"}, "--method is for fetch events, and this is a task"},
		{[]string{"send", "fetch", "a/b", "--cron", "* * * * *"}, "--cron is for scheduled events, and this is a fetch"},
		{[]string{"send", "scheduled", "a/b", "--time", "noon"}, `--time "noon": it is a time in RFC 3339`},
		{[]string{"send", "fetch", "a/b", "--timeout", "0s"}, "--timeout is 0s: it is longer than 0"},
		{[]string{"send", "fetch", "a/b", "--timeout", "x"}, `invalid argument "x" for "--timeout"`},
		{[]string{"send", "task", "a/b", "--content-type", "a", "--header", "content-type=b"},
			"--content-type and --header Content-Type: choose one"},
		{[]string{"deploy"}, "requires at least 1 arg(s)"},
		{[]string{"deploy", js}, "--owner is missing"},
		{[]string{"deploy", js, "--owner", "a b"}, `--owner "a b": a name is`},
		{[]string{"deploy", js, "--owner", "a", "--name", "x/y"}, `--name: worker "x/y": a name is`},
		{[]string{"deploy", js, "--owner", "a", "--var", "x"}, `--var "x": write it as NAME=VALUE`},
		{[]string{"deploy", js, "--owner", "a", "--queue", "A=b", "--queue", "A=c"}, "--queue A is given twice"},
		{[]string{"deploy", "/no/such.js", "--owner", "a"}, "/no/such.js: no such file"},
		{[]string{"deploy", "w.py", "--owner", "a"}, "w.py: a worker is a .js,"},
		{[]string{"deploy", "no-such-directory", "--owner", "a"}, "no-such-directory: no such file or directory"},
		{[]string{"deploy", js, "--owner", "a", "--install"}, "--install is for a directory: "},
		{[]string{"deploy", js, "--owner", "a", "--install", "--root", "."}, "--install does not go with --root"},
		{[]string{"schema"}, "schema needs a command: manifest"},
		{[]string{"workers"}, "workers needs a command: ls, show, reset, rm"},
		{[]string{"workers", "list"}, `workers has no command "list": it has ls, show, reset, rm`},
		{[]string{"workers", "ls", "--owner", "."}, `--owner ".": a name is`},
		{[]string{"workers", "show", "x"}, `worker "x": write it as OWNER/WORKER`},
		{[]string{"workers", "show", "a/b", "--code", "--json"}, "--code and --json: choose one"},
		{[]string{"dead", "show", "x"}, `dead letter "x": an id is a number`},
		{[]string{"dead", "show", "0"}, `dead letter "0": an id is a number`},
		{[]string{"dead", "ls", "--kind", "x"}, `--kind "x": it is one of fetch, task, scheduled, unknown`},
		{[]string{"dead", "ls", "--reason", "x"}, `--reason "x": it is one of exception, cpu,`},
		{[]string{"dead", "ls", "--owner", "*"}, `--owner "*": a name is`},
		{[]string{"dead", "ls", "--since", "yesterday"}, `--since "yesterday": it is a duration like 90m, or a time in RFC 3339`},
		{[]string{"dead", "ls", "--since", "-1h"}, `--since "-1h": it is a duration`},
		{[]string{"dead", "ls", "--limit", "-1"}, "--limit is -1: it is 0 or more"},
		{[]string{"dead", "replay"}, "which dead letters?"},
		{[]string{"dead", "rm", "--limit", "3"}, "which dead letters?"},
		{[]string{"dead", "rm", "3", "--owner", "a"}, "ids, or flags that choose: not both"},
		{[]string{"dead", "rm", "3", "--all"}, "ids, or flags that choose: not both"},
		{[]string{"dead", "rm", "--all", "--owner", "a"}, "--all, or flags that choose: not both"},
		{[]string{"dead", "replay", "--all", "--rate", "fast"}, `--rate "fast": it is a number a second, like 10/s`},
		{[]string{"dead", "replay", "--all", "--rate", "0/s"}, `--rate "0/s": it is a number a second`},
		{[]string{"dead", "ls", "--until", "soon"}, `--until "soon": it is a duration`},
		{[]string{"dead", "ls", "--match", "("}, `--match "(": error parsing regexp`},
		{[]string{"dead", "rm", "--all", "--text", "a"}, "--all, or flags that choose: not both"},
		{[]string{"dead", "ls", "--text", strings.Repeat("x", 1001)}, "--text has 1001 bytes: it has at most 1000"},
		{[]string{"dead", "ls", "--replays", "3-1"}, `--replays "3-1": it is N, N-M, N- or -M`},
		{[]string{"dead", "ls", "--replays", "-"}, `--replays "-": it is N`},
		{[]string{"dead", "replay", "1", "--to", "a/b"}, `--to worker "a/b": a name is`},
		{[]string{"dead", "replay", "1", "--to", "a@x"}, `--to "a@x": it is WORKER, WORKER@VERSION or @VERSION`},
		{[]string{"dead", "replay", "1", "--to", ""}, `--to "": it is WORKER`},
		{[]string{"dead", "replay", "1", "--max-replays", "0"}, "--max-replays is 0: it is 1 or more"},
		{[]string{"dead", "replay", "1", "--data", "x", "--patch", "{}"}, "--data, --data-file, --patch and --editor: choose one"},
		{[]string{"dead", "replay", "1", "--patch", "{"}, "the patch is not JSON"},
		{[]string{"dead", "edit", "1", "--set-header", "x"}, `--set-header "x": write it as NAME=VALUE`},
		{[]string{"dead", "edit", "1", "--set-header", "Nats-Rollup=all"}, "header Nats-Rollup: Nats-*, Dead-*, Status, Description and Event-Id cannot be edited"},
		{[]string{"dead", "import", "/no/such"}, "open /no/such: no such file"},
		{[]string{"dev"}, "requires at least 1 arg(s)"},
		{[]string{"serve", "x"}, `unknown command "x" for "pinwheel serve"`},
	} {
		r := f.Pinwheel(c.args...)
		require.Equal(t, 2, r.Code, "%q: %s", c.args, r.Err)
		require.Contains(t, r.Err, "pinwheel: "+c.want, "%q", c.args)
		require.Regexp(t, `pinwheel: see 'pinwheel.* --help'\n$`, r.Err)
		require.Empty(t, r.Out)
	}
}

func TestAWrongEnvironmentExits2(t *testing.T) {
	t.Parallel()
	f := alone(t)
	f.Config.Threads = 99
	r := f.Pinwheel("send", "fetch", "a/b")
	require.Equal(t, fleettest.Result{
		Code: 2, Err: "pinwheel: PINWHEEL_THREADS is \"99\": it is 0 to 64\npinwheel: see 'pinwheel help environment'\n",
	}, r)
	require.Zero(t, f.Pinwheel("version").Code, "what needs no configuration runs with a wrong one")
	require.Contains(t, f.Pinwheel("help", "environment").Out, "PINWHEEL_THREADS\n")
}

func TestHelpExits0(t *testing.T) {
	t.Parallel()
	f := alone(t)
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"help", "send"}, {"dead", "--help"},
		{"dead", "replay", "--help"}} {
		r := f.Pinwheel(args...)
		require.Zero(t, r.Code, r.Err)
		require.Contains(t, r.Out, "Examples:\n  pinwheel ", "%q", args)
	}
	r := f.Pinwheel("version")
	require.Zero(t, r.Code)
	require.Regexp(t, regexp.MustCompile(`^pinwheel .+ go1\.\d+`), r.Out)
}

func TestWithoutNATSCommandsSayHowToStartIt(t *testing.T) {
	t.Parallel()
	f := alone(t)
	js := write(t, "w.js", "export default { fetch() { return new Response() } }")
	for _, args := range [][]string{{"workers", "ls"}, {"send", "fetch", "a/b"}, {"dead", "ls"},
		{"deploy", js, "--owner", "a"}} {
		r := f.Pinwheel(args...)
		require.Equal(t, 1, r.Code)
		require.Equal(t, "pinwheel: no NATS answers at nats://127.0.0.1:1; start a fleet with 'pinwheel dev FILE' or 'pinwheel serve', "+
			"or say with PINWHEEL_NATS_URL where one is\n", r.Err)
	}
	f.Config.NatsURL = "nats://me:secret@127.0.0.1:1"
	require.NotContains(t, f.Pinwheel("workers", "ls").Err, "secret")
}

func TestWithoutPinwheelsStreamsCommandsSaySo(t *testing.T) {
	t.Parallel()
	f := alone(t)
	f.Config.NatsURL = natstest.Start(t).URL()
	r := f.Pinwheel("workers", "ls")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "has no stream PINWHEEL_EVENTS: no fleet has run there yet; 'pinwheel serve' creates it")
}

func TestNATSContexts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "nats", "context"), 0o700))
	srv := natstest.Start(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nats", "context", "there.json"), []byte(`{"url":"`+srv.URL()+`"}`),
		0o600))

	cfg := fleettest.Config(t)
	cfg.NatsContext = "there"
	f := &fleettest.Fleet{Config: cfg}
	r := f.Pinwheel("workers", "ls")
	require.Contains(t, r.Err, "no stream PINWHEEL_EVENTS", "it connects to where the context says")

	f.Config.NatsContext = "nowhere"
	r = f.Pinwheel("workers", "ls")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, `connect with NATS context "nowhere" (PINWHEEL_NATS_CONTEXT): unknown context "nowhere"`)
}

func TestMainReadsTheEnvironment(t *testing.T) {
	t.Setenv("PINWHEEL_NATS_URL", "localhost")
	var out, err writer
	require.Equal(t, 2, cli.Main([]string{"workers", "ls"}, nil, &out, &err))
	require.Contains(t, string(err), `PINWHEEL_NATS_URL is "localhost": it is URLs like`)
}

type writer []byte

func (w *writer) Write(b []byte) (int, error) {
	*w = append(*w, b...)
	return len(b), nil
}
