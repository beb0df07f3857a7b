package supervisor

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Config configures a Supervisor.
type Config struct {
	// Processes is the number of children: 1 to MaxProcesses.
	Processes int
	// Command returns the command that runs the child with that number, 0 to Processes-1: Path, Args and Env are used.
	// The child must serve /healthz, /readyz and all other requested paths over HTTP on the unix socket. Command is
	// called for every start.
	Command func(process int, socket string) Command
	// Output takes a line that a child wrote to stdout or stderr, without its line break. Output must copy the line to
	// keep it. One goroutine for each process calls Output; a child may have two processes for a while.
	Output func(process int, line []byte)
	// Ended is called when a process has ended, or did not start, before another takes its place. socket is that of its
	// Command. Several goroutines may call it. nil = no calls.
	Ended func(process int, socket string, end End)
	// Enter is called on the OS thread that starts a process, before it does. The thread does nothing else, and what Enter
	// changes on it the process inherits. With an error the process is not started. nil = no calls.
	Enter func() error
	// FinalCode is the exit code by which a child says that another try gives the same; 0 = none. While no child is
	// ready, the supervisor then ends all, with the last line that the child wrote. Otherwise it tries again.
	FinalCode int
	// StopTimeout is how long a child may take to end after SIGTERM. Then it is killed.
	StopTimeout time.Duration
	// Pause is the wait before the first restart of a child. It grows up to MaxPause with every further restart, until
	// a child has lived for Settled.
	Pause, MaxPause, Settled time.Duration
	// LookEvery is how often a child's /healthz is checked. A child that answers 503 is replaced: a second one is
	// started beside it. When the second one is ready, within ReadyTimeout, the first one is asked to end.
	LookEvery, ReadyTimeout time.Duration

	Log     zerolog.Logger
	Metrics prometheus.Registerer
}

// Command is a program to run.
type Command struct {
	Path string
	Args []string // without the program name
	Env  []string
	// Files are open in the process as file descriptors 3, 4, ….
	Files []*os.File
	// Err is why there is no command now. nil = there is one.
	Err error
	// Started is called when the process has started or could not be started. nil = not called.
	Started func()
}

// End is how a process ended.
type End struct {
	Asked  bool           // it was asked to end
	Signal syscall.Signal // that ended it; 0 = none
	Code   int            // its exit status; -1 = a signal ended it, or it did not start
	Memory Memory         // when it ended
}

// MaxProcesses is the most that Config.Processes may be.
const MaxProcesses = 64

// DefaultConfig sets the fields that the caller rarely changes.
func DefaultConfig(processes int) Config {
	return Config{
		Processes: processes, StopTimeout: 35 * time.Second,
		Pause: 100 * time.Millisecond, MaxPause: 10 * time.Second, Settled: 30 * time.Second,
		LookEvery: 500 * time.Millisecond, ReadyTimeout: time.Minute,
	}
}

// Validate returns an error that names the wrong field, its value and what is allowed.
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
