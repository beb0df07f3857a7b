package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// TestVersionsAndDeployments goes through the life of a worker: a version, an upload, a share, everything, and back.
func TestVersionsAndDeployments(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "w.js")
	source := func(text string) {
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "export default { task: () => %q };\n", text), 0o600))
	}
	run := func(args ...string) string {
		t.Helper()
		r := f.Pinwheel(args...)
		require.Zero(t, r.Code, r.Err)
		return r.Out
	}
	source("one")
	run("deploy", path, "--owner", "acme", "--var", "A=1", "--tag", "c0ffee", "--message", "the first\x1b[31m")
	source("two")
	require.Regexp(t, `^would deploy acme/w version 2-\S+ \(task\); nothing is stored\n$`, run("deploy", path, "--owner", "acme", "--dry-run"))
	require.Regexp(t, `^uploaded acme/w version 2-\S+ \(task\); 'pinwheel promote acme/w 2' makes it active\n$`, run("deploy", path, "--owner", "acme", "--var", "A=2",
		"--upload-only"))
	require.Regexp(t, `^unchanged acme/w version 2-\S+ \(task\); it is stored already\n$`, run("deploy", path, "--owner", "acme", "--var", "A=2",
		"--upload-only"))
	require.Contains(t, run("send", "task", "acme/w"), "one")
	require.Contains(t, run("send", "task", "acme/w", "--version", "2"), "two", "a version that is not active runs what names it")

	require.Regexp(t, `^promoted acme/w: 1-\S+ 75 %, 2-\S+ 25 %, active in 1 of 1 process\n$`, run("promote", "acme/w", "2@25%"))
	require.Regexp(t, `(?m)^acme/w +1-\S+, 2-\S+ with 25 % +task`, run("workers", "ls"))
	for i := range 12 {
		key, want := fmt.Sprint("customer-", i), "one"
		if events.SplitPoint("acme", "w", key) < 2500 {
			want = "two"
		}
		require.Contains(t, run("send", "task", "acme/w", "--header", "Version-Key="+key), want, key)
	}
	require.Regexp(t, `^alias next set: acme/w: `, run("alias", "set", "acme/w", "next", "2"))
	require.Contains(t, run("send", "task", "acme/w", "--version", "next"), "two")
	require.Regexp(t, `^VERSION +SHARE +ALIASES +DEPLOYED +TAG +MESSAGE\n2-\S+ +25 % +next +\S+ \S+ *\n1-\S+ +75 % +\S+ \S+ +c0ffee +the first\S*31m\n$`, run("versions", "ls", "acme/w"))
	require.NotContains(t, run("versions", "ls", "acme/w"), "\x1b")
	require.Regexp(t, `^promoted acme/w: 2-\S+ 100 %, `, run("promote", "acme/w", "next", "--message", "all of it"))
	require.Regexp(t, `^unchanged acme/w: 2-\S+ 100 %, `, run("promote", "acme/w", "2"))
	require.Contains(t, run("send", "task", "acme/w"), "two")

	diff := run("versions", "diff", "acme/w", "1")
	require.Contains(t, diff, "-    \"A\": \"(not shown; that of 1-")
	require.Contains(t, diff, "+    \"A\": \"(not shown; that of 2-")
	require.Regexp(t, `(?m)^-.*"one".*\n\+.*"two"`, diff)
	require.Contains(t, run("versions", "show", "acme/w", "1", "--code"), `"one"`)

	require.Regexp(t, `^rolled back acme/w: 1-\S+ 100 %, `, run("rollback", "acme/w", "--message", "two was wrong"))
	require.Contains(t, run("send", "task", "acme/w"), "one")
	list := run("deployments", "ls", "acme/w")
	require.Regexp(t, `^NUMBER +VERSIONS +AT +BY +MESSAGE\n5 +1-\S+ 100 % .*two was wrong\n4 +2-\S+ 100 % .*all of it\n3 +1-\S+ 75 %, 2-\S+ 25 % .*\n2 .*\n1 +1-\S+ 100 % .*the first`, list)
	source("three")
	require.Regexp(t, `^deployed acme/w version 3-`, run("deploy", path, "--owner", "acme"), "no number is given twice")

	type told struct {
		Worker            string
		Changed           bool
		Active, Processes int
		Deployment        workers.Deployment
	}
	var last told
	source("four")
	for _, args := range [][]string{{"deploy", path, "--owner", "acme", "--percent", "12.5", "--json"},
		{"rollback", "acme/w", "--json"}, {"alias", "rm", "acme/w", "next", "--json"}} {
		last = told{}
		require.NoError(t, json.Unmarshal([]byte(run(args...)), &last), args)
		require.Equal(t, []any{"acme/w", true, 1, 1}, []any{last.Worker, last.Changed, last.Active, last.Processes}, args)
	}
	require.Empty(t, last.Deployment.Aliases)
	require.Len(t, strings.Split(strings.TrimSpace(run("versions", "ls", "acme/w", "--json")), "\n"), 4)
}

// What a version names must be there when it comes back. --force brings it back all the same.
func TestRollbackIsForced(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "w.js")
	deploy := func(code, manifest string) {
		require.NoError(t, os.WriteFile(path, []byte("export default { task() { return "+code+" } };\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "w.pinwheel.json"), []byte(manifest), 0o600))
		f.Deploy(t, path, "--owner", "acme")
	}
	refused := func(want string, args ...string) {
		t.Helper()
		r := f.Pinwheel(args...)
		require.Equal(t, []any{1, ""}, []any{r.Code, r.Out}, args)
		require.Regexp(t, `^pinwheel: acme/w: version 1-\w+ is not activated: `+want+`\n$`, r.Err)
	}
	require.Zero(t, f.Pinwheel("owners", "set", "acme", "--nats-publish", "orders.>").Code)
	deploy("1", "{}")
	f.Deploy(t, path, "--owner", "acme", "--name", "jobs")
	require.Zero(t, f.Pinwheel("workers", "rm", "acme/w").Code)
	deploy("1", `{"services": {"JOBS": "jobs"}, "nats": {"BUS": {"publish": ["orders.new"]}}}`)
	deploy("2", "{}")
	require.Zero(t, f.Pinwheel("workers", "rm", "acme/jobs").Code)
	refused("worker acme/jobs, which its env.JOBS needs, is gone", "rollback", "acme/w")
	require.Zero(t, f.Pinwheel("owners", "set", "acme", "--nats-publish", "").Code)
	refused(`nats.BUS.publish\[0\] is orders.new, which the owner is not granted: an operator grants it with 'pinwheel owners set OWNER --nats-publish orders.new'`, "promote", "acme/w", "1@10%")
	r := f.Pinwheel("rollback", "acme/w", "--force")
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `^rolled back acme/w: 1-\w+ 100 %, active in 1 of 1 process\n$`, r.Out)
	require.Contains(t, f.Pinwheel("send", "task", "acme/w").Out, "1")
	require.Zero(t, f.Pinwheel("promote", "acme/w", "2").Code)
	r = f.Pinwheel("promote", "acme/w", "1@10%", "--force")
	require.Zero(t, r.Code, r.Err)
}

func TestCommandsRefuseWrongShares(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(path, []byte("export default { task() {} };\n"), 0o600))
	for want, args := range map[string][]string{
		"--upload-only, --percent and --gradual: choose one":       {"deploy", path, "--owner", "acme", "--percent", "5%", "--gradual", "10%"},
		"--guard needs --gradual":                                  {"deploy", path, "--owner", "acme", "--guard", "failures<2%"},
		`"x" is no percentage, like 10%`:                           {"deploy", path, "--owner", "acme", "--percent", "x"},
		"percentage 101: it is above 0, at most 100":               {"deploy", path, "--owner", "acme", "--percent", "101"},
		`steps[1] has 5 %, and the one before has 10: shares rise`: {"deploy", path, "--owner", "acme", "--gradual", "10%,5%"},
		`steps[0] holds for 1ms: it is 1s to 168h0m0s`:             {"deploy", path, "--owner", "acme", "--gradual", "10%@1ms"},
		`"soon" is no duration, like 20s or 5m`:                    {"deploy", path, "--owner", "acme", "--gradual", "10%@soon"},
		`guard "errors<1": it looks like failures<2%`: {"deploy", path, "--owner", "acme", "--gradual", "10%", "--guard",
			"errors<1"},
		"--tag has 101 bytes: it is UTF-8 of at most 100":                           {"deploy", path, "--owner", "acme", "--tag", strings.Repeat("x", 101)},
		`worker "w": write it as OWNER/WORKER`:                                      {"promote", "w", "1"},
		`alias "7": it begins with a letter, has a-z 0-9 and single hyphens`:        {"alias", "set", "acme/w", "7", "1"},
		`percentage NaN: it is above 0, at most 100, with at most two digits after`: {"promote", "acme/w", "1@NaN"},
	} {
		r := f.Pinwheel(args...)
		require.Equal(t, 2, r.Code, want)
		require.Contains(t, r.Err, want)
	}
	r := f.Pinwheel("deploy", path, "--owner", "acme", "--percent", "10%")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "no version is active")
	require.Contains(t, f.Pinwheel("rollback", "acme/w").Err, "no such worker: acme/w; 'pinwheel workers ls' lists them")
}

// TestGuardedRolloutOfTheCommand follows rollouts to their ends: exit code 4 when the guard fails.
func TestGuardedRolloutOfTheCommand(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "w.js")
	source := func(code string) {
		require.NoError(t, os.WriteFile(path, []byte("export default { fetch() { "+code+" } };\n"), 0o600))
	}
	source(`return new Response("one")`)
	f.Deploy(t, path, "--owner", "acme")
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_, _ = f.NC.Request("pinwheel.call.fetch.acme.w", nil, patience) // the guard counts it
			}
		}
	}()
	source(`return new Response("not found", { status: 503 })`)
	r := f.Pinwheel("deploy", path, "--owner", "acme", "--gradual", "30%,60%@1s", "--guard", "failures<5%")
	require.Equal(t, 4, r.Code, r.Err)
	require.Regexp(t, `^deployed acme/w version 2-\S+ \(fetch\) with 30 % of the events, active in 1 of 1 process
acme/w: 1-\S+ has everything again: \d+ of \d+ runs failed \(100.0 %\); the guard wants less than 5 %\n$`, r.Out)
	source(`return new Response("three")`)
	r = f.Pinwheel("deploy", path, "--owner", "acme", "--gradual", "30%,60%@1s", "--guard", "failures<5%")
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `^deployed acme/w version 3-\S+ \(fetch\) with 30 % of the events, active in 1 of 1 process
acme/w: 3-\S+ has 60 %\nacme/w: 3-\S+ has everything\n$`, r.Out)
	close(stop)
	<-ended
	require.Equal(t, "three", f.Pinwheel("send", "fetch", "acme/w").Out)
	require.Regexp(t, `\[went back: \d+ of \d+ runs failed`, f.Pinwheel("deployments", "ls", "acme/w").Out)
}
