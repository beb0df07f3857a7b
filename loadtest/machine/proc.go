package machine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc: USER_HZ, which is 100 on every Linux.
const tick = 10 * time.Millisecond

// process is the information of /proc about a process.
type process struct {
	parent int
	cpu    time.Duration
}

// readProcess returns false for a process that has ended.
func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	return parseStat(text)
}

// parseStat parses /proc/PID/stat. The name in it may have spaces and parentheses.
func parseStat(text []byte) (process, bool) {
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 13 {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	user, err2 := strconv.ParseInt(string(f[11]), 10, 64)
	system, err3 := strconv.ParseInt(string(f[12]), 10, 64)
	return process{parent, time.Duration(user+system) * tick}, err1 == nil && err2 == nil && err3 == nil
}

// family returns pid and all its descendants.
func family(pid int) []int {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readProcess(id); ok {
				children[p.parent] = append(children[p.parent], id)
			}
		}
	}
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// UsedCPU returns the CPU time of running processes.
func UsedCPU(pids []int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		if p, ok := readProcess(pid); ok {
			sum += p.cpu
		}
	}
	return sum
}

// Memory returns how much RAM the processes use now, and the sum of the peaks of all, in bytes.
func Memory(pids []int) (now, peak int64) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		n, p := parseStatus(string(text))
		now, peak = now+n, peak+p
	}
	return now, peak
}

func parseStatus(text string) (now, peak int64) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		if name != "VmRSS" && name != "VmHWM" {
			continue
		}
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if name == "VmRSS" {
			now = kb << 10
		} else {
			peak = kb << 10
		}
	}
	return now, peak
}

// Busy returns the time that all CPUs were busy since the machine started. It includes the time that a
// hypervisor took away.
func Busy() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	return parseBusy(string(text))
}

func parseBusy(text string) time.Duration {
	line, _, _ := strings.Cut(text, "\n")
	var sum int64
	// user nice system idle iowait irq softirq steal; the time of guests is included in user.
	for i, field := range strings.Fields(line) {
		if i >= 1 && i <= 8 && i != 4 && i != 5 {
			n, _ := strconv.ParseInt(field, 10, 64)
			sum += n
		}
	}
	return time.Duration(sum) * tick
}
