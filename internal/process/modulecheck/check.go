package modulecheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates"
)

const (
	// deadline is how long a process may take, also on a busy machine. It is killed then.
	deadline = 2 * time.Minute
	// fault is how much CPU time a process that did not end in time must have used for that to be the module's fault: a
	// machine that is busy gives it less.
	fault = 2 * time.Second
	// maxOutput is how many bytes of the process's output are read. It is killed when it writes more.
	maxOutput = 4 << 20
)

// Checks opens checks. Any goroutine may use it.
type Checks struct {
	isolates.CheckConfig // how modules run
	// Executable is this binary; its main, or TestMain, calls BeChild. "" = modules are checked in a thread of this
	// process.
	Executable string
	// Remote starts the processes, where this process may not; nil = it does itself.
	Remote *Remote
}

// compilers are what a process that has one module of the owner needs.
func (c *Checks) compilers(owner string) workers.Compilers {
	if c.CompilersOf == nil {
		return c.Compilers
	}
	return c.CompilersOf(owner).Within(c.Compilers)
}

// Checker checks one module. One goroutine uses it.
type Checker struct {
	checks *Checks
	log    func(events.LogLine)
	thread *isolates.Checker // nil: the check has a process
	lost   bool
}

// Open returns a check that passes what the module writes to log, on any goroutine. Close must be called.
func (c *Checks) Open(log func(events.LogLine)) *Checker { return &Checker{checks: c, log: log} }

// Check loads the module, and returns which handlers it has, as isolates.Checker does.
func (c *Checker) Check(ctx context.Context, w *workers.Worker) (workers.Handlers, error) {
	if c.checks.Executable != "" || c.checks.Remote != nil {
		child, err := c.start()
		if err == nil {
			return child.check(ctx, c, w)
		}
	}
	var err error
	if c.thread, err = isolates.OpenChecker(loading{c.log}, c.checks.CheckConfig); err != nil {
		return workers.Handlers{}, err
	}
	return c.thread.Check(ctx, w)
}

// Close ends the check. lost reports whether the module cost the check's process, or its thread. inThread says that it
// was a thread of this process.
func (c *Checker) Close() (lost, inThread bool) {
	if c.thread == nil {
		return c.lost, false
	}
	c.thread.Close()
	return c.thread.LostThread(), true
}

// child is a process that checks a module.
type child struct {
	in   io.WriteCloser
	out  io.Reader
	pid  int // 0: it is a child of another process
	kill func()
	wait func() ending // called once
}

// errNoChild says that the program that was started to check a module did not call BeChild: it would start itself again
// without end.
var errNoChild = errors.New("this process was started to check a module: its main must call modulecheck.BeChild first")

// start starts a process. It has read nothing yet.
func (c *Checker) start() (p child, err error) {
	if os.Getenv(variable) != "" {
		return p, errNoChild
	}
	if c.checks.Remote != nil {
		return c.checks.Remote.start()
	}
	cmd := command(c.checks.Executable, "yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals of a terminal are for the parent
	if p.in, err = cmd.StdinPipe(); err != nil {
		return p, err
	}
	if p.out, err = cmd.StdoutPipe(); err != nil {
		return p, err
	}
	if err = cmd.Start(); err != nil {
		return p, err
	}
	lower(cmd.Process.Pid)
	p.pid = cmd.Process.Pid
	p.kill = func() { _ = cmd.Process.Kill() }
	p.wait = func() ending { return endOf(cmd, cmd.Wait()) }
	return p, nil
}

// command is that of a process that checks a module. Its user kills it.
func command(executable, kind string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), executable)
	cmd.Env = []string{variable + "=" + kind}
	return cmd
}

// lower lets processes of the fleet come before a process: at the processors, and when memory runs out.
func lower(pid int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, niceness)
	endsFirst(pid)
}

// check sends the request, passes on what the module writes, and waits for the end of the process.
func (p child) check(ctx context.Context, c *Checker, w *workers.Worker) (workers.Handlers, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	defer context.AfterFunc(ctx, p.kill)()
	text, err := json.Marshal(request{
		Owner: w.Owner, Name: w.Name, Version: w.Version, Number: w.Number, Hash: w.Hash, Spec: w.Spec, Code: w.Code,
		File: w.File, SourceMap: w.SourceMap, Addresses: c.checks.AllowAddresses, Hosts: c.checks.AllowHosts,
		Compilers: c.checks.compilers(w.Owner),
	})
	if err == nil {
		_, err = io.Copy(p.in, bytes.NewReader(text)) // it reads all before it does anything
	}
	_ = p.in.Close()
	var answer *result
	if err == nil {
		answer, err = p.read(c.log)
	}
	if answer == nil {
		p.kill()
	}
	ended := p.wait()
	if answer == nil {
		return workers.Handlers{}, c.died(ctx, w, ended.Used, errors.Join(err, ended.err()))
	}
	c.lost = answer.Lost
	switch {
	case answer.Failure != nil:
		return workers.Handlers{}, answer.Failure
	case answer.Error != "":
		return workers.Handlers{}, fmt.Errorf("check of %s: %s", w.Target(), answer.Error)
	}
	return answer.Handlers, nil
}

// read reads messages until the result. It returns nil if there is none.
func (p child) read(log func(events.LogLine)) (*result, error) {
	messages := json.NewDecoder(io.LimitReader(p.out, maxOutput))
	for {
		var m message
		if err := messages.Decode(&m); err != nil {
			return nil, err
		}
		if m.Line != nil {
			log(*m.Line)
		}
		if m.Result != nil {
			return m.Result, nil
		}
	}
}

// died returns the error of a process that has ended without a result. The client's end, and the fleet's, is not the
// module's fault.
func (c *Checker) died(ctx context.Context, w *workers.Worker, used time.Duration, why error) error {
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("check of %s: %w", w.Target(), err)
	}
	if ctx.Err() != nil {
		c.lost = used >= fault
		return events.Fail(events.ReasonTimeout, "the module was not loaded in time: it had %s of CPU time", used)
	}
	c.lost = true
	return events.Fail(events.ReasonCrash, "the process that loaded the module died: %v", why)
}
