package supervisor

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// child is one place for a process, and the process in it.
type child struct {
	index    int
	cfg      *Config
	dir      string // directory of the sockets
	memory   *memoryKills
	restarts prometheus.Counter
	up       prometheus.Gauge
	started  int // number of processes started so far
	current  atomic.Pointer[process]
	// final is called when a process has said that another try gives the same. It reports whether all should end.
	final func(ctx context.Context, err *FinalError) bool
}

// pid is the ID of the process, or 0 when none runs.
func (c *child) pid() int {
	if p := c.current.Load(); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// take makes p the process that gets the requests. nil: there is none.
func (c *child) take(p *process) {
	old := c.current.Swap(p)
	if old != nil {
		old.client.CloseIdleConnections()
	}
	if p == nil {
		c.up.Set(0)
	} else {
		c.up.Set(1)
	}
}

// run starts the child again and again until ctx is done and all processes that it started have ended.
func (c *child) run(ctx context.Context) {
	var leaving sync.WaitGroup // processes that were replaced
	defer leaving.Wait()
	log := c.cfg.Log.With().Int("process", c.index).Logger()
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.cfg.Pause), backoff.WithMaxInterval(c.cfg.MaxPause), backoff.WithMaxElapsedTime(0))
	for {
		started := time.Now()
		p, err := c.start(ctx)
		if err == nil {
			c.take(p)
			p = c.keep(ctx, p, &leaving, log)
			c.take(nil)
			started, err = p.started, p.err
		}
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Warn().Err(err).Msg("process ended badly")
			}
			return
		}
		if p != nil && c.cfg.FinalCode != 0 && p.over() && p.cmd.ProcessState.ExitCode() == c.cfg.FinalCode &&
			c.final(ctx, &FinalError{c.index, p.last}) {
			return
		}
		lived := time.Since(started)
		if lived >= c.cfg.Settled {
			pauses.Reset()
		}
		pause := pauses.NextBackOff()
		log.Error().AnErr("error", err).Stringer("lived", lived).Stringer("pause", pause).
			Msg("process ended; another takes its place")
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		c.restarts.Inc()
	}
}

// keep makes sure that there is a healthy process, first p, until the process ends without a replacement. It returns
// the last one. A process that should be replaced goes on until the next one is ready. Only then is it asked to end.
func (c *child) keep(ctx context.Context, p *process, leaving *sync.WaitGroup, log zerolog.Logger) *process {
	tick := time.NewTicker(c.cfg.LookEvery)
	defer tick.Stop()
	var next *process
	again := time.Time{} // when the next attempt is allowed
	for {
		select {
		case <-p.ended:
			if next == nil {
				return p
			}
			if ctx.Err() == nil {
				log.Error().AnErr("error", p.err).Msg("process ended before the next one was ready")
			}
			p, next = next, nil
			c.restarts.Inc()
			c.take(p)
			continue
		case <-tick.C:
		}
		c.memory.look(time.Now())
		switch {
		case ctx.Err() != nil: // the processes were asked to end
		case next == nil && time.Now().After(again) && p.status(ctx, "/healthz") == http.StatusServiceUnavailable:
			log.Error().Msg("process asks to be replaced; another is started beside it")
			var err error
			if next, err = c.start(ctx); err != nil {
				log.Error().Err(err).Msg("the process that shall replace another did not start")
				next, again = nil, time.Now().Add(c.cfg.MaxPause)
			}
		case next == nil:
		case next.status(ctx, "/readyz") == http.StatusOK:
			c.restarts.Inc() // a client that sees the next process finds it counted
			c.take(next)
			old := p
			leaving.Go(func() { old.stop(); <-old.ended })
			p, next = next, nil
		case next.over() || time.Since(next.started) > c.cfg.ReadyTimeout:
			log.Error().Bool("ended", next.over()).Msg("the process that shall replace another is not ready: it is given up")
			old := next
			leaving.Go(func() { old.stop(); <-old.ended })
			next, again = nil, time.Now().Add(c.cfg.MaxPause)
		}
	}
}
