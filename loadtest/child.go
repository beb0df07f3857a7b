package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is a process that this one started, together with the processes that it started. It does not outlive this one.
type child struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // error of its end; read after done

	mu   sync.Mutex
	tail []string // its last lines
}

// tailLines is the number of lines of a child's output that are kept to report why it failed. tailColumns is the
// maximum length of each in bytes.
const (
	tailLines   = 30
	tailColumns = 300
)

// startChild starts cmd. It passes every printed line to take, if take is not nil.
func startChild(name string, cmd *exec.Cmd, take func(line string)) (*child, error) {
	c := &child{name: name, cmd: cmd, done: make(chan struct{})}
	out := &lineWriter{take: func(line string) {
		c.mu.Lock()
		c.tail = append(c.tail, line[:min(len(line), tailColumns)])
		c.tail = c.tail[max(0, len(c.tail)-tailLines):]
		c.mu.Unlock()
		if take != nil {
			take(line)
		}
	}}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	// The child has its own process group. So Ctrl-C here ends it in an orderly way.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// stop asks the child to end, and kills it after grace.
func (c *child) stop(grace time.Duration) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(grace):
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// ended returns an error when the child has ended.
func (c *child) ended() error {
	select {
	case <-c.done:
		//nolint:errorlint // nil when it ended well
		return fmt.Errorf("%s ended (%v); it said last:\n%s", c.name, c.err, c.said())
	default:
		return nil
	}
}

// said returns its last lines.
func (c *child) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.tail, "\n")
}

// lineWriter splits its input into lines. Only one goroutine writes at a time: exec guarantees that when the writer is
// both stdout and stderr.
type lineWriter struct {
	take func(string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte{'\n'})
		if !ok {
			return len(p), nil
		}
		w.take(string(line))
		w.rest = rest
	}
}
