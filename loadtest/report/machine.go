package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine describes the machine and the build of a measurement.
type Machine struct {
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	RAM    string `json:"ram"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Commit string `json:"commit"` // commit of the module; with a + when files differ from it
}

func thisMachine(ctx context.Context) Machine {
	m := Machine{CPU: field("/proc/cpuinfo", "model name"), CPUs: runtime.NumCPU(),
		RAM: field("/proc/meminfo", "MemTotal"), Go: runtime.Version()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	m.Commit = commit(ctx)
	return m
}

func (m Machine) String() string {
	return fmt.Sprintf("%d × %s, %s RAM, Linux %s, %s, commit %s", m.CPUs, m.CPU, m.RAM, m.Kernel, m.Go, m.Commit)
}

// field returns the value of the first line "name : value" of a file.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func commit(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude", "*").
		Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
