package supervisor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The kernel's files say whether it killed for memory: in the cgroup of this process, of either version, also inside a
// container, and else on the machine.
func TestMemoryKills(t *testing.T) {
	for name, c := range map[string]struct{ cgroup, file string }{
		"v2":             {"0::/system.slice/pinwheel.service\n", "cgroup/system.slice/pinwheel.service/memory.events"},
		"v2, container":  {"0::/docker/abc\n", "cgroup/memory.events"},
		"v1":             {"5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n", "cgroup/memory/a/memory.oom_control"},
		"v1, container":  {"4:hugetlb,memory:/docker/abc\n", "cgroup/memory/memory.oom_control"},
		"of the machine": {"", "proc/vmstat"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(path, text string) {
				path = filepath.Join(dir, path)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			write("proc/self/cgroup", c.cgroup)
			now := time.Now()
			m := newMemoryKills(filepath.Join(dir, "proc"), filepath.Join(dir, "cgroup"))
			require.Equal(t, MemoryUnknown, m.look(now))
			write("proc/vmstat", "pgfault 12\noom_kill 4\n")
			write(c.file, "low 0\noom_kill 7\noom_group_kill 9\n")
			require.Equal(t, MemoryKept, m.look(now), "what was before is not seen")
			write(c.file, "low 0\noom_kill 8\noom_group_kill 9\n")
			require.Equal(t, MemoryKilled, m.look(now))
			require.Equal(t, MemoryKilled, m.look(now.Add(memoryLately-1)))
			require.Equal(t, MemoryKept, m.look(now.Add(memoryLately)))
		})
	}
}
