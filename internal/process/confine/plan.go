package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The parts of a confinement. They are the labels of a metric, and names in messages.
const (
	Capabilities = "capabilities" // none, also for root
	Files        = "files"        // only those of the Plan can be opened: Landlock
	SystemCalls  = "system-calls" // what Go and V8 do not need is refused: seccomp
)

// Parts are all parts, in the order in which they are taken.
var Parts = []string{Capabilities, Files, SystemCalls}

// Refused says why the system refused a part.
type Refused struct {
	Part string
	Err  error
}

// Report is what the system refused; empty = nothing.
type Report []Refused

// Has reports whether the part was refused.
func (r Report) Has(part string) bool {
	return slices.ContainsFunc(r, func(one Refused) bool { return one.Part == part })
}

// Texts returns a line for each part.
func (r Report) Texts() (list []string) {
	for _, one := range r {
		list = append(list, fmt.Sprintf("%s: %v", one.Part, one.Err))
	}
	return list
}

// Err returns nil when nothing was refused.
func (r Report) Err() error {
	if len(r) == 0 {
		return nil
	}
	return errors.New("this system refuses a part of the confinement of processes: " + strings.Join(r.Texts(), "; "))
}

// Plan is what a process may open, all else denied. It may write to nothing but /dev/null.
type Plan struct {
	// Executable is the program of the process.
	Executable string
	// Read are files, and directories with all that is below. What is missing when a process is started is left out.
	Read []string
}

// libraries are where the loader of the system is, and what it loads. The kernel executes the loader.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}

// system is what Go, V8, libc and the resolver read.
var system = []string{
	"/etc", // names of hosts, resolvers, certificates, time zone: files that others replace
	"/usr/share/zoneinfo", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
	"/proc", "/sys/fs/cgroup", "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage",
	"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
}

// linked are files of the system that are often links to files elsewhere, which others replace.
var linked = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/localtime", "/etc/nsswitch.conf"}

// variables of the environment that name files which Go reads, or lists of them.
var variables = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "ZONEINFO", "LD_LIBRARY_PATH"}

// reads returns all that a process of the plan may read: paths that exist, also where links lead to.
func (p Plan) reads() (paths []string) {
	paths = append(paths, system...)
	for _, path := range linked {
		paths = append(paths, Replaced(path)...)
	}
	for _, name := range variables {
		paths = append(paths, filepath.SplitList(os.Getenv(name))...)
	}
	return append(paths, p.Read...)
}

// Replaced returns what must be readable for a file that others replace while a process runs: its directory, and the
// one to which links lead. Of a file in the root directory, or among the credentials of a systemd unit, it is the file
// alone. It returns nil for "".
func Replaced(path string) (paths []string) {
	if path == "" {
		return nil
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		to = path
	}
	for _, one := range []string{path, to} {
		dir := filepath.Dir(one)
		// The root has everything. The credentials of a unit of systemd stay as they are while it runs.
		if dir == filepath.Dir(dir) || dir == os.Getenv("CREDENTIALS_DIRECTORY") {
			dir = one
		}
		if !slices.Contains(paths, dir) {
			paths = append(paths, dir)
		}
	}
	return paths
}
