package confine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/breach"
)

const as = "CONFINE_TEST_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(as) {
	case "":
		os.Exit(m.Run())
	case "middle":
		fail(Hide())
		fail(start(os.Args[0], "confined", Plan{Executable: os.Args[0]}.Enter, os.Stdout))
		os.Exit(0)
	case "confined":
		fail(Self())
	case "cell":
		fail(CellSelf(false, 1<<40).Err())
		os.Exit(0)
	case "refusing":
		// Other than in the fleet, this process itself is confined. No namespaces are to be had, and no other user.
		fail(Hide())
		fail(dropCapabilities())
		fail(install(first(runtime.GOARCH), seccomp.FilterFlagTSync))
		ended := make(chan struct{})
		s, err := Cell{Executable: os.Args[0], Command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = []string{as + "=cell"}, os.Stdin, os.Stdout, os.Stdout
			return cmd
		}}.Start(ended)
		fail(err)
		fail(s.Wait())
		close(ended)
		fmt.Println(strings.Join(s.Refused.Texts(), "; "))
		os.Exit(0)
	}
	status, err := os.ReadFile("/proc/self/status")
	fail(err)
	fmt.Printf("%s", status)
	for _, name := range []string{"/etc/hosts", "/proc/self/smaps_rollup", "/proc/self/cgroup",
		fmt.Sprintf("/proc/self/task/%d/stat", os.Getpid()), fmt.Sprintf("/proc/self/task/%d/schedstat", os.Getpid())} {
		_, err := os.ReadFile(name)
		fail(err)
	}
	_, err = os.ReadDir("/proc/self/fd")
	fail(err)
	if _, err := net.Dial("tcp6", "[::1]:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		fail(fmt.Errorf("IPv6: %w", err))
	}
	t, _ := breach.Asked()
	fail(t.Try().Write(os.Stdout))
	os.Exit(0)
}

func fail(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// start runs a program as a process of that kind, with the targets of this one.
func start(program, kind string, enter func() Report, out io.Writer) error {
	cmd := exec.Command(program)
	cmd.Env = []string{as + "=" + kind, breach.Variable + "=" + os.Getenv(breach.Variable)}
	cmd.Stdout, cmd.Stderr = out, out
	ended := make(chan struct{})
	defer close(ended)
	var confined func() error
	if enter != nil {
		confined = func() error { return enter().Err() }
	}
	if err := Start(cmd, confined, ended); err != nil {
		return err
	}
	return cmd.Wait()
}

// run runs this binary as a process of that kind and user, and returns what it said.
func run(t *testing.T, kind string, enter func() Report, user *syscall.Credential) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "confine")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "program")
	text, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, text, 0o755))
	for _, name := range []string{"secret", "remove"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("secret"), 0o644))
	}
	victim := exec.Command("/bin/sleep", "1000")
	victim.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	if user != nil {
		require.NoError(t, os.Chmod(dir, 0o755))
		require.NoError(t, os.Chown(dir, int(user.Uid), int(user.Gid)))
	}
	require.NoError(t, victim.Start())
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	targets := breach.Targets{Secret: filepath.Join(dir, "secret"), Dir: dir, Victim: victim.Process.Pid}
	var out bytes.Buffer
	if user == nil {
		name, value, _ := strings.Cut(targets.Environ(), "=")
		t.Setenv(name, value)
		require.NoError(t, start(os.Args[0], kind, enter, &out), "%s", &out)
		return out.String()
	}
	cmd := exec.Command(program)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{as + "=" + kind, targets.Environ()}, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	require.NoError(t, cmd.Run(), "%s", &out)
	return out.String()
}

// check checks what a confined process said.
func check(t *testing.T, out string, control breach.Report) {
	t.Helper()
	got := breach.Read(out)
	require.Len(t, got, len(control), "%s", out)
	for name, said := range got {
		require.Regexp(t, "not permitted|permission denied|function not implemented", said, name)
	}
	require.Regexp(t, `(?m)^NoNewPrivs:\s+1$`, out)
	require.Regexp(t, `(?m)^Seccomp:\s+2$`, out)
	require.Regexp(t, `(?m)^CapEff:\s+0+$`, out)
}

// Each attempt succeeds in a process that is not confined, where this system allows it at all, and fails in one that
// is.
func TestConfined(t *testing.T) {
	control := breach.Read(run(t, "free", nil, nil))
	t.Logf("without confinement: %v", control)
	for _, name := range []string{"read a file", "list a directory", "write a temporary file", "remove a file", "execute",
		"signal another", "signal a parent", "signal a thread", "signal by fcntl", "unix socket", "bind", "listen",
		"read another's environ", "read a parent's environ", "write its own memory"} {
		require.Contains(t, control, name)
		require.Empty(t, control[name], name)
	}
	plan := Plan{Executable: os.Args[0]}
	require.NoError(t, Try(func() error { return plan.Enter().Err() }), "the tests need Landlock and seccomp")
	out := run(t, "confined", plan.Enter, nil)
	check(t, out, control)
	require.Regexp(t, `(?m)^CapBnd:\s+0+$`, out)
}

// The same for a user without rights, whose files in /proc belong to root while it is hidden.
func TestConfinedAsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("NOT TESTED: only root starts processes of another user")
		return
	}
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	control := breach.Read(run(t, "free", nil, nobody))
	for _, name := range []string{"read a file", "write a temporary file", "execute", "signal another", "bind",
		"read another's environ"} {
		require.Contains(t, control, name)
		require.Empty(t, control[name], name)
	}
	check(t, run(t, "middle", nil, nobody), control)
}

// A report names the parts that are missing.
func TestReport(t *testing.T) {
	require.NoError(t, Report(nil).Err())
	r := Report{{Files, errors.New("no Landlock")}}
	require.True(t, r.Has(Files))
	require.False(t, r.Has(SystemCalls))
	require.Equal(t, []string{"files: no Landlock"}, r.Texts())
	require.ErrorContains(t, r.Err(), "files: no Landlock")

	// A process is not started by a thread that is not confined as it should be.
	cmd := exec.Command("/bin/true")
	require.Error(t, Start(cmd, r.Err, nil))
	require.Nil(t, cmd.Process)
}

// A plan lets a process read what it names, also where a link leads, and nothing beside it.
func TestPlan(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/secret", "b/secret", "c/secret"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "b/secret"), filepath.Join(dir, "a/link")))
	require.Equal(t, []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, Replaced(filepath.Join(dir, "a/link")))
	require.Nil(t, Replaced(""))
	require.Equal(t, []string{"/none"}, Replaced("/none"))
	t.Setenv("CREDENTIALS_DIRECTORY", "/run/credentials/x")
	require.Equal(t, []string{"/run/credentials/x/key"}, Replaced("/run/credentials/x/key"))
	require.NoError(t, Try(func() error {
		plan := Plan{Read: append(Replaced(filepath.Join(dir, "a/link")), filepath.Join(dir, "none"))}
		if err := plan.Enter().Err(); err != nil {
			return err
		}
		for name, allowed := range map[string]bool{"a/link": true, "b/secret": true, "c/secret": false} {
			_, err := os.ReadFile(filepath.Join(dir, name))
			if allowed != (err == nil) {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}))
	_, err := os.ReadFile(filepath.Join(dir, "c/secret"))
	require.NoError(t, err, "other threads are not confined")
}

// The thread that confines itself ends, and is never the first of the process, whose restrictions are those that the
// kernel compares.
func TestThreadsOfTheirOwn(t *testing.T) {
	before, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	require.Contains(t, string(before), "Seccomp:\t0", "the test begins without filters")
	var running sync.WaitGroup
	for range 50 {
		running.Go(func() { require.NoError(t, Try(func() error { return (Plan{}).Enter().Err() })) })
	}
	running.Wait()
	require.Eventually(t, func() bool {
		all, err := filepath.Glob("/proc/self/task/*/status")
		require.NoError(t, err)
		for _, path := range all {
			if text, err := os.ReadFile(path); err == nil && !strings.Contains(string(text), "Seccomp:\t0") {
				return false
			}
		}
		return true
	}, time.Minute, time.Millisecond)
}

// All calls have a number on each architecture of a release. The tables are those of the library.
func TestCallsAreKnown(t *testing.T) {
	for goarch, of := range refusedOf {
		info, err := arch.GetInfo(goarch)
		require.NoError(t, err)
		all := slices.Concat(refused, of, refusedLater, []string{"clone3", "clone", "socket", "kill", "tgkill", "prlimit64",
			"fcntl"})
		seen := map[string]bool{}
		for _, name := range all {
			require.Contains(t, info.SyscallNames, name, goarch)
			require.False(t, seen[name], name)
			seen[name] = true
		}
		require.Greater(t, len(all), 80)
	}
	for goarch, of := range inCellsOf {
		info, err := arch.GetInfo(goarch)
		require.NoError(t, err)
		seen := map[string]bool{}
		for _, name := range slices.Concat(inCells, of, known, knownOf[goarch], []string{"clone", "prctl", "kill", "tgkill",
			"mmap", "sched_setattr", "fcntl", "setsockopt", "getsockopt", "ioctl", "prlimit64"}) {
			require.Contains(t, info.SyscallNames, name, goarch)
			require.False(t, seen[name], name)
			seen[name] = true
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(refusedOf)), slices.Sorted(maps.Keys(inCellsOf)))
	require.Contains(t, refusedOf, "amd64")
	require.Contains(t, refusedOf, "arm64")
}

// A cell is started in the best way that the system allows. Only root gives up being root.
func TestWaysOfCells(t *testing.T) {
	t.Parallel()
	require.Equal(t, []way{{users: true}, {}}, ways(false))
	all := ways(true)
	require.Len(t, all, 6)
	require.Equal(t, way{users: true, nobody: true}, all[0])
	require.Equal(t, way{}, all[5])

	failed := errors.New("no")
	require.Empty(t, missing(way{}, nil))
	require.True(t, missing(way{}, failed).Has(Namespaces))
	require.False(t, missing(way{users: true}, failed).Has(Namespaces))
	require.Equal(t, isRoot(), missing(way{users: true}, failed).Has(Users))
	require.False(t, missing(way{nobody: true}, failed).Has(Users))
}

// Where a part is refused, the cell is started without it, and the report says so.
func TestCellsOfASystemThatRefuses(t *testing.T) {
	out := run(t, "refusing", nil, nil)
	require.Contains(t, out, Namespaces+": ")
	require.Contains(t, out, "operation not permitted")
	require.Equal(t, isRoot(), strings.Contains(out, Users+": "), out)
	for _, part := range []string{Capabilities, Files, SystemCalls, Limits} {
		require.NotContains(t, out, part+": ")
	}
}
