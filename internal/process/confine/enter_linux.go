package confine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// isFirstThread reports whether the calling thread is the first one of the process.
func isFirstThread() bool { return unix.Gettid() == os.Getpid() }

// inheritNone keeps files of this process from those that it starts. Go does that for what it opens, but not for what
// this process has inherited. Kernels before 5.11 cannot.
func inheritNone() { _ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// Enter confines the calling OS thread, which must end afterwards: see Start. What the system refuses is left out.
func (p Plan) Enter() (r Report) {
	for _, part := range []struct {
		name string
		take func() error
	}{
		{Capabilities, dropCapabilities},
		{Files, func() error { return restrictTo(restrictions, p.rules(), 0) }},
		{SystemCalls, func() error { return install(first(runtime.GOARCH), 0) }},
	} {
		if err := part.take(); err != nil {
			r = append(r, Refused{part.name, err})
		}
	}
	return r
}

// dropCapabilities leaves a process that this thread starts without capabilities, also one of root. The thread keeps
// its own until then.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl PR_SET_NO_NEW_PRIVS", err)
	}
	// Kernels before 4.3 have no such capabilities.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := uintptr(0); ; c++ {
		have, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			return nil // there is none with that number
		}
		if have == 0 {
			continue
		}
		// Without capabilities of its own, nobody but root gets any of this set.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && os.Geteuid() == 0 {
			return os.NewSyscallError("prctl PR_CAPBSET_DROP", err)
		}
	}
}

const (
	accessRead    = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSReadDir)
	accessExecute = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSExecute)
	accessWrite   = landlock.AccessFSSet(ll.AccessFSWriteFile)
	// accessFile are those of them that a rule for a file may have.
	accessFile = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSExecute | ll.AccessFSWriteFile)
)

// restrictions are all of files that Landlock knows, and signals and abstract sockets. Connections stay.
var restrictions = landlock.Config{
	HandledAccessFS: ll.AccessFSResolveUnix<<1 - 1,
	Scoped:          ll.ScopeSignal | ll.ScopeAbstractUnixSocket,
}

// rules are the rules of the plan.
func (p Plan) rules() (list []landlock.Rule) {
	add := func(path string, access landlock.AccessFSSet) { list = append(list, pathRule(path, access)...) }
	for _, path := range p.reads() {
		add(path, accessRead)
	}
	for _, path := range libraries {
		add(path, accessRead|accessExecute)
	}
	add(p.Executable, accessExecute)
	add(os.DevNull, accessRead|accessWrite)
	return list
}

// pathRule allows that access to a path, if it is there.
func pathRule(path string, access landlock.AccessFSSet) []landlock.Rule {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if !info.IsDir() {
		access &= accessFile
	}
	return []landlock.Rule{landlock.PathAccess(access, path).IgnoreIfMissing()}
}

// restrictTo takes a ruleset of these restrictions and rules, for this thread only unless the flags say otherwise.
func restrictTo(all landlock.Config, rules []landlock.Rule, more uint32) error {
	version, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return errors.New("the kernel has no Landlock: it is in 5.13 and later")
	case errors.Is(err, unix.EOPNOTSUPP):
		return errors.New("the kernel has Landlock switched off: its parameter lsm= does not name it")
	case err != nil:
		return fmt.Errorf("version of Landlock: %w", err)
	}
	fd, flags, err := all.BestEffort().NewRulesetFD(rules...)
	if err != nil {
		return err
	}
	if fd < 0 {
		return fmt.Errorf("version %d of Landlock restricts nothing", version)
	}
	defer func() { _ = unix.Close(fd) }()
	return ll.LandlockRestrictSelf(fd, flags|more)
}

// Self confines this process further, all its threads, when it has started: it executes nothing more, opens no
// listening socket and signals no other process. It was started by a thread that has called Enter.
func Self() error {
	if err := Hide(); err != nil {
		return err
	}
	probe()
	return install(later(os.Getpid()), seccomp.FilterFlagTSync)
}

// Hide keeps other processes of the user from reading the memory and the environment of this one, and the kernel from
// writing its memory to a file when it dies.
func Hide() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return os.NewSyscallError("setrlimit RLIMIT_CORE", err)
	}
	return os.NewSyscallError("prctl PR_SET_DUMPABLE", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

// probe has Go find out whether the system has IPv6. It binds sockets for that, once, when it first needs to know. The
// listener is refused before it binds one.
func probe() {
	refuse := errors.New("only a probe")
	c := net.ListenConfig{Control: func(string, string, syscall.RawConn) error { return refuse }}
	if l, err := c.Listen(context.Background(), "tcp", ":0"); err == nil {
		_ = l.Close()
	}
}
