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
)

// process is one that was started.
type process struct {
	cmd     *exec.Cmd
	socket  string
	client  *http.Client
	started time.Time
	stop    func()        // tells it to end, and later makes it
	ended   chan struct{} // closed when it has
	err     error         // of its end: nil when it ended well after it was told to. To be read after ended
}

// socketOf is where the n-th process of a child is asked. Each has its own: two of them may run.
func socketOf(dir string, child, n int) string {
	return filepath.Join(dir, fmt.Sprintf("%d-%d.sock", child, n))
}

// start starts a process. When ctx is done, it is told to end, and later made to.
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
	p.cmd, cmd.Env = cmd, what.Env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = c.cfg.StopTimeout
	// In a group of its own, so that Ctrl-C is the supervisor's to pass on and does not come twice.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out := &lines{take: func(line []byte) { c.cfg.Output(c.index, line) }}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		stop()
		return nil, err
	}
	go func() {
		defer close(p.ended)
		err := cmd.Wait()
		out.flush()
		p.client.CloseIdleConnections()
		_ = os.Remove(p.socket) // it may have done so itself
		switch {
		case ctx.Err() != nil && cmd.ProcessState.Success():
		case err == nil:
			p.err = errors.New("exit status 0, which nobody asked for")
		default:
			p.err = err
		}
		stop()
	}()
	return p, nil
}

// over reports whether it has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// status is what it answers path with, 0 when it does not.
func (p *process) status(ctx context.Context, path string) int {
	a := p.ask(ctx, path, "")
	if a.Err != nil {
		return 0
	}
	return a.Status
}
