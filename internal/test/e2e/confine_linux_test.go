package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/test/breach"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/testcert"
)

const confineToken = "token-of-operators-0123456789"

// confined is a fleet of two processes that may have been broken into.
type confined struct {
	*supervisor
	h   *testFleet
	dir string
}

// openConfined runs `pinwheel serve`, as that user; 0 = as the user of the test.
func openConfined(t *testing.T, mode string, uid int) *confined {
	t.Helper()
	dir, err := os.MkdirTemp("", "pwc")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range []string{"secret", "remove"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("secret"), 0o644))
	}
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte(confineToken+"\n"), 0o644))
	srv := natstest.Start(t)
	targets := breach.Targets{Secret: filepath.Join(dir, "secret"), Dir: dir}
	env := []string{"PINWHEEL_PROCESSES=2", "PINWHEEL_ADMIN_ADDR=127.0.0.1:0", "PINWHEEL_ACK_WAIT=2s",
		"PINWHEEL_DRAIN_TIMEOUT=5s", "PINWHEEL_CONFINE=" + mode, "PINWHEEL_HTTP_ADDR=127.0.0.1:0",
		"PINWHEEL_HTTP_PATHS=acme", "PINWHEEL_CONTROL_TOKEN_FILE=" + token, "SOME_PASSWORD=hunter2",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=hunter3", targets.Environ()}
	c := &confined{dir: dir, h: &testFleet{t: t}}
	if uid == 0 {
		c.supervisor = &supervisor{t: t, Process: fleettest.Serve(t, srv.URL(), env...)}
	} else {
		program := filepath.Join(dir, "program")
		text, err := os.ReadFile(os.Args[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(program, text, 0o755))
		require.NoError(t, os.Chmod(dir, 0o755))
		require.NoError(t, os.Chown(dir, uid, uid))
		in := []string{"setpriv", fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", uid), "--clear-groups",
			"sh", "-c", "exec " + program + " serve"}
		c.supervisor = &supervisor{t: t,
			Process: fleettest.ServeIn(t, in, srv.URL(), append(env, "TMPDIR="+dir, "HOME="+dir)...)}
	}
	c.h.connect(srv.URL())
	return c
}

// command runs a pinwheel command of the fleet's operators.
func (c *confined) command(args ...string) (string, error) {
	cmd := fleettest.Command([]string{"PINWHEEL_NATS_URL=" + c.URL, "PINWHEEL_CONTROL_TOKEN=" + confineToken}, args...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// status is a line of /proc/PID/status.
func (c *confined) status(pid int, name string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "" // it has ended
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// checkProcesses returns the processes beside these that the supervisor has started: they check modules.
func (c *confined) checkProcesses(children ...int) (pids []int) {
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(c.t, err)
	for _, path := range all {
		var pid int
		_, _ = fmt.Sscanf(filepath.Base(path), "%d", &pid)
		if c.status(pid, "PPid") == fmt.Sprint(c.PID()) && !slices.Contains(children, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// works deploys a worker by the control endpoints, so that a process checks its module, and has it answer a request and
// events.
func (c *confined) works() {
	c.t.Helper()
	source := filepath.Join(c.t.TempDir(), "w.js")
	require.NoError(c.t, os.WriteFile(source, []byte(`console.log("loaded");
export default { fetch() { return new Response("hello") }, task(event) { return event.payload } }`), 0o600))
	out, err := c.command("deploy", source, "--owner", "acme")
	require.NoError(c.t, err, out)
	c.installed()
	require.Eventually(c.t, func() bool {
		r, err := http.Get("http://" + c.HTTP + "/w/")
		if err != nil {
			return false
		}
		defer func() { _ = r.Body.Close() }()
		return r.StatusCode == http.StatusOK
	}, patience, tick)
	c.answers()
}

// try has the first process of the fleet make all attempts.
func (c *confined) try() (report breach.Report) {
	c.t.Helper()
	require.NoError(c.t, syscall.Kill(c.pid(0), fleettest.BreachSignal))
	require.Eventually(c.t, func() bool {
		for _, line := range c.Lines() {
			text, _ := line["message"].(string)
			if report = breach.Read(text); report != nil {
				return true
			}
		}
		return false
	}, patience, tick)
	return report
}

// A fleet whose processes are confined does what it does otherwise, and what has broken out of V8 finds little.
func TestConfinedProcesses(t *testing.T) {
	t.Parallel()
	users := map[string]int{"same user": 0}
	if os.Getuid() == 0 {
		users["another user"] = 65534
	} else {
		t.Log("NOT TESTED: only root runs processes of another user")
	}
	for name, uid := range users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := openConfined(t, "require", uid)
			c.works()
			pids := []int{c.pid(0), c.pid(1)}
			for _, pid := range pids {
				require.Equal(t, "1", c.status(pid, "NoNewPrivs"))
				require.Equal(t, "2", c.status(pid, "Seccomp"))
				require.Regexp(t, "^0+$", c.status(pid, "CapEff"))
			}
			require.Equal(t, "0", c.status(c.PID(), "Seccomp"), "the supervisor is not confined")
			for _, part := range confine.Parts {
				require.EqualValues(t, 1, c.Metric("pinwheel_confined", "part", part), part)
			}
			c.checksAreConfined(pids)
			for attempt, said := range c.try() {
				require.Regexp(t, "not permitted|permission denied|function not implemented", said, attempt)
			}
			c.isReplaced()
			c.checkEnd()
		})
	}
}

// checksAreConfined deploys a module that does not end, and looks at the process that loads it.
func (c *confined) checksAreConfined(children []int) {
	c.t.Helper()
	source := filepath.Join(c.t.TempDir(), "endless.js")
	require.NoError(c.t, os.WriteFile(source, []byte("for (;;);\nexport default { task() {} }"), 0o600))
	done := make(chan string, 1)
	go func() {
		out, _ := c.command("deploy", source, "--owner", "acme")
		done <- out
	}()
	seen := false
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case out := <-done:
			require.Contains(c.t, out, "while the module was loaded")
			require.True(c.t, seen, "a process of the supervisor has loaded it")
			return
		case <-tick.C:
			for _, pid := range c.checkProcesses(children...) {
				seen = seen || c.status(pid, "Seccomp") == "2" && c.status(pid, "NoNewPrivs") == "1"
			}
		}
	}
}

// isReplaced kills a process, and waits for the next one, which is confined too.
func (c *confined) isReplaced() {
	c.t.Helper()
	old := c.pid(1)
	require.NoError(c.t, syscall.Kill(old, syscall.SIGKILL))
	require.Eventually(c.t, func() bool {
		all := c.stats()
		return all.Processes[1].PID != old && all.Processes[1].ProcessStats != nil &&
			all.Processes[1].Dispatch.Owners == 1
	}, patience, tick)
	require.Equal(c.t, "2", c.status(c.pid(1), "Seccomp"))
	c.answers()
}

// answers sends events, more than one process takes at once.
func (c *confined) answers() {
	c.t.Helper()
	var replies []<-chan *nats.Msg
	for range 100 {
		replies = append(replies, c.h.send(events.Fetch, "acme/w", ""))
	}
	for _, r := range replies {
		require.Equal(c.t, http.StatusOK, c.h.reply(r).Status)
	}
	c.h.settled()
}

// The environment of a process has no secret, and nothing that it has no use for.
func TestProcessesInheritNoSecrets(t *testing.T) {
	t.Parallel()
	c := openConfined(t, "off", 0) // else the environment could not be read
	c.works()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.pid(0)))
	require.NoError(t, err)
	require.Contains(t, string(text), "PINWHEEL_HTTP_PATHS=acme")
	for _, secret := range []string{confineToken, "hunter", "SOME_PASSWORD"} {
		require.NotContains(t, string(text), secret)
	}
}

// The attempts succeed where processes are not confined: what refuses them is the confinement.
func TestUnconfinedProcesses(t *testing.T) {
	t.Parallel()
	c := openConfined(t, "off", 0)
	c.works()
	require.Equal(t, "0", c.status(c.pid(0), "Seccomp"))
	require.Zero(t, c.Metric("pinwheel_confined"))
	report := c.try()
	for _, name := range []string{"read a file", "list a directory", "write a temporary file", "remove a file", "execute",
		"signal a parent", "signal by fcntl", "unix socket", "bind", "listen", "read a parent's environ",
		"write its own memory"} {
		require.Contains(t, report, name)
		require.Empty(t, report[name], name)
	}
	require.Contains(t, c.Log(), "processes are not confined (PINWHEEL_CONFINE=off)")
}

// What the system refuses ends a serve that requires it, and is said once by one that does not: in its log, by a metric
// and by doctor.
func TestRefusedConfinement(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	srv := natstest.Start(t)
	env := func(mode string) []string {
		return []string{withoutLandlock + "=1", "PINWHEEL_PROCESSES=1", "PINWHEEL_ADMIN_ADDR=127.0.0.1:0",
			"PINWHEEL_CONFINE=" + mode}
	}
	p := fleettest.LaunchIn(t, []string{self}, srv.URL(), env("require")...)
	require.Error(t, p.Wait())
	require.Contains(t, p.Log(), "PINWHEEL_CONFINE is require: this system refuses a part of the confinement of processes: "+
		"files: the kernel has no Landlock")

	s := &supervisor{t: t, Process: fleettest.ServeIn(t, []string{self}, srv.URL(), env("on")...)}
	require.Equal(t, 1, strings.Count(s.Log(), "processes are confined in part"))
	require.EqualValues(t, 0, s.Metric("pinwheel_confined", "part", confine.Files))
	require.EqualValues(t, 1, s.Metric("pinwheel_confined", "part", confine.SystemCalls))
	require.Len(t, s.stats().Unconfined, 1)
	out, err := fleettest.Command([]string{"PINWHEEL_NATS_URL=" + srv.URL()}, "doctor").CombinedOutput()
	require.Error(t, err, "a warning")
	require.Regexp(t, "confinement +process .* is not confined in all parts: files: the kernel has no Landlock", string(out))
	s.Signal(syscall.SIGTERM)
	require.NoError(t, s.Wait())
}

// Where the system refuses a part of the confinement of cells, a serve that requires it does not start when
// PINWHEEL_CELL wants cells. Another one says once what is missing: in its log, by a metric and by doctor.
func TestRefusedConfinementOfCells(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	srv := natstest.Start(t)
	env := func(processes, cell, mode string) []string {
		return []string{withoutLandlock + "=1", "PINWHEEL_PROCESSES=" + processes, "PINWHEEL_ADMIN_ADDR=127.0.0.1:0",
			"PINWHEEL_CELL=" + cell, "PINWHEEL_CELL_CONFINE=" + mode}
	}
	said := "PINWHEEL_CELL_CONFINE is require: this system refuses a part of the confinement of cells: files: "
	for _, processes := range []string{"0", "1"} {
		p := fleettest.LaunchIn(t, []string{self}, srv.URL(), env(processes, "own", "require")...)
		require.Error(t, p.Wait())
		require.Contains(t, p.Log(), said)
	}
	pinwheel := func(args ...string) string {
		out, _ := fleettest.Command([]string{"PINWHEEL_NATS_URL=" + srv.URL()}, args...).CombinedOutput()
		return string(out)
	}
	for _, c := range []struct {
		mode  string
		calls int // processes whose cells are confined in that part
		log   string

		doctor string
	}{
		{"on", 2, "cells are confined in part",
			`warn +cells +the cells of process .* are not confined in all parts: files: `},
		{"off", 0, "cells are not confined (PINWHEEL_CELL_CONFINE=off)",
			`warn +cells +the cells of process .* are not confined \(`},
	} {
		s := &supervisor{t: t, Process: fleettest.ServeIn(t, []string{self}, srv.URL(), env("2", "own", c.mode)...)}
		require.Equal(t, 1, strings.Count(s.Log(), c.log), c.mode)
		require.EqualValues(t, 0, s.Metric("pinwheel_cell_confined", "part", confine.Files), c.mode)
		require.EqualValues(t, c.calls, s.Metric("pinwheel_cell_confined", "part", confine.SystemCalls), c.mode)
		require.Regexp(t, c.doctor, pinwheel("doctor"), c.mode)
		s.Signal(syscall.SIGTERM)
		require.NoError(t, s.Wait())
	}
	// With policies only, the process serves others, and says what waits.
	s := &supervisor{t: t, Process: fleettest.ServeIn(t, []string{self}, srv.URL(), env("1", "shared", "require")...)}
	require.NotRegexp(t, ` cells `, pinwheel("doctor"))
	pinwheel("owners", "set", "acme", "--cell", "own")
	require.Eventually(t, func() bool {
		return strings.Contains(pinwheel("doctor"), "starts no cell, because its system refuses a part of the confinement:")
	}, patience, tick)
	require.Equal(t, 1, strings.Count(s.Log(), "no cell starts, because this system refuses a part of the confinement"))
	s.Signal(syscall.SIGTERM)
	require.NoError(t, s.Wait())
}

// A confined process reads files that others replace: a certificate in Kubernetes's way, by links, and the context for
// NATS.
func TestConfinedProcessesReadReplacedFiles(t *testing.T) {
	t.Parallel()
	dir, srv := t.TempDir(), natstest.Start(t)
	version := func(n int64) {
		at := fmt.Sprintf("..%d", n)
		require.NoError(t, os.Mkdir(filepath.Join(dir, at), 0o755))
		testcert.Write(t, filepath.Join(dir, at), "localhost", n)
		require.NoError(t, os.Symlink(at, filepath.Join(dir, "..next")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
	}
	version(1)
	for _, name := range []string{"cert.pem", "key.pem"} {
		require.NoError(t, os.Symlink("..data/"+name, filepath.Join(dir, name)))
	}
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "nats/context"), 0o755))
	context := []byte(`{"url":"` + srv.URL() + `"}`)
	require.NoError(t, os.WriteFile(filepath.Join(home, "nats/context/here.json"), context, 0o600))
	s := supervise(t, "PINWHEEL_PROCESSES=1", "PINWHEEL_CONFINE=require", "PINWHEEL_NATS_CONTEXT=here",
		"XDG_CONFIG_HOME="+home, "PINWHEEL_HTTP_ADDR=127.0.0.1:0", "PINWHEEL_HTTP_CERT="+filepath.Join(dir, "cert.pem"),
		"PINWHEEL_HTTP_KEY="+filepath.Join(dir, "key.pem"))
	serial := func() int64 {
		c, err := tls.Dial("tcp", s.HTTP, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return 0
		}
		defer func() { _ = c.Close() }()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, serial())
	version(2)
	require.Eventually(t, func() bool { return serial() == 2 }, patience, tick)
}
