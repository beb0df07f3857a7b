package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Supervisor keeps a number of child processes running.
type Supervisor struct {
	cfg      Config
	dir      string // directory of the sockets; only this user can access it
	children []*child
}

// maxSocket is the maximum length of the path of a unix socket, in bytes.
const maxSocket = 107

// Open makes a supervisor. Run starts its children. Call Close after Run.
func Open(cfg Config) (*Supervisor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pinwheel-")
	if err != nil {
		return nil, fmt.Errorf("supervisor: directory for sockets: %w", err)
	}
	if longest := socketOf(dir, MaxProcesses, 1e9); len(longest) > maxSocket {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("supervisor: %s is too long for the name of a socket: at most %d bytes; TMPDIR says where it is", longest, maxSocket)
	}
	s := &Supervisor{cfg: cfg, dir: dir}
	m := newMetrics()
	memory := newMemoryKills("/proc", "/sys/fs/cgroup")
	for i := range cfg.Processes {
		s.children = append(s.children, &child{
			index: i, cfg: &s.cfg, dir: dir, memory: memory,
			restarts: m.restarts.WithLabelValues(strconv.Itoa(i)), up: m.up.WithLabelValues(strconv.Itoa(i)),
		})
	}
	for _, c := range []prometheus.Collector{m.restarts, m.up} {
		if err := cfg.Metrics.Register(c); err != nil {
			_ = os.RemoveAll(dir)
			return nil, fmt.Errorf("supervisor: %w", err)
		}
	}
	return s, nil
}

// FinalError says that a child ended with Config.FinalCode.
type FinalError struct {
	Process int
	Text    string // its last line
}

func (e *FinalError) Error() string { return e.Text }

// Run keeps the children running until ctx is done. Then it ends them, and returns when all have ended. The error is a
// *FinalError if a child ended with Config.FinalCode while none was ready.
func (s *Supervisor) Run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var running sync.WaitGroup
	for _, c := range s.children {
		c.final = func(ctx context.Context, err *FinalError) bool {
			if s.Ready(ctx) == nil { // the others work with the same configuration
				return false
			}
			end(err)
			return true
		}
		running.Go(func() { c.run(ctx) })
	}
	running.Wait()
	var final *FinalError
	if errors.As(context.Cause(ctx), &final) {
		return final
	}
	return nil
}

// Close frees the resources of Open.
func (s *Supervisor) Close() {
	_ = os.RemoveAll(s.dir)
}

// PIDs returns the process IDs of the children that run now, by their numbers.
func (s *Supervisor) PIDs() map[int]int {
	pids := map[int]int{}
	for _, c := range s.children {
		if pid := c.pid(); pid != 0 {
			pids[c.index] = pid
		}
	}
	return pids
}

// Healthy returns nil while at least one child is healthy.
func (s *Supervisor) Healthy(ctx context.Context) error { return s.any(ctx, "/healthz") }

// Ready returns nil while at least one child is ready.
func (s *Supervisor) Ready(ctx context.Context) error { return s.any(ctx, "/readyz") }

// any returns nil as soon as one child answers path with 200. Otherwise it returns the error of another child.
func (s *Supervisor) any(ctx context.Context, path string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // unhealthy children may answer slowly
	answers := make(chan error, len(s.children))
	for _, c := range s.children {
		go func() { answers <- c.ask(ctx, path, "").bad(c.index) }()
	}
	var err error
	for range s.children {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

// All returns nil when every child answers path with 200.
func (s *Supervisor) All(ctx context.Context, path string) error {
	var errs []error
	for i, a := range s.Ask(ctx, path, "") {
		errs = append(errs, a.bad(i))
	}
	return errors.Join(errs...)
}
