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
