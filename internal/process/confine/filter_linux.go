package confine

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// action is what a filter does with a call.
func action(errno unix.Errno) seccomp.Action { return seccomp.ActionErrno | seccomp.Action(errno) }

// namespaces are the flags by which clone makes namespaces.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
	unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// unless is a condition that an argument has none of these values. The kernel reads 32 bits of most arguments, a filter
// compares 64: so filters say what is allowed, and whatever differs from it, in these bits too, is refused.
func unless(argument uint32, values ...uint64) (all seccomp.ArgumentConditions) {
	for _, v := range values {
		all = append(all, seccomp.Condition{Argument: argument, Operation: seccomp.NotEqual, Value: v})
	}
	return all
}

func when(argument uint32, operation seccomp.Operation, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: operation, Value: value}
}

// sockets are those that a process makes: TCP and UDP, and netlink to ask for the names of interfaces.
func sockets() (list []seccomp.NameWithConditions) {
	var kinds []uint64
	for _, kind := range []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
		for _, flags := range []uint64{0, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK} {
			kinds = append(kinds, kind|flags)
		}
	}
	for _, conditions := range []seccomp.ArgumentConditions{
		unless(0, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK),
		slices.Concat(unless(0, unix.AF_NETLINK), unless(1, kinds...)),
		slices.Concat(unless(0, unix.AF_NETLINK), unless(2, 0, unix.IPPROTO_TCP, unix.IPPROTO_UDP)),
		append(unless(2, unix.NETLINK_ROUTE), when(0, seccomp.Equal, unix.AF_NETLINK)),
	} {
		list = append(list, seccomp.NameWithConditions{Name: "socket", Conditions: conditions})
	}
	return list
}

// first is the policy of the thread that starts a process.
func first(goarch string) seccomp.Policy {
	return seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		// libc tries clone then, whose flags a filter can see.
		{Names: []string{"clone3"}, Action: action(unix.ENOSYS)},
		{Names: slices.Concat(refused, refusedOf[goarch]), Action: action(unix.EPERM)},
		{NamesWithCondtions: append(sockets(), seccomp.NameWithConditions{
			Name: "clone", Conditions: seccomp.ArgumentConditions{when(0, seccomp.BitsSet, namespaces)},
		}), Action: action(unix.EPERM)},
	}}
}

// later is what the process with that ID adds: it has started, and signals itself only.
func later(pid int) seccomp.Policy {
	self := unless(0, uint64(pid))
	return seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Names: refusedLater, Action: action(unix.EPERM)},
		{NamesWithCondtions: []seccomp.NameWithConditions{
			{Name: "kill", Conditions: self}, {Name: "tgkill", Conditions: self},
			{Name: "prlimit64", Conditions: unless(0, 0, uint64(pid))},
		}, Action: action(unix.EPERM)},
	}}
}

// firstOfCell is the policy of the thread that starts a cell. The process is made with namespaces of its own by clone,
// if users says so. What it starts as has nothing of others in it, and adds allowed before it has.
func firstOfCell(goarch string, users bool) seccomp.Policy {
	p := first(goarch)
	if users {
		conditions := &p.Syscalls[len(p.Syscalls)-1].NamesWithCondtions
		*conditions = slices.DeleteFunc(*conditions, func(c seccomp.NameWithConditions) bool { return c.Name == "clone" })
	}
	return p
}

// newThread are the flags with which threads are made: libc's, and Go's where it does so itself.
const newThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD |
	unix.CLONE_SYSVSEM

// allowed is the policy of a cell with that ID, after it has started: what Go, V8 and libc call, and nothing else. What
// nobody here knows gets the answer of an older kernel, for which they all have another way.
func allowed(goarch string, pid int) seccomp.Policy {
	var some []seccomp.NameWithConditions
	only := func(name string, argument uint32, values ...uint64) {
		for _, v := range values {
			some = append(some, seccomp.NameWithConditions{Name: name,
				Conditions: seccomp.ArgumentConditions{when(argument, seccomp.Equal, v)}})
		}
	}
	// What is shared, and what grows as a stack does, is not counted as data: CellSelf has a limit of that.
	some = append(some, seccomp.NameWithConditions{Name: "mmap", Conditions: seccomp.ArgumentConditions{
		when(3, seccomp.BitsNotSet, unix.MAP_SHARED|unix.MAP_GROWSDOWN)}})
	only("clone", 0, newThread, newThread|unix.CLONE_SETTLS|unix.CLONE_PARENT_SETTID|unix.CLONE_CHILD_CLEARTID)
	only("prctl", 0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA)
	only("kill", 0, uint64(pid))
	only("tgkill", 0, uint64(pid))
	only("sched_setattr", 0, 0)
	only("fcntl", 1, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL)
	only("setsockopt", 1, unix.SOL_SOCKET)
	only("getsockopt", 1, unix.SOL_SOCKET)
	only("ioctl", 1, unix.TCGETS)
	for _, own := range []uint64{0, uint64(pid)} { // it reads limits, and sets none
		some = append(some, seccomp.NameWithConditions{Name: "prlimit64", Conditions: seccomp.ArgumentConditions{
			when(0, seccomp.Equal, own), when(2, seccomp.Equal, 0)}})
	}
	return seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{
		{Names: slices.Concat(inCells, inCellsOf[goarch]), NamesWithCondtions: some, Action: seccomp.ActionAllow},
		{Names: slices.Concat(known, knownOf[goarch]), Action: action(unix.EPERM)},
	}}
}

// offsets in what a filter sees of a call.
const (
	offsetCall     = 0
	offsetArch     = 4
	offsetArgument = 16 // that with number 0; each has 8 bytes, on all architectures here the low ones first
)

// owners are the commands of fcntl that have the kernel signal another process. They are compared as the kernel does:
// their low 32 bits.
func owners(info *arch.Info) []bpf.Instruction {
	deny := bpf.RetConstant{Val: uint32(action(unix.EPERM))}
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetCall, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(info.SyscallNames["fcntl"]), SkipTrue: 5},
		bpf.LoadAbsolute{Off: offsetArgument + 8, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.F_SETOWN, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.F_SETSIG, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.F_SETOWN_EX, SkipTrue: 1},
		deny,
	}
}

// program assembles a policy. Calls by the conventions of another architecture are refused: their numbers mean others.
func program(p seccomp.Policy) ([]bpf.RawInstruction, error) {
	info, err := arch.GetInfo(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	rest, err := p.Assemble()
	if err != nil {
		return nil, err
	}
	if p.DefaultAction == seccomp.ActionErrno { // the library knows EPERM only, and has it at the end
		rest[len(rest)-1] = bpf.RetConstant{Val: uint32(action(unix.ENOSYS))}
	}
	return bpf.Assemble(slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(action(unix.ENOSYS))},
	}, owners(info), rest))
}

// install adds a filter to this thread; with the flag TSYNC to all threads of the process.
func install(p seccomp.Policy, flags seccomp.FilterFlag) error {
	raw, err := program(p)
	if err != nil {
		return err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uintptr(flags),
		uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(code)
	switch {
	case errno != 0:
		return os.NewSyscallError("seccomp", errno)
	case thread != 0:
		return fmt.Errorf("seccomp: thread %d has other filters", thread)
	}
	return nil
}
