package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Memory says whether the kernel has killed a process of this machine lately because memory ran out.
type Memory uint8

// The values of Memory.
const (
	MemoryUnknown Memory = iota // the kernel does not say
	MemoryKept                  // it has not
	MemoryKilled                // it has
)

// memoryLately is for how long a kill counts. The end of a process with much memory takes the kernel a while, and
// others may die for the same reason.
const memoryLately = 10 * time.Second

// memoryKills watches how many processes the kernel has killed because memory ran out: those of the cgroup of this
// process, in which its children are too, whoever's limit was reached. Where the cgroup does not say, those of the
// machine. Any goroutine may call its methods.
type memoryKills struct {
	proc, cgroups string // where the kernel's files are

	mu    sync.Mutex
	known bool
	count uint64
	grew  time.Time // when the count was last seen to have grown
}

func newMemoryKills(proc, cgroups string) *memoryKills {
	m := &memoryKills{proc: proc, cgroups: cgroups}
	m.look(time.Time{})
	return m
}

// look reads the count, and returns what it says about now.
func (m *memoryKills) look(now time.Time) Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	count, ok := m.read()
	if ok && m.known && count > m.count {
		m.grew = now
	}
	m.count, m.known = count, ok
	switch {
	case !ok:
		return MemoryUnknown
	case now.Sub(m.grew) < memoryLately:
		return MemoryKilled
	}
	return MemoryKept
}

// read returns the count; false when no file has it.
func (m *memoryKills) read() (uint64, bool) {
	for _, path := range m.files() {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
				if count, err := strconv.ParseUint(strings.TrimSpace(n), 10, 64); err == nil {
					return count, true
				}
			}
		}
	}
	return 0, false
}

// files returns the files that may have the count, the most exact one first. In a container the path of the cgroup may
// be that of the host, while the container sees only its own: then that is at the root.
func (m *memoryKills) files() (paths []string) {
	text, _ := os.ReadFile(filepath.Join(m.proc, "self/cgroup"))
	for line := range strings.Lines(string(text)) { // number:controllers:path
		of := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(of) != 3:
		case of[0] == "0" && of[1] == "": // cgroup v2
			paths = append(paths, filepath.Join(m.cgroups, of[2], "memory.events"), filepath.Join(m.cgroups, "memory.events"))
		case strings.Contains(","+of[1]+",", ",memory,"): // cgroup v1
			paths = append(paths, filepath.Join(m.cgroups, "memory", of[2], "memory.oom_control"),
				filepath.Join(m.cgroups, "memory/memory.oom_control"))
		}
	}
	return append(paths, filepath.Join(m.proc, "vmstat"))
}
