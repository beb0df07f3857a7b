package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/process/confine"
)

// process is a process that was started.
type process struct {
	cmd     *exec.Cmd
	socket  string
	client  *http.Client
	started time.Time
	stop    func()        // asks it to end, and later kills it
	ended   chan struct{} // closed when it has ended
	last    string        // line that it wrote and that is no JSON. Read it only after ended
	err     error         // error of its end: nil when it ended well after it was asked to. Read it only after ended
}

// socketOf is the socket of the n-th process of a child. Each process has its own, because two of them may run.
func socketOf(dir string, child, n int) string {
	return filepath.Join(dir, fmt.Sprintf("%d-%d.sock", child, n))
}

// start starts a process. When ctx is done, the process is asked to end, and later killed.
func (c *child) start(ctx context.Context) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.started++
	ctx, stop := context.WithCancel(ctx)
	p := &process{socket: socketOf(c.dir, c.index, c.started), started: time.Now(), stop: stop, ended: make(chan struct{})}
	p.client = newClient(p.socket)
	what := c.cfg.Command(c.index, p.socket)
	cmd := exec.CommandContext(ctx, what.Path, what.Args...)
	p.cmd, cmd.Env, cmd.ExtraFiles = cmd, what.Env, what.Files
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = c.cfg.StopTimeout
	// It is in its own process group. So only the supervisor passes on Ctrl-C, and it does not arrive twice.
	cmd.SysProcAttr = ofChild()
	out := &lines{take: func(line []byte) {
		if line[0] != '{' {
			p.last = string(line)
		}
		c.cfg.Output(c.index, line)
	}}
	cmd.Stdout, cmd.Stderr = out, out
	err := what.Err
	if err == nil {
		err = confine.Start(cmd, c.cfg.Enter, p.ended)
	}
	if what.Started != nil {
		what.Started()
	}
	if err != nil {
		stop()
		c.tellEnd(p, End{Code: -1})
		return nil, err
	}
	go func() {
		defer close(p.ended)
		err := cmd.Wait()
		out.flush()
		p.client.CloseIdleConnections()
		_ = os.Remove(p.socket) // the process may have removed it
		switch {
		case ctx.Err() != nil && cmd.ProcessState.Success():
		case err == nil:
			p.err = errors.New("exit status 0, although it was not asked to end")
		default:
			p.err = err
		}
		c.tellEnd(p, endOf(cmd.ProcessState, ctx.Err() != nil, c.memory.look(time.Now())))
		stop()
	}()
	return p, nil
}

func endOf(state *os.ProcessState, asked bool, memory Memory) End {
	end := End{Asked: asked, Code: state.ExitCode(), Memory: memory}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.Signal = status.Signal()
	}
	return end
}

func (c *child) tellEnd(p *process, end End) {
	if c.cfg.Ended != nil {
		c.cfg.Ended(c.index, p.socket, end)
	}
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// status is the status of its answer for path, or 0 when it does not answer.
func (p *process) status(ctx context.Context, path string) int {
	a := p.ask(ctx, path, "")
	if a.Err != nil {
		return 0
	}
	return a.Status
}
