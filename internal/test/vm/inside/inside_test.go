//go:build vm && linux

package inside

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/breach"
)

const worker = `export default {
  fetch() { return new Response("hello") },
  task(event) { return event.payload.n + 1 },
}`

// heapMax and memoryMax are PINWHEEL_HEAP_MAX of these fleets, and what a cell may use then.
const (
	heapMax   = "PINWHEEL_HEAP_MAX=256MiB\n"
	memoryMax = 256<<20 + 3<<29
)

// works has a worker of acme answer a request and a stored event, in a cell.
func works(t *testing.T) (supervisor string, cell int) {
	t.Helper()
	deploy(t, "acme", "w", worker)
	await(t, "a request is answered", func() bool {
		status, body := get("http://" + httpAddr + "/w/")
		if status != 200 {
			t.Log(status, body)
		}
		return status == 200 && body == "hello"
	})
	require.Contains(t, must(t, `pinwheel send task acme/w --timeout 4m --data '{"n":41}'`), "42")
	supervisor = property(t, "MainPID")
	require.NotEmpty(t, cells(t, supervisor))
	return supervisor, cells(t, supervisor)[0]
}

// The shipped unit: its processes and cells are confined in all parts, and each cell has a cgroup with limits.
func TestUnit(t *testing.T) {
	unit(t, "pinwheel", "PINWHEEL_CELL=own\nPINWHEEL_CONFINE=require\nPINWHEEL_CELL_CONFINE=require\n"+heapMax, "")
	supervisor, _ := works(t)
	require.Equal(t, "0::/system.slice/pinwheel.service/fleet", file(t, "/proc", supervisor, "cgroup"))
	for _, c := range children(t, supervisor) {
		cgroup := strings.TrimPrefix(file(t, "/proc", strconv.Itoa(c.pid), "cgroup"), "0::/system.slice/pinwheel.service/")
		if !c.cell {
			confined(t, c.pid, "process of the fleet", "10001")
			require.Equal(t, "fleet", cgroup)
			continue
		}
		confined(t, c.pid, "cell", "10001", "user", "pid", "net", "ipc", "mnt", "uts", "cgroup")
		require.Regexp(t, `^cells/\d+$`, cgroup)
		for name, want := range map[string]string{
			"memory.max": strconv.Itoa(memoryMax), "memory.oom.group": "1", "pids.max": "512",
		} {
			require.Equal(t, want, file(t, unitCgroup, cgroup, name))
		}
		t.Logf("cell %d is in the cgroup %s: memory.max %d, memory.current %s, pids.max 512, pids.current %s", c.pid, cgroup,
			memoryMax, file(t, unitCgroup, cgroup, "memory.current"), file(t, unitCgroup, cgroup, "pids.current"))
	}
	require.Contains(t, file(t, unitCgroup, "cells", "cgroup.subtree_control"), "cpu")
	for _, part := range []string{"capabilities", "namespaces", "files", "users", "system-calls", "limits", "cgroups"} {
		require.EqualValues(t, 1, metric(t, `pinwheel_cell_confined{part="`+part), part)
	}
	require.EqualValues(t, 3, metric(t, `pinwheel_confined{part=`), "capabilities, files, system-calls")
	out, _ := sh(t, "pinwheel doctor")
	require.Regexp(t, `ok +cells +\d+ run, and are confined in all parts, with cgroups of their own`, out)
	t.Log(out)
}

// What a cell uses up that no account of V8 has ends this cell, and nothing else: the same cell of another owner goes
// on, the class gets another, and the unit goes on. It is said.
func TestMemory(t *testing.T) {
	unit(t, "pinwheel-breach", "PINWHEEL_CELL=own\nPINWHEEL_CELL_CONFINE=require\n"+heapMax, "")
	aims := breach.Aims{Mebibytes: 2000}
	table := breach.Attempts(aims, breach.Loot{})
	var take []breach.Attempt
	for _, a := range table {
		if a.Name == "take memory" {
			take = append(take, a)
		}
	}
	require.Len(t, take, 1)
	deploy(t, "acme", "guest", breach.Worker(take), `{"limits": {"cpuMs": 120000, "wallMs": "10m"}}`)
	deploy(t, "beta", "w", worker)
	beta := func() string { return must(t, `pinwheel send task beta/w --timeout 4m --data '{"n":41}'`) }
	require.Contains(t, beta(), "42")
	supervisor := property(t, "MainPID")
	before := cells(t, supervisor)
	require.Len(t, before, 1, "beta's")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tried := breach.Try(ctx, "http://"+httpAddr+"/guest/", aims, take)
	t.Logf("the guest: %+v", tried)
	require.Error(t, tried[0].Err)
	await(t, "the end of the cell is counted", func() bool {
		return metric(t, `pinwheel_cell_ends_total{how="memory"`) >= 1
	})
	require.Zero(t, metric(t, `pinwheel_cell_ends_total{how="died"`))
	require.Contains(t, beta(), "42")
	require.Contains(t, cells(t, supervisor), before[0], "beta's cell goes on")
	await(t, "acme's worker runs again", func() bool {
		deploy(t, "acme", "w", worker)
		out, err := sh(t, `pinwheel send task acme/w --timeout 4m --data '{"n":41}'`)
		return err == nil && strings.Contains(out, "42")
	})
	require.Equal(t, []string{supervisor, "active", "0"},
		[]string{property(t, "MainPID"), property(t, "ActiveState"), property(t, "NRestarts")})
	require.Zero(t, metric(t, "pinwheel_process_restarts_total"))
	out, _ := sh(t, "pinwheel doctor")
	require.Regexp(t, `warn +cells +cells of process .* used more memory than they may in the last hour: 1 × own:acme`, out)
	out = must(t, "journalctl -u pinwheel --no-pager")
	require.Contains(t, out, "a cell used more memory than it may: its attempts run again in the next one")
	t.Log(must(t, "journalctl -u pinwheel --no-pager | grep 'more memory'; journalctl -k --no-pager | grep -i 'oom' | tail -3"))
	await(t, "it is recorded", func() bool {
		out, err := sh(t, "pinwheel audit acme --json")
		return err == nil && strings.Contains(out, "cells.end") && strings.Contains(out, "memory")
	})
	await(t, "the cgroup of the cell is removed", func() bool {
		left, _ := filepath.Glob(unitCgroup + "/cells/[0-9]*")
		return len(left) == len(cells(t, supervisor))
	})
}

// A restart of the unit leaves nothing that is in the way.
func TestRestart(t *testing.T) {
	unit(t, "pinwheel", "PINWHEEL_CELL=own\nPINWHEEL_CELL_CONFINE=require\n", "")
	works(t)
	must(t, "kill -9 "+property(t, "MainPID"))
	await(t, "the unit has started again", func() bool {
		status, _ := get("http://" + adminAddr + "/readyz")
		return status == 200 && property(t, "NRestarts") == "1"
	})
	supervisor, cell := works(t)
	require.Equal(t, "0::/system.slice/pinwheel.service/fleet", file(t, "/proc", supervisor, "cgroup"))
	require.Contains(t, file(t, "/proc", strconv.Itoa(cell), "cgroup"), "/cells/")
}

// Root's cells are nobody's, and confined in all parts. Root takes no cgroup that is not delegated to it.
func TestRoot(t *testing.T) {
	const root = "[Service]\nUser=root\nGroup=root\nCapabilityBoundingSet=~\nSystemCallFilter=\n"
	unit(t, "pinwheel", "PINWHEEL_CELL=own\nPINWHEEL_CONFINE=require\nPINWHEEL_CELL_CONFINE=require\n", root)
	supervisor, cell := works(t)
	confined(t, cell, "root's cell", "65534", "user", "pid", "net", "ipc", "mnt", "uts")
	require.Contains(t, file(t, "/proc", strconv.Itoa(cell), "cgroup"), "/cells/")
	for _, c := range children(t, supervisor) {
		if !c.cell {
			confined(t, c.pid, "root's process of the fleet", "0")
		}
	}
	unit(t, "pinwheel", "PINWHEEL_CELL=own\nPINWHEEL_CELL_CONFINE=require\n", root+"Delegate=no\n")
	supervisor, cell = works(t)
	for _, pid := range []string{supervisor, strconv.Itoa(cell)} {
		require.Equal(t, "0::/system.slice/pinwheel.service", file(t, "/proc", pid, "cgroup"))
	}
	require.Contains(t, must(t, "journalctl -u pinwheel --no-pager"), "its unit has no Delegate=")
}

// Where user namespaces are refused, and cgroups cannot be written, as in most containers, all other parts hold. What
// is missing is said.
func TestContainer(t *testing.T) {
	unit(t, "pinwheel", "PINWHEEL_CELL=own\nPINWHEEL_CONFINE=require\n",
		"[Service]\nRestrictNamespaces=yes\nProtectControlGroups=yes\nDelegate=no\n")
	supervisor, cell := works(t)
	confined(t, cell, "cell", "10001")
	for _, c := range children(t, supervisor) {
		confined(t, c.pid, "process", "10001")
	}
	for part, want := range map[string]int{
		"capabilities": 1, "namespaces": 0, "files": 1, "users": 1, "system-calls": 1, "limits": 1, "cgroups": 0,
	} {
		require.EqualValues(t, want, metric(t, `pinwheel_cell_confined{part="`+part), part)
	}
	out, _ := sh(t, "pinwheel doctor")
	require.Regexp(t, `warn +cells +the cells of process .* are not confined in all parts: namespaces: `, out)
	require.Regexp(t, `cells of process .* have no cgroups: .* not delegated`, out)
	log := must(t, "journalctl -u pinwheel --no-pager")
	require.Contains(t, log, "cells have no cgroups")
	require.Contains(t, log, "cells are confined in part")
	t.Log(out)
}

func TestMain(m *testing.M) {
	if _, err := os.Stat("/run/systemd/system"); err != nil || os.Getpid() == 1 {
		panic("this test changes the machine that it runs in: internal/test/vm runs it")
	}
	os.Exit(m.Run())
}
