package machine

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Child is a process that this one started, together with the processes that it started. It does not outlive this one.
type Child struct {
	Name string
	Cmd  *exec.Cmd
	Done chan struct{} // closed when it has ended
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

// StartChild starts cmd. It passes every printed line to take, if take is not nil.
func StartChild(name string, cmd *exec.Cmd, take func(line string)) (*Child, error) {
	c := &Child{Name: name, Cmd: cmd, Done: make(chan struct{})}
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
	cmd.SysProcAttr = ofChild()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		c.err = cmd.Wait()
		close(c.Done)
	}()
	return c, nil
}

func (c *Child) pid() int { return c.Cmd.Process.Pid }

// Stop asks the child to end, and kills it after grace.
func (c *Child) Stop(grace time.Duration) {
	_ = c.Cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.Done:
	case <-time.After(grace):
		_ = c.Cmd.Process.Kill()
		<-c.Done
	}
}

// Ended returns an error when the child has ended.
func (c *Child) Ended() error {
	select {
	case <-c.Done:
		//nolint:errorlint // nil when it ended well
		return fmt.Errorf("%s ended (%v); it said last:\n%s", c.Name, c.err, c.Said())
	default:
		return nil
	}
}

// Said returns its last lines.
func (c *Child) Said() string {
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
