package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/cli"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// asPinwheel makes the test binary the pinwheel command, so that the pages need no build.
const asPinwheel = "DOCS_AS_PINWHEEL"

func TestMain(m *testing.M) {
	if os.Getenv(asPinwheel) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// block is a block of a page that is marked to be run: "sh runnable", with words behind it. background: it goes on, and what follows it waits until
// it can be done. needs NAME: another command, without which the block is not tested. stopped: the fleet is stopped before.
type block struct {
	words, script string
	line          int
}

var fenced = regexp.MustCompile("(?ms)^```sh runnable([^\n]*)\n(.*?)^```$")

func runnable(t *testing.T, page string) (list []block) {
	t.Helper()
	text := read(t, page)
	for _, m := range fenced.FindAllStringSubmatchIndex(text, -1) {
		list = append(list, block{words: text[m[2]:m[3]], script: text[m[4]:m[5]], line: 1 + strings.Count(text[:m[0]], "\n")})
	}
	return list
}

// site is where the blocks of pages run: a directory with the examples, and the commands that they name.
type site struct {
	dir string
	env []string
}

func openSite(t *testing.T, env ...string) *site {
	t.Helper()
	s := &site{dir: t.TempDir()}
	require.NoError(t, os.CopyFS(filepath.Join(s.dir, "examples"), os.DirFS("examples")))
	bin := filepath.Join(s.dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	golang, err := exec.LookPath("go")
	require.NoError(t, err)
	s.command(t, bin, "pinwheel", fmt.Sprintf("%s=1 exec %q \"$@\"", asPinwheel, os.Args[0]))
	s.command(t, bin, "go", fmt.Sprintf("if [ \"$1 $2\" = 'run .' ]; then shift 2; exec pinwheel \"$@\"; fi; exec %q \"$@\"", golang))
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PINWHEEL_") && !strings.HasPrefix(v, "PATH=") && !strings.HasPrefix(v, "NATS_") {
			s.env = append(s.env, v)
		}
	}
	s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+s.dir, "PINWHEEL_LOG_FORMAT=console", "PINWHEEL_PROCESSES=0", "PINWHEEL_ADMIN_ADDR=")
	s.env = append(s.env, env...)
	return s
}

func (s *site) command(t *testing.T, bin, name, script string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
}

func (s *site) bash(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, s.env, 5*time.Second
	return cmd
}

// begin starts a script that goes on, and returns what ends it and waits.
func (s *site) begin(t *testing.T, script string) (stop func()) {
	t.Helper()
	cmd := s.bash(context.Background(), "exec "+script) // a signal is then the command's
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("%s: %v\n%s", script, err, out.String())
		}
	}
	t.Cleanup(stop)
	return stop
}

// run runs a script; with retry until it succeeds.
func (s *site) run(t *testing.T, what, script string, retry bool) (out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		text, err := s.bash(ctx, script).CombinedOutput()
		if err == nil {
			return string(text)
		}
		if !retry || ctx.Err() != nil {
			require.NoError(t, err, "%s: %s", what, text)
		}
	}
}

// page runs the blocks of a page, one after the other. It returns what they printed.
func (s *site) page(t *testing.T, page string, stop func()) (out string) {
	t.Helper()
	blocks := runnable(t, page)
	require.NotEmpty(t, blocks, "%s has no block to run", page)
	begun := false
	for _, b := range blocks {
		what, words := fmt.Sprintf("%s:%d", page, b.line), strings.Fields(b.words)
		tested := true
		for i := 0; i < len(words) && tested; i++ {
			switch words[i] {
			case "background":
				s.begin(t, b.script)
				begun, tested = true, false
			case "stopped":
				stop()
			case "needs":
				i++
				if _, err := exec.LookPath(words[i]); err != nil {
					fmt.Fprintf(os.Stderr, "NOT TESTED: %s: there is no command %s\n", what, words[i])
					tested = false
				}
			default:
				t.Fatalf("%s: %q is no word behind runnable", what, words[i])
			}
		}
		if tested {
			out += s.run(t, what, b.script, begun)
		}
	}
	return out
}

// The blocks of the pages that are marked as runnable do what they say, against a real server and a fleet.
func TestPagesRun(t *testing.T) {
	t.Run("README.md", func(t *testing.T) {
		s := openSite(t, fmt.Sprint("PINWHEEL_NATS_PORT=", natstest.FreePort(t)), "PINWHEEL_DATA="+t.TempDir())
		require.Contains(t, s.page(t, "README.md", nil), `{"hello":"Ada"}`)
	})
	srv := natstest.Start(t)
	s := openSite(t, "PINWHEEL_NATS_URL="+srv.URL(), "NATS_URL="+srv.URL())
	stop := s.begin(t, "pinwheel serve")
	s.run(t, "the fleet", `(pinwheel doctor --json || true) | grep -q '"check":"processes","text":"1 take events"'`, true)
	before := map[string]string{
		"docs/schedules.md": `cp examples/hello.js mailer.js
cp examples/daily-report.js examples/daily-report.pinwheel.json .
pinwheel deploy mailer.js --owner acme
pinwheel deploy daily-report.js --owner acme`,
		"docs/wire.md": `pinwheel deploy examples/hello.js --owner dev
pinwheel deploy examples/csv-report.js --owner dev
printf 'item,amount\na,1\n' > sales.csv`,
		"docs/operations.md": "",
		"docs/types.md":      "",
		"docs/runbook.md":    "pinwheel send task acme/nobody --timeout 10s || test $? = 1",
	}
	done := 0
	for _, p := range append(pages(t), "docs/runbook.md") { // the last one stops the fleet
		setup, known := before[p]
		if blocks := runnable(t, p); len(blocks) > 0 {
			require.True(t, known, "%s has blocks to run, and TestPagesRun does not know what they need", p)
		}
		if !known || p == "docs/runbook.md" && done < len(before)-1 {
			continue
		}
		done++
		s.run(t, p, setup, false)
		s.page(t, p, stop)
	}
	require.Equal(t, len(before), done)
}

// Alerts name metrics that exist: those of docs/operations.md, which TestOperationsListsTheMetrics holds against the code.
func TestAlertsNameMetrics(t *testing.T) {
	known := map[string]bool{}
	for _, row := range rows(read(t, "docs/operations.md"), 3) {
		name := strings.Trim(row[0], "`")
		if !strings.HasPrefix(name, "pinwheel_") {
			continue
		}
		if known[name] = true; strings.HasSuffix(name, "_seconds") {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				known[name+suffix] = true
			}
		}
	}
	require.Greater(t, len(known), 50)
	text, runbook := read(t, "deploy/prometheus/alerts.yml"), read(t, "docs/runbook.md")
	for _, m := range regexp.MustCompile(`pinwheel_\w+`).FindAllString(text, -1) {
		require.True(t, known[m], "deploy/prometheus/alerts.yml names %s, which does not exist", m)
	}
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(text, -1)
	require.Len(t, regexp.MustCompile(`(?m)^        expr: \S`).FindAllString(text, -1), len(alerts))
	for _, a := range alerts {
		require.Contains(t, runbook, "`"+a[1]+"`", "docs/runbook.md does not say what to do")
	}
}

// systemd waits longer than a drain takes, and its files are not fewer than a busy process has.
func TestUnits(t *testing.T) {
	value := func(unit, name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(read(t, "deploy/systemd/"+unit+".service"))
		require.NotNil(t, m, "%s of %s", name, unit)
		return m[1]
	}
	drain := time.Duration(0)
	for _, v := range cli.Variables() {
		if v.Name == "PINWHEEL_DRAIN_TIMEOUT" {
			var err error
			drain, err = time.ParseDuration(v.Default)
			require.NoError(t, err)
		}
	}
	stop, err := time.ParseDuration(value("pinwheel", "TimeoutStopSec"))
	require.NoError(t, err)
	require.Greater(t, stop, drain+5*time.Second)
	require.Positive(t, drain)
	for _, unit := range []string{"pinwheel", "nats-server"} {
		require.Equal(t, "always", value(unit, "Restart"))
		require.Equal(t, "65536", value(unit, "LimitNOFILE"))
	}
}
