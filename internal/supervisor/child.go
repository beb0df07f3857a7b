package supervisor

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// child is one place for a process, and the process in it.
type child struct {
	index    int
	cfg      *Config
	socket   string
	client   *http.Client
	restarts prometheus.Counter
	up       prometheus.Gauge
	pid      atomic.Int64 // 0: none runs
}

// run starts the child, again and again, until ctx is done and it has ended.
func (c *child) run(ctx context.Context) {
	// The kernel takes the end of the thread that started a child for the end of its parent: this one stays.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	log := c.cfg.Log.With().Int("process", c.index).Logger()
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.cfg.Pause), backoff.WithMaxInterval(c.cfg.MaxPause), backoff.WithMaxElapsedTime(0))
	for {
		started := time.Now()
		err := c.once(ctx)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Warn().Err(err).Msg("process ended badly")
			}
			return
		}
		lived := time.Since(started)
		if lived >= c.cfg.Settled {
			pauses.Reset()
		}
		pause := pauses.NextBackOff()
		log.Error().AnErr("error", err).Stringer("lived", lived).Stringer("pause", pause).Msg("process ended; another takes its place")
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		c.restarts.Inc()
	}
}

// once runs a process until it ends. When ctx is done, it is told to end, and later made to. The error is nil
// when it ended well after ctx was done.
func (c *child) once(ctx context.Context) error {
	// A socket that nobody listens on any more cannot be bound again.
	if err := os.Remove(c.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	what := c.cfg.Command(c.index, c.socket)
	cmd := exec.CommandContext(ctx, what.Path, what.Args...)
	cmd.Env = what.Env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = c.cfg.StopTimeout
	// In a group of its own, so that Ctrl-C is the supervisor's to pass on and does not come twice.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out := &lines{take: func(line []byte) { c.cfg.Output(c.index, line) }}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	c.pid.Store(int64(cmd.Process.Pid))
	c.up.Set(1)
	err := cmd.Wait()
	c.up.Set(0)
	c.pid.Store(0)
	out.flush()
	switch {
	case ctx.Err() != nil && cmd.ProcessState.Success():
		return nil
	case err == nil:
		return errors.New("exit status 0, which nobody asked for")
	}
	return err
}
