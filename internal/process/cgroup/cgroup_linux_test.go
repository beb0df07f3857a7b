package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process takes only a cgroup of version 2 that it sees.
func TestPathOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0::/system.slice/pinwheel.service\n":  "/system.slice/pinwheel.service",
		"9:name=systemd:/a\n1:cpu:/b\n0::/c\n": "/c",
		"0::/\n":                               "/",
	} {
		path, err := pathOf(text)
		require.NoError(t, err, text)
		require.Equal(t, want, path)
	}
	for _, text := range []string{"", "4:memory:/x\n", "0::/../other\n"} {
		_, err := pathOf(text)
		require.Error(t, err, text)
	}
}

// files makes a directory with these files.
func files(t *testing.T, texts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range texts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// Without the controllers, or beside other processes, nothing is made.
func TestRefused(t *testing.T) {
	t.Parallel()
	pid := os.Getpid()
	for says, texts := range map[string]map[string]string{
		"has no controller for pids":   {"cgroup.controllers": "cpu memory\n", "cgroup.procs": strconv.Itoa(pid)},
		"has no controller for memory": {"cgroup.controllers": "\n", "cgroup.procs": strconv.Itoa(pid)},
		"has processes that are not Pinwheel's": {"cgroup.controllers": "memory pids\n",
			"cgroup.procs": "1\n" + strconv.Itoa(pid)},
		"cgroup.controllers: no such file or":    {},
		"cgroup.procs: no such file or director": {"cgroup.controllers": "memory pids\n"},
	} {
		dir := files(t, texts)
		_, err := open(dir, pid, Limits{})
		require.ErrorContains(t, err, says)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, len(texts), says)
	}
}

// What a kernel does not take is undone: this directory is no cgroup, so the files of its children are missing.
func TestUndone(t *testing.T) {
	t.Parallel()
	pid := strconv.Itoa(os.Getpid())
	dir := files(t, map[string]string{
		"cgroup.controllers": "memory pids hugetlb cpu\n", "cgroup.procs": pid, "cgroup.subtree_control": "",
	})
	_, err := open(dir, os.Getpid(), Limits{Memory: 1, Processes: 1})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoDirExists(t, filepath.Join(dir, fleetName))
	require.NoDirExists(t, filepath.Join(dir, cellsName))
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	require.NoError(t, err)
	require.Equal(t, "-memory -pids -cpu", string(text))
}

// Go looks for a limit of processor time in its own cgroup only.
func TestTimeOfProcessorsIsPassedOn(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{"max 100000\n": "", "150000 100000\n": "150000 100000"} {
		dir, fleet := files(t, map[string]string{"cpu.max": limit}), files(t, map[string]string{"cpu.max": ""})
		require.NoError(t, passOn(dir, fleet))
		text, err := os.ReadFile(filepath.Join(fleet, "cpu.max"))
		require.NoError(t, err)
		require.Equal(t, want, strings.TrimSpace(string(text)))
	}
	require.NoError(t, passOn(t.TempDir(), t.TempDir()), "no controller")
}

// The kernel says in the cgroup whether it ended the process because of its own memory, not that of the machine.
func TestEndsForMemory(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n": false,
		"low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n": true,
		"low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\noom_group_kill 0\n": false, // the machine had none left
		"": false,
	} {
		g := &Group{files(t, map[string]string{"memory.events": text})}
		require.Equal(t, want, g.Close(), text)
	}
}
