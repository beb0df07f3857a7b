//go:build vm && linux

package inside

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// payload is the disk that the machine was given.
const payload = "/mnt"

// Addresses of the fleet.
const (
	adminAddr = "127.0.0.1:8422"
	httpAddr  = "127.0.0.1:8080"
)

// patience is how long something may take that a machine without a processor of its own does.
const patience = 5 * time.Minute

// unitCgroup is that of the unit.
const unitCgroup = "/sys/fs/cgroup/system.slice/pinwheel.service"

// sh runs a command of this machine, and returns what it writes. bad says what to do when it fails.
func sh(t *testing.T, command string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience) // also when the test ends
	defer cancel()
	text, err := exec.CommandContext(ctx, "/bin/sh", "-c", command).CombinedOutput()
	return string(text), err
}

// must is sh, of a command that works.
func must(t *testing.T, command string) string {
	t.Helper()
	out, err := sh(t, command)
	require.NoError(t, err, "%s: %s", command, out)
	return out
}

// unit installs the shipped unit as deploy.md says, with this program and environment, and drop-in, and starts it.
func unit(t *testing.T, program, environment, dropIn string) {
	t.Helper()
	if _, err := sh(t, "id pinwheel"); err != nil {
		must(t, "echo pinwheel:x:10001: >>/etc/group; "+
			"echo pinwheel:x:10001:10001::/var/lib/pinwheel:/usr/sbin/nologin >>/etc/passwd; id pinwheel")
	}
	must(t, "systemctl stop pinwheel.service; systemctl reset-failed pinwheel.service; "+
		"rm -rf /var/lib/pinwheel /etc/systemd/system/pinwheel.service.d; true")
	must(t, "install -m 755 "+filepath.Join(payload, program)+" /usr/local/bin/pinwheel")
	must(t, "install -d -m 755 /etc/pinwheel /etc/systemd/system/pinwheel.service.d")
	must(t, "install -m 644 "+payload+"/pinwheel.service /etc/systemd/system/")
	base := "PINWHEEL_HTTP_ADDR=" + httpAddr + "\nPINWHEEL_HTTP_PATHS=acme\nPINWHEEL_PROCESSES=1\n"
	require.NoError(t, os.WriteFile("/etc/pinwheel/environment", []byte(base+environment), 0o600))
	require.NoError(t, os.WriteFile("/etc/systemd/system/pinwheel.service.d/test.conf", []byte(dropIn), 0o600))
	must(t, "systemctl daemon-reload && systemctl start --no-block pinwheel.service")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(must(t, "systemctl status pinwheel.service --no-pager; journalctl -u pinwheel --no-pager | tail -60"))
		}
	})
	await(t, "the unit is ready", func() bool {
		status, _ := get("http://" + adminAddr + "/readyz")
		return status == http.StatusOK
	})
	t.Logf("%s is %s", program, strings.TrimSpace(property(t, "ActiveState")))
}

// await waits for a fact, and says how long it took.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	said := began
	require.Eventually(t, func() bool {
		if time.Since(said) > 20*time.Second {
			said = time.Now()
			out, _ := sh(t, "systemctl list-jobs --no-pager; systemctl is-active pinwheel; journalctl -u pinwheel -n 8 --no-pager | cut -c1-400")
			t.Logf("waits until %s: %s", what, out)
		}
		return is()
	}, patience, 500*time.Millisecond, what)
	t.Logf("%s, after %s", what, time.Since(began).Round(time.Millisecond))
}

func get(url string) (status int, body string) {
	client := http.Client{Timeout: patience}
	r, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	text, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(text)
}

// property is one of the unit.
func property(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(must(t, "systemctl show pinwheel.service --value -p "+name))
}

// metric is the sum of the samples of the fleet that begin so.
func metric(t *testing.T, begins string) (sum float64) {
	t.Helper()
	_, text := get("http://" + adminAddr + "/metrics")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, begins); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndex(rest, " ")+1:]), 64)
			require.NoError(t, err, line)
			sum += value
		}
	}
	return sum
}

// deploy deploys a worker, and has it answer.
func deploy(t *testing.T, owner, name, source string, manifest ...string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, name+".js")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o644))
	for _, m := range manifest {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".pinwheel.json"), []byte(m), 0o644))
	}
	await(t, owner+"/"+name+" is deployed", func() bool {
		out, err := sh(t, "pinwheel deploy "+file+" --owner "+owner)
		if err != nil {
			t.Log(out)
		}
		return err == nil
	})
}

// child is a process that a supervisor has started.
type child struct {
	pid  int
	cell bool
}

// children are the processes that the supervisor with that ID has started. Cells have no arguments.
func children(t *testing.T, supervisor string) (list []child) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range all {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if status(pid, "PPid") != supervisor {
			continue
		}
		command, _ := os.ReadFile(dir + "/cmdline")
		list = append(list, child{pid, strings.Count(string(command), "\x00") == 1})
	}
	return list
}

// cells are those of them that are cells.
func cells(t *testing.T, supervisor string) (pids []int) {
	t.Helper()
	for _, c := range children(t, supervisor) {
		if c.cell {
			pids = append(pids, c.pid)
		}
	}
	return pids
}

// status is a line of /proc/PID/status.
func status(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := regexp.MustCompile(`(?m)^` + name + `:\s*(.*)$`).FindSubmatch(text)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// confined checks what the kernel says of a process, and says it.
func confined(t *testing.T, pid int, what, user string, namespaces ...string) {
	t.Helper()
	// CapBnd of a new user namespace is full: with no_new_privs nothing can be had from it.
	for name, want := range map[string]string{
		"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0000000000000000", "CapPrm": "0000000000000000",
		"CapInh": "0000000000000000", "CapAmb": "0000000000000000",
	} {
		require.Equal(t, want, status(pid, name), "%s %d: %s", what, pid, name)
	}
	require.Equal(t, strings.Repeat(user+"\t", 4), status(pid, "Uid")+"\t", "%s %d", what, pid)
	var own []string
	for _, name := range []string{"user", "pid", "net", "ipc", "mnt", "uts", "cgroup"} {
		ours, err := os.Readlink("/proc/self/ns/" + name)
		require.NoError(t, err)
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
		require.NoError(t, err)
		if ours != theirs {
			own = append(own, name)
		}
	}
	require.Subset(t, own, namespaces, "%s %d", what, pid)
	t.Logf("%s %d: user %s, NoNewPrivs 1, Seccomp 2 with %s filters, no capabilities, namespaces of its own: %s",
		what, pid, user, status(pid, "Seccomp_filters"), strings.Join(own, " "))
}

// file is the text of a file of a cgroup.
func file(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}
