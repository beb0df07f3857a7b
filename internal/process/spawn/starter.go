package spawn

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/internal/process/cgroup"
)

const (
	// CheckVariable makes a process of this program check a module. Its value is "yes", or Confined.
	CheckVariable = "_PINWHEEL_CHECK"
	// Confined is its value in a process that was started by a thread that was confined.
	Confined = "confined"
	// CellVariable makes a process a cell. Its value is the first of the descriptors that it has inherited.
	CellVariable = "_PINWHEEL_CELL"
)

// kind is what a process is for. It is the byte by which a Spawner asks for one.
type kind byte

const (
	check kind = 'c'
	cell  kind = 'k'
)

// mostAtOnce is how many processes of a kind a Starter has for one process of the fleet. Beyond that it starts none.
var mostAtOnce = map[kind]int{check: 64, cell: 256}

// What a Starter answers for each byte that it gets.
const (
	started    = 's' // with the descriptors of a process, the last one that of its handle
	notStarted = 'n' // then a byte with the length of a text that says why, and the text
)

// mostDescriptors are those with an answer.
const mostDescriptors = 4

// CheckTime is how long a process of a check may take, also on a busy machine. Its user kills it then, and the Starter
// a minute later.
const CheckTime = 2 * time.Minute

// Starter starts processes for one process of the fleet. What the other process sends is only what kind of process it
// wants.
type Starter struct {
	Executable string // this program
	// Enter is called on the OS thread that starts a process of a check; nil = not called. The process is confined
	// further then.
	Enter func() error
	// ConfineCells says whether cells are confined.
	ConfineCells bool
	// HeapBytes bounds the heaps of the pool of a cell. A cell that is confined gets no more memory than that, and some
	// beside it. 0 = they are as large as V8 can have them.
	HeapBytes int64
	// Cgroups has one for each cell, with CellLimits; nil = they have none. No cell starts that gets none.
	Cgroups *cgroup.Tree
}

// Serve answers what the other process asks, until that ends. It returns when all processes that it has started ended.
func (s *Starter) Serve(conn *net.UnixConn) {
	var running sync.WaitGroup
	defer running.Wait()
	defer func() { _ = conn.Close() }()
	places := map[kind]chan struct{}{}
	for k, most := range mostAtOnce {
		places[k] = make(chan struct{}, most)
	}
	for one := make([]byte, 1); ; {
		if _, err := conn.Read(one); err != nil {
			return
		}
		files, err := s.one(kind(one[0]), places[kind(one[0])], &running)
		answer, rights := answerOf(files, err)
		_, _, err = conn.WriteMsgUnix(answer, rights, nil)
		closeAll(files) // the other process has its own
		if err != nil {
			return
		}
	}
}

// answerOf is the answer when a process was started, or was not because of the error, and what is sent beside it.
func answerOf(files []*os.File, err error) (answer, rights []byte) {
	if err != nil {
		why := err.Error()
		why = why[:min(len(why), 255)]
		return append([]byte{notStarted, byte(len(why))}, why...), nil
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	return []byte{started}, unix.UnixRights(fds...)
}

// errFull says that there are as many processes as there may be.
var errFull = errors.New("too many processes of that kind are there")

// one starts a process of that kind, if there is a place for it.
func (s *Starter) one(k kind, places chan struct{}, running *sync.WaitGroup) ([]*os.File, error) {
	select {
	case places <- struct{}{}:
		files, err := s.start(k, running, func() { <-places })
		if err != nil {
			<-places
		}
		return files, err
	default: // also of a kind that is none
		return nil, errFull
	}
}

// errNoChild says that the program that was started did not call what makes it such a process: it would start itself
// again without end.
var errNoChild = errors.New("this process was started to be a cell, or to check a module: its main must call " +
	"cell.BeChild and modulecheck.BeChild first")

// process is one that was started.
type process struct {
	cmd     *exec.Cmd
	ours    *net.UnixConn // the other end of its handle
	over    chan struct{} // closed when it has ended
	ended   func()
	output  *ends         // nil: its user reads it
	control *os.File      // where a cell hears how to confine itself; nil = it is none
	refused []string      // parts of the confinement
	cell    orders        // what the cell hears
	group   *cgroup.Group // nil = it has none
	given   []*os.File    // for its user
}

// start starts a process, and returns what its user needs. The last file is the handle, one end of a connection. The
// process is killed when the user closes it, or its writing half. First a birth comes there, and an Ending when the
// process has ended. ended is called then.
func (s *Starter) start(k kind, running *sync.WaitGroup, ended func()) ([]*os.File, error) {
	if os.Getenv(CheckVariable) != "" || os.Getenv(CellVariable) != "" {
		return nil, errNoChild
	}
	p := &process{ended: ended, over: make(chan struct{})}
	begin := p.beginCheck
	if k == cell {
		begin = p.beginCell
	}
	var handle *os.File
	var err error
	if p.ours, handle, err = Pair(); err != nil {
		return nil, err
	}
	if err := begin(s); err != nil {
		closeAll(append(p.given, handle))
		_ = p.ours.Close()
		return nil, err
	}
	lower(k, p.cmd.Process.Pid)
	running.Go(p.follow)
	running.Go(p.announce)
	running.Go(p.wait)
	if p.output != nil {
		running.Go(p.hush)
	}
	return append(p.given, handle), nil
}

// follow kills the process when its user closes its end. It returns then, or when the process has ended.
func (p *process) follow() {
	_, _ = io.Copy(io.Discard, p.ours)
	_ = p.cmd.Process.Kill()
}

// announce tells the user that the process has begun. One that does not is killed.
func (p *process) announce() {
	b := birth{PID: p.cmd.Process.Pid, Refused: p.refused}
	var err error
	if p.control != nil {
		more, failed := p.cell.give(p.control)
		b.Refused, err = append(b.Refused, more...), failed
	}
	if err == nil {
		err = json.NewEncoder(p.ours).Encode(news{Birth: &b})
	}
	if err != nil {
		_ = p.cmd.Process.Kill()
	}
}

// hush kills a process that writes more than anybody reads.
func (p *process) hush() {
	select {
	case <-p.output.full:
		_ = p.cmd.Process.Kill()
	case <-p.over:
	}
}

// wait waits for the end of the process, and tells it.
func (p *process) wait() {
	if p.control == nil { // its user ends it earlier
		late := time.AfterFunc(CheckTime+time.Minute, func() { _ = p.cmd.Process.Kill() })
		defer late.Stop()
	}
	e := endOf(p.cmd, p.cmd.Wait())
	if p.group != nil {
		e.Memory = p.group.Close() && e.Signal == syscall.SIGKILL
	}
	if p.output != nil {
		e.Text = p.output.text()
	}
	close(p.over)
	p.ended()
	_ = json.NewEncoder(p.ours).Encode(news{Ending: &e})
	_ = p.ours.Close()
}

// news of a process, for its user: first its birth, unless it ends before, and then its end.
type news struct {
	Birth  *birth  `json:"birth,omitempty"`
	Ending *Ending `json:"ending,omitempty"`
}

// birth is what a process is, when it has begun.
type birth struct {
	PID     int      `json:"pid"`
	Refused []string `json:"refused,omitempty"` // parts of the confinement of a cell, and why
}

// Ending is how a process ended.
type Ending struct {
	CPU    time.Duration  `json:"cpu"`              // time that it has used
	Why    string         `json:"why,omitempty"`    // "" = well
	Code   int            `json:"code,omitempty"`   // its exit status; -1 = a signal ended it
	Signal syscall.Signal `json:"signal,omitempty"` // 0 = none
	Text   string         `json:"text,omitempty"`   // what a cell wrote: the first 6 KiB, and the last 2
	// Memory says that the kernel ended a cell because it used more than it may. Without a cgroup nobody knows.
	Memory bool `json:"memory,omitempty"`
}

func endOf(cmd *exec.Cmd, err error) Ending {
	state := cmd.ProcessState
	e := Ending{CPU: state.UserTime() + state.SystemTime(), Code: state.ExitCode()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	if err != nil {
		e.Why = err.Error()
	}
	return e
}

// Err returns nil when the process ended well.
func (e Ending) Err() error {
	if e.Why == "" {
		return nil
	}
	return errors.New(e.Why)
}

// command is that of a process with that variable. Its user kills it.
func command(executable, variable, value string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), executable)
	cmd.Env, cmd.Dir = []string{variable + "=" + value}, "/"
	cmd.SysProcAttr = ofProcess()
	return cmd
}

// niceness of a process of a check.
const niceness = 5
