package supervisor

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Config of a Supervisor.
type Config struct {
	// Processes is how many children there are: 1 to MaxProcesses.
	Processes int
	// Command is what the child of that number, 0 to Processes-1, runs: Path, Args and Env are used. The child must serve
	// /healthz, /readyz and whatever else is asked over HTTP on the unix socket. It is called for every start.
	Command func(process int, socket string) Command
	// Output takes what a child wrote to stdout and stderr: a line without its end, to be copied if it is kept. It is called
	// from one goroutine for each process; a child may have two for a while.
	Output func(process int, line []byte)
	// StopTimeout is how long a child may take to end after SIGTERM. Then it is killed.
	StopTimeout time.Duration
	// Pause is the wait before the first restart of a child; it grows up to MaxPause with every
	// further one, until a child has lived for Settled.
	Pause, MaxPause, Settled time.Duration
	// LookEvery is how often a child is asked for /healthz. One that answers 503 is replaced: another is started beside it, and when that is ready, before
	// ReadyTimeout is over, the first one is told to end.
	LookEvery, ReadyTimeout time.Duration

	Log     zerolog.Logger
	Metrics prometheus.Registerer
}

// Command is a program to run.
type Command struct {
	Path string
	Args []string // without the name
	Env  []string
}

// MaxProcesses is the most that Config.Processes may be.
const MaxProcesses = 64

// DefaultConfig is what is not the caller's to choose otherwise.
func DefaultConfig(processes int) Config {
	return Config{
		Processes: processes, StopTimeout: 35 * time.Second,
		Pause: 100 * time.Millisecond, MaxPause: 10 * time.Second, Settled: 30 * time.Second, LookEvery: 500 * time.Millisecond, ReadyTimeout: time.Minute,
	}
}

// Validate returns an error that names the field that is wrong, its value and what is allowed.
func (c Config) Validate() error {
	switch {
	case c.Processes < 1 || c.Processes > MaxProcesses:
		return fmt.Errorf("supervisor: Processes is %d: it is 1 to %d", c.Processes, MaxProcesses)
	case c.Command == nil || c.Output == nil || c.Metrics == nil:
		return errors.New("supervisor: Command, Output and Metrics are required")
	case c.StopTimeout <= 0:
		return fmt.Errorf("supervisor: StopTimeout is %s: it is more than 0", c.StopTimeout)
	case c.Pause <= 0 || c.MaxPause < c.Pause || c.Settled <= 0:
		return fmt.Errorf("supervisor: Pause is %s, MaxPause %s, Settled %s: all are more than 0, MaxPause is at least Pause", c.Pause, c.MaxPause, c.Settled)
	case c.LookEvery <= 0 || c.ReadyTimeout <= 0:
		return fmt.Errorf("supervisor: LookEvery is %s, ReadyTimeout %s: both are more than 0", c.LookEvery, c.ReadyTimeout)
	}
	return nil
}
