package breach

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Targets are what an attempt aims at.
type Targets struct {
	Secret string // a file that the process has no use for
	Dir    string // a directory that it has no use for
	Victim int    // a process of the same user, and with the same parent
	Parent int    // the process that has started it; 0 = the kernel says so
}

// Variable has Targets as JSON, in the environment of a process that shall try.
const Variable = "_PINWHEEL_TEST_BREACH"

// Environ is the variable for these targets.
func (t Targets) Environ() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return Variable + "=" + string(text)
}

// Asked returns the targets in the environment of this process; false = there are none.
func Asked() (t Targets, ok bool) {
	text := os.Getenv(Variable)
	return t, text != "" && json.Unmarshal([]byte(text), &t) == nil
}

// call makes a call of the kernel.
func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	if number == unix.SYS_IO_URING_SETUP || number == unix.SYS_SOCKET {
		_ = unix.Close(int(r))
	}
	return nil
}

func socket(family, kind, protocol int) func() error {
	return func() error { return call(unix.SYS_SOCKET, uintptr(family), uintptr(kind), uintptr(protocol)) }
}

// read reads the beginning of a file.
func read(path string) func() error {
	return func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = f.Read(make([]byte, 16))
		return err
	}
}

// Attempts are all, by name. Each returns nil when it succeeded.
func (t Targets) Attempts() map[string]func() error {
	parent := cmp.Or(t.Parent, os.Getppid())
	of := func(pid int, file string) string { return fmt.Sprintf("/proc/%d/%s", pid, file) }
	all := map[string]func() error{
		"read a file":             read(t.Secret),
		"list a directory":        func() error { _, err := os.ReadDir(t.Dir); return err },
		"write a temporary file":  func() error { return os.WriteFile(t.Dir+"/x"+strconv.Itoa(os.Getpid()), nil, 0o600) },
		"remove a file":           func() error { return os.Remove(t.Dir + "/remove") },
		"read a parent's environ": read(of(parent, "environ")),
		"read a parent's memory":  func() error { f, err := os.Open(of(parent, "mem")); _ = f.Close(); return err },
		"see a parent's files":    func() error { _, err := os.Readlink(of(parent, "fd/0")); return err },
		"write its own memory": func() error {
			f, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
			_ = f.Close()
			return err
		},
		"execute":          func() error { return exec.Command("/bin/true").Run() },
		"signal a parent":  func() error { return unix.Kill(parent, unix.SIGURG) },
		"signal a thread":  func() error { return signalThreads(parent) },
		"signal by fcntl":  func() error { return signalByFcntl(parent) },
		"make io_uring":    ring,
		"raw socket":       socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		"packet socket":    socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0),
		"unix socket":      socket(unix.AF_UNIX, unix.SOCK_STREAM, 0),
		"netfilter socket": socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
		"listen":           func() error { return listen(false) },
		"bind":             func() error { return listen(true) },
		"unshare":          func() error { return inThread(func() error { return unix.Unshare(unix.CLONE_NEWUSER) }) },
		"limit a parent": func() error {
			return unix.Prlimit(parent, unix.RLIMIT_NOFILE, nil, &unix.Rlimit{})
		},
	}
	if t.Victim != 0 {
		all["trace another"] = func() error {
			return inThread(func() error {
				if err := unix.PtraceSeize(t.Victim); err != nil {
					return err
				}
				return unix.PtraceDetach(t.Victim)
			})
		}
		all["signal another"] = func() error { return unix.Kill(t.Victim, unix.SIGURG) }
		all["read another's environ"] = read(of(t.Victim, "environ"))
		all["read another's memory"] = func() error {
			var local [1]byte
			_, err := unix.ProcessVMReadv(t.Victim, []unix.Iovec{{Base: &local[0], Len: 1}},
				[]unix.RemoteIovec{{Base: 1, Len: 1}}, 0)
			if err == unix.EFAULT { // it was allowed to look
				return nil
			}
			return err
		}
	}
	return all
}

// inThread calls f on an OS thread that ends afterwards.
func inThread(f func() error) error {
	done := make(chan error)
	go lock(func() { done <- f() })
	return <-done
}

func ring() error {
	var params [120]byte
	return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])))
}

func listen(bind bool) error {
	if bind {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err == nil {
			_ = l.Close()
		}
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Listen(fd, 1) // takes a free port
}

// signalThreads signals each thread of a process, with a signal that Go ignores.
func signalThreads(pid int) (err error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		if err = unix.Tgkill(pid, tid, unix.SIGURG); err == nil {
			return nil
		}
	}
	return err
}

// signalByFcntl has the kernel signal a process when something can be read.
func signalByFcntl(pid int) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	if _, err := unix.FcntlInt(r.Fd(), unix.F_SETOWN|1<<32, pid); err != nil { // the kernel ignores the high bits
		return err
	}
	return nil
}

// Report is what the attempts gave: "" = it succeeded, else the error.
type Report map[string]string

// Try makes all attempts.
func (t Targets) Try() Report {
	r := Report{}
	for name, attempt := range t.Attempts() {
		r[name] = ""
		if err := attempt(); err != nil {
			r[name] = err.Error()
		}
	}
	return r
}

// line begins the line of a report.
const line = "breach: "

// Write writes a report as one line.
func (r Report) Write(to io.Writer) error {
	text, err := json.Marshal(r)
	if err == nil {
		_, err = fmt.Fprintf(to, "%s%s\n", line, text)
	}
	return err
}

// Read finds a report in text; nil = there is none.
func Read(text string) (r Report) {
	for l := range bytes.Lines([]byte(text)) {
		_, rest, ok := bytes.Cut(l, []byte(line))
		if ok && json.Unmarshal(rest, &r) == nil {
			return r
		}
	}
	return nil
}

// lock calls f on an OS thread that ends afterwards.
func lock(f func()) {
	runtime.LockOSThread()
	f()
}
