package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/cell"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

// asPinwheel makes the test binary the pinwheel command, so that the pages need no build.
const asPinwheel = "_PINWHEEL_DOCS_AS"

func TestMain(m *testing.M) {
	cell.BeChild()
	modulecheck.BeChild()
	if os.Getenv(asPinwheel) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	parallel.AtOnce(parallel.Fleets)
	os.Exit(m.Run())
}

// block is a block of a page that is marked as runnable: "sh runnable", followed by words. background: the command
// keeps running, and the blocks after it are retried until they succeed. needs NAME: without the command NAME the block
// is not tested. stopped: the fleet is stopped before the block.
type block struct {
	words, script string
	line          int
}

var fenced = regexp.MustCompile("(?ms)^```sh runnable([^\n]*)\n(.*?)^```$")

func runnable(t *testing.T, page string) (list []block) {
	t.Helper()
	text := read(t, page)
	for _, m := range fenced.FindAllStringSubmatchIndex(text, -1) {
		list = append(list, block{words: text[m[2]:m[3]], script: text[m[4]:m[5]],
			line: 1 + strings.Count(text[:m[0]], "\n")})
	}
	return list
}

// site is the environment of the blocks: a directory with the examples, and the commands that the blocks use.
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
	s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+s.dir, "PINWHEEL_LOG_FORMAT=console",
		"PINWHEEL_PROCESSES=0", "PINWHEEL_ADMIN_ADDR=", "PINWHEEL_HTTP_ADDR=127.0.0.1:0")
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

// begin starts a script that keeps running. It returns a function that ends the script and waits for its end.
func (s *site) begin(t *testing.T, script string) (stop func()) {
	t.Helper()
	cmd := s.bash(context.Background(), "exec "+script) // so a signal reaches the command
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

// run runs a script. With retry it repeats the script until it succeeds.
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

// page runs the blocks of a page, one after the other. It returns their output.
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

// The runnable blocks of the pages work as described, against a real server and a fleet.
func TestPagesRun(t *testing.T) {
	t.Parallel()
	t.Run("README.md", func(t *testing.T) {
		t.Parallel()
		s := openSite(t, fmt.Sprint("PINWHEEL_NATS_PORT=", natstest.FreePort(t)), "PINWHEEL_DATA="+t.TempDir())
		require.Contains(t, s.page(t, "README.md", nil), `{"hello":"Ada"}`)
	})
	t.Run("docs/tutorial.md", func(t *testing.T) {
		t.Parallel()
		s := openSite(t, fmt.Sprint("PINWHEEL_NATS_PORT=", natstest.FreePort(t)), "PINWHEEL_DATA="+t.TempDir())
		out := s.page(t, "docs/tutorial.md", nil)
		for _, printed := range []string{`{"accepted":"o-1"}`, `{"success":true,"data":{"id":"o-2","cents":1250}}`, "exception", "12,50",
			"succeeded"} {
			require.Contains(t, out, printed)
		}
	})
	t.Run("pages of one fleet", func(t *testing.T) {
		t.Parallel()
		pagesOfOneFleet(t)
	})
}

func pagesOfOneFleet(t *testing.T) {
	t.Helper()
	srv := natstest.Start(t)
	s := openSite(t, "PINWHEEL_NATS_URL="+srv.URL(), "NATS_URL="+srv.URL())
	stop := s.begin(t, "pinwheel serve")
	s.run(t, "the fleet", `(pinwheel doctor --json || true) | grep -q '"check":"processes","text":"1 take events"'`, true)
	before := map[string]string{
		"docs/guides/schedule.md": `cp examples/hello.js mailer.js
cp examples/daily-report.js examples/daily-report.pinwheel.json .
pinwheel deploy mailer.js --owner acme
pinwheel deploy daily-report.js --owner acme`,
		"docs/reference/wire.md": `pinwheel deploy examples/hello.js --owner dev
pinwheel deploy examples/csv-report.js --owner dev
printf 'item,amount\na,1\n' > sales.csv`,
		"docs/guides/many-owners.md":  "",
		"docs/guides/troubleshoot.md": "",
		"docs/guides/types.md":        "",
		"docs/guides/operate.md":      "pinwheel send task acme/nobody --timeout 10s || test $? = 1",
	}
	done := 0
	for _, p := range append(pages(t), "docs/guides/operate.md") { // the last one stops the fleet
		setup, known := before[p]
		if blocks := runnable(t, p); len(blocks) > 0 && p != "docs/tutorial.md" {
			require.True(t, known, "%s has blocks to run, and TestPagesRun does not know what they need", p)
		}
		if !known || p == "docs/guides/operate.md" && done < len(before)-1 {
			continue
		}
		done++
		s.run(t, p, setup, false)
		s.page(t, p, stop)
	}
	require.Equal(t, len(before), done)
}

// The fleet reports its control endpoints.
func TestReferenceControl(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	const token = "0123456789abcdef"
	s := openSite(t, "PINWHEEL_NATS_URL="+srv.URL(), "PINWHEEL_CONTROL_TOKEN="+token)
	s.begin(t, "pinwheel serve")
	s.run(t, "the fleet", `(pinwheel doctor --json || true) | grep -q '"check":"processes","text":"1 take events"'`, true)
	referenceControl(t, natstest.Connect(t, srv), token)
}

// knownMetrics are the labels of each metric of docs/reference/metrics.md, which TestReferenceMetrics compares with the
// code.
func knownMetrics(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	for _, row := range rows(read(t, "docs/reference/metrics.md"), 3) {
		name := strings.Trim(row[0], "`")
		if !strings.HasPrefix(name, "pinwheel_") {
			continue
		}
		labels := append(strings.Split(row[1], ", "), "instance")
		if known[name] = labels; strings.HasSuffix(name, "_seconds") {
			known[name+"_count"], known[name+"_sum"], known[name+"_bucket"] = labels, labels, append(labels, "le")
		}
	}
	require.Greater(t, len(known), 50)
	return known
}

var (
	metricName = regexp.MustCompile(`(?:pinwheel|process)_\w+`)
	groupedBy  = regexp.MustCompile(`by \(([^)]*)\) \(.*?((?:pinwheel|process)_\w+)`)
)

// panel is a panel of a dashboard of Grafana.
type panel struct {
	Type, Title, Description string
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []struct{ Expr, LegendFormat string }
}

func dashboard(t *testing.T) (panels []panel) {
	t.Helper()
	var d struct{ Panels []panel }
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy/grafana/pinwheel.json")), &d))
	for _, p := range d.Panels {
		if p.Type != "row" {
			panels = append(panels, p)
		}
	}
	return panels
}

// The dashboard uses existing metrics and labels, and each panel says what it shows, in which unit.
func TestDashboardNamesMetrics(t *testing.T) {
	known := knownMetrics(t)
	for _, name := range []string{"process_cpu_seconds_total", "process_resident_memory_bytes"} { // of the client library
		known[name] = []string{"instance"}
	}
	panels := dashboard(t)
	require.Greater(t, len(panels), 20)
	for _, p := range panels {
		require.NotEmpty(t, p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, q := range p.Targets {
			for _, name := range metricName.FindAllString(q.Expr, -1) {
				require.Contains(t, known, name, p.Title)
			}
			for _, m := range groupedBy.FindAllStringSubmatch(q.Expr, -1) {
				for label := range strings.SplitSeq(m[1], ", ") {
					require.Contains(t, known[m[2]], label, "%s: labels of %s", p.Title, m[2])
				}
			}
		}
	}
}

// Prometheus takes the alerts, and the queries of the dashboard.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		fmt.Fprintln(os.Stderr, "NOT TESTED: deploy/prometheus/alerts.yml, deploy/grafana/pinwheel.json: there is no command promtool")
		return
	}
	rules := "groups:\n- name: dashboard\n  rules:\n"
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", "pinwheel")
	for i, p := range dashboard(t) {
		for j, q := range p.Targets {
			rules += fmt.Sprintf("  - record: pinwheel:panel_%d_%d\n    expr: %s\n", i, j, strconv.Quote(variables.Replace(q.Expr)))
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	require.NoError(t, os.WriteFile(file, []byte(rules), 0o600))
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "deploy/prometheus/alerts.yml", file).
		CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `SUCCESS: [1-9][0-9] rules found`, string(out))
}

// Alerts use existing metrics.
func TestAlertsNameMetrics(t *testing.T) {
	known := knownMetrics(t)
	text, page := read(t, "deploy/prometheus/alerts.yml"), read(t, "docs/guides/troubleshoot.md")
	for _, m := range regexp.MustCompile(`pinwheel_\w+`).FindAllString(text, -1) {
		require.Contains(t, known, m, "deploy/prometheus/alerts.yml names %s, which does not exist", m)
	}
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(text, -1)
	require.Len(t, regexp.MustCompile(`(?m)^        expr: \S`).FindAllString(text, -1), len(alerts))
	for _, a := range alerts {
		require.Contains(t, page, "`"+a[1]+"`", "docs/guides/troubleshoot.md does not say what to do")
	}
}

// systemd waits longer than the drain timeout, and its file limit is at least the number that a busy process needs.
func TestUnits(t *testing.T) {
	value := func(unit, name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(read(t, "deploy/systemd/"+unit+".service"))
		require.NotNil(t, m, "%s of %s", name, unit)
		return m[1]
	}
	drain := time.Duration(0)
	for _, v := range config.Variables() {
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
		require.Empty(t, value(unit, "CapabilityBoundingSet"))
		for _, name := range []string{"NoNewPrivileges", "PrivateDevices", "ProtectKernelModules", "ProtectKernelTunables",
			"LockPersonality"} {
			require.Equal(t, "true", value(unit, name), "%s of %s", name, unit)
		}
		require.Contains(t, value(unit, "SystemCallFilter"), "@system-service")
	}
	require.Contains(t, read(t, "deploy/systemd/pinwheel.service"),
		"\nSystemCallFilter=seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self\n")
	require.Contains(t, value("pinwheel", "IPAddressDeny"), "169.254.169.254", "credentials of the machine")
	require.Equal(t, "true", value("nats-server", "ProtectControlGroups"))
	require.Equal(t, "memory pids cpu", value("pinwheel", "Delegate"))
	require.Equal(t, "continue", value("pinwheel", "OOMPolicy"), "the end of a cell is not that of the unit")
	require.NotContains(t, read(t, "deploy/systemd/pinwheel.service"), "\nProtectControlGroups=", "cells have cgroups")
	require.Equal(t, "true", value("nats-server", "RestrictNamespaces"))
	require.NotContains(t, read(t, "deploy/systemd/pinwheel.service"), "\nRestrictNamespaces=", "cells have their own")
	require.NotContains(t, read(t, "deploy/systemd/pinwheel.service"), "\nMemoryDenyWriteExecute=",
		"V8 makes machine code")
	require.Equal(t, "78", value("pinwheel", "RestartPreventExitStatus"))
	// Followed literally, nobody reaches NATS from another machine, or without a password.
	require.Contains(t, value("nats-server", "ExecStart"), "/etc/nats/users.conf")
	require.Contains(t, read(t, "deploy/nats/nats.conf"), "\nlisten: \"127.0.0.1:4222\"")
	require.Contains(t, read(t, "deploy/nats/nats.conf"), "\nhttp: \"127.0.0.1:8222\"")
	require.Contains(t, read(t, "deploy/nats/users.conf"), `include "nats.conf"`)
}
