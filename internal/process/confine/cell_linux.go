package confine

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

const (
	// nobody is the user and the group of a cell that root starts. Who has no name in a user namespace has it too.
	nobody = 65534

	// own are the namespaces of a cell beside that of users.
	own = unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNS |
		unix.CLONE_NEWCGROUP

	cellFiles = 32 // open files of a cell: it inherits four, and Go has two or three
)

// ofCell are the restrictions of a process, and connections by TCP.
var ofCell = landlock.Config{
	HandledAccessFS:  restrictions.HandledAccessFS,
	HandledAccessNet: ll.AccessNetBindTCP | ll.AccessNetConnectTCP,
	Scoped:           restrictions.Scoped,
}

func isRoot() bool { return os.Geteuid() == 0 }

// attributes has the command start a process in this way, and the kernel kill it when the thread ends that has started
// it. In a user namespace nobody has a name, and so no rights over files of others.
func (s *Started) attributes(w way, executable string) {
	s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if w.users {
		s.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | own
	}
	if self, err := os.Executable(); w.nobody && err == nil && self == executable {
		s.Path = "/proc/self/exe" // the directories above the program may be root's alone
	}
}

// enter confines the calling OS thread, which must end afterwards. An error is of the way.
func (c Cell) enter(w way) (r Report, err error) {
	take := func(part string, err error) {
		if err != nil {
			r = append(r, Refused{part, err})
		}
	}
	take(Capabilities, dropCapabilities())
	if w.namespaces {
		if err := unix.Unshare(own); err != nil {
			return nil, os.NewSyscallError("unshare", err)
		}
	}
	take(Files, restrictTo(ofCell, c.rules(), 0))
	if w.nobody {
		if err := becomeNobody(); err != nil {
			return nil, err
		}
	}
	take(SystemCalls, install(firstOfCell(runtime.GOARCH, w.users), 0))
	return r, nil
}

// becomeNobody takes root's user and groups from the calling OS thread only. libc's functions would take them from all.
func becomeNobody() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return os.NewSyscallError("setgroups", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, nobody, nobody, nobody); errno != 0 {
		return os.NewSyscallError("setresgid", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
		return os.NewSyscallError("setresuid", errno)
	}
	return nil
}

// rules let a process start: the kernel executes the program and the loader, which maps the libraries.
func (c Cell) rules() (list []landlock.Rule) {
	for _, path := range append([]string{c.Executable, "/etc/ld.so.cache"}, libraries...) {
		list = append(list, pathRule(path, accessRead|accessExecute)...)
	}
	return list
}

// CellSelf confines this process further, all its threads, before it runs anything of others. ownUsers is that of
// Started. data is how many bytes of memory it may have: what the kernel counts are private mappings that it may write,
// and not what V8 only reserves. It was started by Cell.Start.
func CellSelf(ownUsers bool, data uint64) (r Report) {
	take := func(part string, err error) {
		if err != nil {
			r = append(r, Refused{part, err})
		}
	}
	limits := []limit{
		{"NOFILE", unix.RLIMIT_NOFILE, cellFiles}, {"FSIZE", unix.RLIMIT_FSIZE, 0},
		{"MEMLOCK", unix.RLIMIT_MEMLOCK, 0}, {"MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0},
		{"DATA", unix.RLIMIT_DATA, data},
	}
	if ownUsers {
		limits = append(limits, limit{"NPROC", unix.RLIMIT_NPROC, CellThreads})
	}
	var refused []error
	for _, l := range limits {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			refused = append(refused, l.err(err))
		}
	}
	take(Limits, errors.Join(refused...))
	take(Files, Hide())
	take(Files, restrictAllThreads())
	take(SystemCalls, install(allowed(runtime.GOARCH, os.Getpid()), seccomp.FilterFlagTSync))
	return r
}

// restrictAllThreads lets no thread of this process open anything, where Landlock can do that to a process that has
// threads. Elsewhere the calls that open anything are refused.
func restrictAllThreads() error {
	if version, err := ll.LandlockGetABIVersion(); err != nil || version < 8 {
		return nil
	}
	return restrictTo(ofCell, nil, ll.FlagRestrictSelfTSync)
}
