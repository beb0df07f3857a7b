package spawn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/internal/test/breach"
)

// raw makes a call of the kernel with the numbers alone.
func raw(number uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}
}

// fork makes a process that ends at once.
func fork() error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		for {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

// attempts are those of any process that has broken out, and what only a cell may not do.
func attempts(t breach.Targets) map[string]func() error {
	all := t.Attempts()
	for name, attempt := range map[string]func() error{
		"fork":              fork,
		"stat a file":       func() error { _, err := os.Stat("/etc/passwd"); return err },
		"read a library":    func() error { _, err := os.ReadDir("/usr/lib"); return err },
		"open a null":       func() error { _, err := os.Open("/dev/null"); return err },
		"read its status":   func() error { _, err := os.ReadFile("/proc/self/status"); return err },
		"tcp socket":        raw(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
		"udp socket":        raw(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0),
		"route socket":      raw(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
		"socket pair":       func() error { _, _, err := filePair(); return err },
		"resolve a name":    func() error { _, err := net.LookupHost("localhost"); return err },
		"memory file":       func() error { _, err := unix.MemfdCreate("x", 0); return err },
		"be dumpable":       func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) },
		"follow a parent":   func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) },
		"limit itself":      func() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) },
		"open a process":    func() error { _, err := unix.PidfdOpen(os.Getpid(), 0); return err },
		"set a time":        raw(unix.SYS_TIMERFD_CREATE, unix.CLOCK_MONOTONIC, 0),
		"watch files":       raw(unix.SYS_INOTIFY_INIT1, 0),
		"take signals":      raw(unix.SYS_GETSID, 0),
		"send to a socket":  func() error { return sendRights() },
		"change directory":  func() error { return os.Chdir("/") },
		"change its policy": raw(unix.SYS_SCHED_SETAFFINITY, 0, 0, 0),
	} {
		all[name] = attempt
	}
	return all
}

// sendRights sends a descriptor by a connection that the cell has inherited.
func sendRights() error {
	return unix.Sendmsg(firstDescriptor, []byte{0}, unix.UnixRights(0), nil, 0)
}

// breachAll tries all, and says what came of it.
func breachAll(argument string) string {
	var t breach.Targets
	if err := json.Unmarshal([]byte(argument), &t); err != nil {
		return err.Error()
	}
	r := breach.Report{}
	for name, attempt := range attempts(t) {
		r[name] = ""
		if err := attempt(); err != nil {
			r[name] = err.Error()
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// manyThreads takes more threads than a cell may have.
func manyThreads() {
	for range 2000 {
		go func() { // each keeps its thread until the process ends
			runtime.LockOSThread()
			select {}
		}()
	}
}

const middleVariable = "SPAWN_TEST_MIDDLE"

// middle is what a process is told that starts a cell as another user.
type middle struct {
	Confine bool
	Targets breach.Targets
	Hold    bool // say the ID of the cell, and do nothing more
}

// said is what it answers.
type said struct {
	PID     int
	Refused []string
	Report  breach.Report
	Status  string // of the cell
	Took    time.Duration
}

// beMiddle is false in a process that is none.
func beMiddle() bool {
	text := os.Getenv(middleVariable)
	if text == "" {
		return false
	}
	var m middle
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	answer, err := m.run()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if m.Hold {
		select {}
	}
	return true
}

func (m middle) run() (a said, err error) {
	self, err := os.Executable()
	if err != nil {
		return a, err
	}
	before := time.Now()
	p, err := Local(Starter{Executable: self, ConfineCells: m.Confine}).Cell(context.Background())
	if err != nil {
		return a, err
	}
	a = said{PID: p.PID(), Refused: p.Refused(), Took: time.Since(before)}
	if m.Hold {
		return a, nil
	}
	m.Targets.Parent = os.Getpid()
	text, err := json.Marshal(m.Targets)
	if err != nil {
		return a, err
	}
	_, _ = fmt.Fprintf(p.Events, "breach %s\n", text)
	answer, err := bufio.NewReader(p.Events).ReadBytes('\n')
	if err != nil {
		p.Kill()
		return a, fmt.Errorf("%w: %+v", err, p.Wait())
	}
	if err := json.Unmarshal(answer, &a.Report); err != nil {
		return a, fmt.Errorf("%s: %w", answer, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	a.Status = string(status)
	return a, err
}

// as starts a middle process with these attributes. Its program is where every user can read it.
func as(t *testing.T, m middle, attributes *syscall.SysProcAttr) *exec.Cmd {
	t.Helper()
	dir, err := os.MkdirTemp("", "spawn")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "program")
	text, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	write(t, program, string(text))
	for _, name := range []string{"secret", "remove"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("secret"), 0o644))
	}
	if attributes.Credential != nil {
		require.NoError(t, os.Chmod(dir, 0o755))
		require.NoError(t, os.Chown(dir, int(attributes.Credential.Uid), int(attributes.Credential.Gid)))
	}
	if os.Getuid() == 0 {
		require.NoError(t, os.Chmod(dir, 0o777), "a cell that is not confined finds what it wants")
	}
	victim := exec.Command("/bin/sleep", "1000")
	victim.SysProcAttr = &syscall.SysProcAttr{Credential: attributes.Credential}
	require.NoError(t, victim.Start())
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	m.Targets = breach.Targets{Secret: filepath.Join(dir, "secret"), Dir: dir, Victim: victim.Process.Pid}
	told, err := json.Marshal(m)
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env, cmd.SysProcAttr = []string{middleVariable + "=" + string(told)}, attributes
	return cmd
}

func hear(t *testing.T, cmd *exec.Cmd) (a said) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s", &out)
	require.NoError(t, json.Unmarshal(out.Bytes(), &a), "%s", &out)
	return a
}

// users are those who start cells: this one, one without rights, and root of a user namespace that has nobody else.
func users() map[string]func() *syscall.SysProcAttr {
	all := map[string]func() *syscall.SysProcAttr{
		"this user": func() *syscall.SysProcAttr { return &syscall.SysProcAttr{} },
		"user namespace": func() *syscall.SysProcAttr {
			return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
		},
	}
	if os.Getuid() == 0 {
		for _, id := range []uint32{10001, 65534} {
			all[fmt.Sprint("user ", id)] = func() *syscall.SysProcAttr {
				return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
			}
		}
	}
	return all
}

// Each attempt succeeds in a cell that is not confined, where this system allows it at all, and fails in one that is.
func TestBreach(t *testing.T) {
	t.Parallel()
	for name, attributes := range users() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control := hear(t, as(t, middle{}, attributes())).Report
			t.Logf("without confinement: %v", control)
			for _, name := range []string{"read a file", "list a directory", "write a temporary file", "execute", "fork",
				"signal another", "signal a parent", "signal a thread", "signal by fcntl", "unix socket", "bind", "listen",
				"stat a file", "read a library", "open a null", "tcp socket", "udp socket", "socket pair", "memory file",
				"be dumpable", "limit itself", "send to a socket", "watch files"} {
				require.Contains(t, control, name)
				require.Empty(t, control[name], name)
			}
			got := hear(t, as(t, middle{Confine: true}, attributes()))
			t.Logf("from fork to ready: %s", got.Took)
			require.Len(t, got.Report, len(control))
			for name, what := range got.Report {
				require.Regexp(t, "not permitted|permission denied|function not implemented|no such host|lookup", what, name)
			}
			require.Regexp(t, `(?m)^NoNewPrivs:\s+1$`, got.Status)
			require.Regexp(t, `(?m)^Seccomp:\s+2$`, got.Status)
			require.Regexp(t, `(?m)^Seccomp_filters:\s+2$`, got.Status)
			require.Regexp(t, `(?m)^CapEff:\s+0+$`, got.Status)
			require.Regexp(t, `(?m)^CapPrm:\s+0+$`, got.Status)
			require.Regexp(t, `(?m)^CapAmb:\s+0+$`, got.Status)
			t.Logf("refused: %q", got.Refused)
			if name != "user namespace" { // it has no other user that a cell could be
				require.Empty(t, got.Refused)
				require.Regexp(t, `(?m)^NSpid:\s+\d+\s+1$`, got.Status)
				require.NotRegexp(t, `(?m)^Uid:\s+0\s`, got.Status)
			}
		})
	}
}

// A cell that takes more threads than it may have ends.
func TestThreads(t *testing.T) {
	t.Parallel()
	for _, s := range spawners(t, Starter{Executable: program(t), ConfineCells: true}) {
		p := begin(t, s)
		_, err := fmt.Fprintln(p.Events, "threads")
		require.NoError(t, err)
		e := p.Wait()
		require.Regexp(t, "failed to create new OS thread|pthread_create failed", e.Text)
		t.Logf("%s, status %d, signal %d", e.Why, e.Code, e.Signal)
		require.Equal(t, crashnote.Fault, crashnote.End{Signal: e.Signal, Code: e.Code}.Cause())
	}
}

// manyBytes takes memory in all the ways in which a process gets it, until the system refuses more. It says how many
// MiB it got of the one that has a limit, and that the others are refused.
func manyBytes() string {
	const step, most = 64 << 20, 1 << 40
	got := 0
	for ; got < most; got += step {
		if _, err := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
			break
		}
	}
	_, shared := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	_, stack := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_GROWSDOWN)
	return fmt.Sprintf("%d MiB; shared: %v; a stack: %v", got>>20, shared, stack)
}

// A cell gets as much memory as the heaps of its pool may have, and some beside it.
func TestMemory(t *testing.T) {
	t.Parallel()
	for _, s := range spawners(t, Starter{Executable: program(t), ConfineCells: true, HeapBytes: 256 << 20}) {
		answer := ask(t, begin(t, s), "memory")
		t.Log(answer)
		var got int
		_, err := fmt.Sscanf(answer, "%d MiB", &got)
		require.NoError(t, err)
		require.Greater(t, got, 256)
		require.LessOrEqual(t, got, (256<<20+besideHeap)>>20)
		require.Contains(t, answer, "shared: function not implemented; a stack: function not implemented")
	}
	for _, s := range spawners(t, Starter{Executable: program(t)}) {
		require.Regexp(t, "^1048576 MiB|^[5-9][0-9]{3}|^[0-9]{5,}", ask(t, begin(t, s), "memory"), "the control")
	}
}

// A cell ends with who has started it, however that ends.
func TestOrphans(t *testing.T) {
	t.Parallel()
	for _, confine := range []bool{false, true} {
		cmd := as(t, middle{Confine: confine, Hold: true}, &syscall.SysProcAttr{})
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		var a said
		require.NoError(t, json.NewDecoder(out).Decode(&a))
		require.NoError(t, unix.Kill(a.PID, 0))
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		require.Eventually(t, func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID))
			return err != nil || strings.Contains(string(text), "State:\tZ")
		}, patience, time.Millisecond)
	}
}

// A cell has the descriptors that it was given, bounds, and namespaces of its own.
func TestWhatACellHas(t *testing.T) {
	t.Parallel()
	leaked, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // as one that this process has inherited
	require.NoError(t, err)
	defer func() { _ = unix.Close(leaked) }()
	for _, s := range spawners(t, Starter{Executable: program(t), ConfineCells: true}) {
		p := begin(t, s)
		require.Equal(t, "ok", ask(t, p, "nothing"))
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.PID()))
		require.NoError(t, err)
		for _, line := range []string{`Max open files\s+32\s+32`, `Max processes\s+512\s+512`, `Max file size\s+0\s+0`,
			`Max core file size\s+0\s+0`, `Max data size\s+7516192768\s+7516192768`,
			`Max locked memory\s+0\s+0`, `Max msgqueue size\s+0\s+0`} {
			require.Regexp(t, line, string(limits))
		}
		if os.Getuid() != 0 {
			t.Log("NOT TESTED: only root sees the files and namespaces of a cell")
			continue
		}
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
		require.NoError(t, err)
		var to []string
		for _, f := range files {
			link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.PID(), f.Name()))
			require.NoError(t, err)
			name, _, _ := strings.Cut(link, ":[")
			to = append(to, name)
		}
		require.ElementsMatch(t, []string{"/dev/null", "pipe", "pipe", "socket", "socket", "anon_inode", "anon_inode"},
			shorten(to))
		for _, name := range []string{"user", "pid", "net", "ipc", "uts", "mnt", "cgroup"} {
			ours, err := os.Readlink("/proc/self/ns/" + name)
			require.NoError(t, err)
			its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", p.PID(), name))
			require.NoError(t, err)
			require.NotEqual(t, ours, its)
		}
	}
}

// shorten leaves out what kinds of files without a name there are.
func shorten(links []string) (list []string) {
	for _, l := range links {
		if strings.HasPrefix(l, "anon_inode:") {
			l = "anon_inode"
		}
		list = append(list, l)
	}
	return list
}
