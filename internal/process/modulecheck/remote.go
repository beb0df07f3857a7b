package modulecheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/internal/process/confine"
)

// mostAtOnce is how many processes a Starter has for one process of the fleet. Beyond that it starts none.
const mostAtOnce = 64

// What a Starter answers for each byte that it gets.
const (
	started    = 's' // with the descriptors of a process: its input, its output, its handle
	notStarted = 'n'
)

// descriptors of a process that is started.
const descriptors = 3

// Starter starts the processes of checks for one process of the fleet, which may start none itself: its supervisor does
// it. What the other process sends is only that it wants one.
type Starter struct {
	Executable string // this binary
	// Enter is called on the OS thread that starts a process; nil = not called. The process is confined further then.
	Enter func() error
}

// Pair returns a connection for Serve, and the file by which another process has its other end, for OpenRemote.
func Pair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "pair")
	if ours, err = connection(os.NewFile(uintptr(fds[0]), "pair")); err != nil {
		_ = theirs.Close()
	}
	return ours, theirs, err
}

// connection makes a connection of a file, and closes the file.
func connection(f *os.File) (*net.UnixConn, error) {
	defer func() { _ = f.Close() }()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("%T is no unix socket", c)
	}
	return u, nil
}

// Serve answers what the other process asks, until that ends. It returns when all processes that it has started ended.
func (s *Starter) Serve(conn *net.UnixConn) {
	var running sync.WaitGroup
	defer running.Wait()
	defer func() { _ = conn.Close() }()
	places := make(chan struct{}, mostAtOnce)
	for one := make([]byte, 1); ; {
		if _, err := conn.Read(one); err != nil {
			return
		}
		answer, rights := []byte{notStarted}, []byte(nil)
		var files []*os.File
		select {
		case places <- struct{}{}:
			var err error
			if files, err = s.start(&running, func() { <-places }); err != nil {
				<-places
				break
			}
			answer = []byte{started}
			rights = unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd()))
		default:
		}
		_, _, err := conn.WriteMsgUnix(answer, rights, nil)
		for _, f := range files {
			_ = f.Close() // the other process has its own
		}
		if err != nil {
			return
		}
	}
}

// start starts a process, and returns what its user needs: the files to write to and to read from, and the handle, one
// end of a connection. The process is killed when the user closes the handle. How it ended comes there. ended is called
// when it has ended.
func (s *Starter) start(running *sync.WaitGroup, ended func()) (files []*os.File, err error) {
	var all []*os.File
	defer func() {
		if err != nil {
			for _, f := range all {
				_ = f.Close()
			}
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				all = append(all, r, w)
			}
		}
		return r, w
	}
	stdin, in := pipe()
	out, stdout := pipe()
	if err != nil {
		return nil, err
	}
	ours, handle, err := Pair()
	if err != nil {
		return nil, err
	}
	all = append(all, handle)
	kind := "yes"
	if s.Enter != nil {
		kind = confined
	}
	cmd := command(s.Executable, kind)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	cmd.SysProcAttr = ofProcess()
	over := make(chan struct{})
	if err := confine.Start(cmd, s.Enter, over); err != nil {
		_ = ours.Close()
		return nil, err
	}
	_, _ = stdin.Close(), stdout.Close()
	lower(cmd.Process.Pid)
	running.Go(func() { // until the user closes its end, or the process has ended
		_, _ = io.Copy(io.Discard, ours)
		_ = cmd.Process.Kill()
	})
	late := time.AfterFunc(deadline+time.Minute, func() { _ = cmd.Process.Kill() }) // its user ends it earlier
	running.Go(func() {
		why := cmd.Wait()
		late.Stop()
		close(over)
		ended()
		_ = json.NewEncoder(ours).Encode(endOf(cmd, why))
		_ = ours.Close()
	})
	return []*os.File{in, out, handle}, nil
}

// ending is how a process ended.
type ending struct {
	Used time.Duration `json:"used"`          // CPU time
	Why  string        `json:"why,omitempty"` // "" = well
}

func endOf(cmd *exec.Cmd, err error) ending {
	e := ending{Used: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if err != nil {
		e.Why = err.Error()
	}
	return e
}

// err returns nil when the process ended well.
func (e ending) err() error {
	if e.Why == "" {
		return nil
	}
	return errors.New(e.Why)
}

// Remote starts processes by the Starter of the supervisor. Any goroutine may use it.
type Remote struct {
	mu   sync.Mutex // one request at a time
	conn *net.UnixConn
}

// OpenRemote makes a Remote of a file of Pair, which it closes.
func OpenRemote(f *os.File) (*Remote, error) {
	conn, err := connection(f)
	if err != nil {
		return nil, fmt.Errorf("connection for checks of modules: %w", err)
	}
	return &Remote{conn: conn}, nil
}

// start has a process started.
func (r *Remote) start() (p child, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.conn.Write([]byte{'c'}); err != nil {
		return p, err
	}
	answer, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4*descriptors))
	_, n, _, _, err := r.conn.ReadMsgUnix(answer, rights)
	if err != nil {
		return p, err
	}
	if answer[0] != started {
		return p, errors.New("the supervisor has started no process for the check")
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return p, fmt.Errorf("descriptors of the supervisor: %w", err)
	}
	if len(messages) != 1 {
		return p, fmt.Errorf("descriptors of the supervisor: %d messages in place of one", len(messages))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return p, fmt.Errorf("descriptors of the supervisor: %w", err)
	}
	if len(fds) != descriptors {
		return p, fmt.Errorf("descriptors of the supervisor: %d in place of %d", len(fds), descriptors)
	}
	var files []*os.File
	for _, fd := range fds {
		_ = unix.SetNonblock(fd, true)
		files = append(files, os.NewFile(uintptr(fd), "check"))
	}
	handle, err := connection(files[2])
	if err != nil {
		_, _ = files[0].Close(), files[1].Close()
		return p, err
	}
	return child{in: files[0], out: files[1], kill: func() { _ = handle.CloseWrite() }, wait: func() (e ending) {
		defer func() { _, _ = files[1].Close(), handle.Close() }()
		if err := json.NewDecoder(handle).Decode(&e); err != nil {
			e.Why = "the supervisor does not say how the process ended: " + err.Error()
		}
		return e
	}}, nil
}
