package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/internal/process/supervisor"
)

// known is what a supervisor tells a process that it starts.
type known struct {
	Suspects []crashnote.Suspect `json:"suspects,omitempty"` // whom it must refuse
	Ended    []crashnote.Ended   `json:"ended,omitempty"`    // how others ended
}

// mostEnded is of how many processes each new one is told how they ended. One that does not live long enough to record
// it leaves that to the next.
const mostEnded = 64

// crashes are the crashes of a supervisor's children.
type crashes struct {
	log zerolog.Logger

	mu      sync.Mutex // guards what follows
	account crashnote.Account
	lives   map[string]life // the processes that run, by their sockets
	ended   []crashnote.Ended
}

// life is what a supervisor keeps of a process while it runs.
type life struct {
	instance string
	note     *os.File // nil = none
	text     *os.File // what the Go runtime writes when the process dies; nil = none
}

func (l life) close() {
	for _, f := range []*os.File{l.note, l.text} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// begin returns what is kept of a process that will be started, and what the process should know. Without notes no one
// is accused, and all workers run.
func (c *crashes) begin(socket string) (life, known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := life{instance: rand.Text()}
	var err, err2 error
	l.note, err = crashnote.Create()
	l.text, err2 = crashnote.Nameless("crash")
	if err := errors.Join(err, err2); err != nil {
		c.log.Warn().Err(err).Msg("if the next process dies, it will not be known which worker it ran")
	}
	c.lives[socket] = l
	return l, known{Suspects: c.account.Suspects(time.Now()), Ended: slices.Clone(c.ended)}
}

// take reads what a process left.
func (c *crashes) take(process int, socket string, saw supervisor.End) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.lives[socket]
	if !ok {
		return
	}
	delete(c.lives, socket)
	defer l.close()
	var text []byte
	if l.text != nil {
		text = crashnote.CrashText(l.text)
	}
	end := endOf(saw, text)
	cause := end.Cause()
	c.ended = append(c.ended[max(0, len(c.ended)-mostEnded+1):], crashnote.Ended{Instance: l.instance, Cause: cause})
	if !end.Asked {
		c.log.Error().Int("process", process).Stringer("cause", cause).Int("status", end.Code).Stringer("signal", end.Signal).
			Msg("why a process ended")
	}
	if l.note == nil {
		return
	}
	found, err := crashnote.Read(l.note, end)
	if err != nil || len(found.Runs) == 0 {
		return
	}
	for _, r := range found.Runs {
		c.log.Error().Int("process", process).Str("owner", r.Owner).Str("worker", r.Worker).Str("version", r.Version).
			Bool("sure", found.Sure).
			Msg("a process died while this worker ran")
	}
	c.account.Add(found, time.Now())
}

func endOf(saw supervisor.End, text []byte) crashnote.End {
	return crashnote.End{
		Asked: saw.Asked, Signal: saw.Signal, Code: saw.Code, Text: text,
		Killing: saw.Memory == supervisor.MemoryKilled, Blind: saw.Memory == supervisor.MemoryUnknown,
	}
}

// introduce adds by which name the fleet will learn how this process ended, and what the supervisor knows of how others
// ended.
func (c *Child) introduce(to consumer.Config) consumer.Config {
	if c != nil {
		to.Instance, to.Ended = c.instance, c.known.Ended
	}
	return to
}

// openNote begins to note what the threads run, for the supervisor. It returns nil when the supervisor made no note.
func (c *Child) openNote() (*crashnote.Note, error) {
	if c.text != nil {
		defer func() { _ = c.text.Close() }() // the runtime has its own
		if err := debug.SetCrashOutput(c.text, debug.CrashOptions{}); err != nil {
			return nil, err
		}
	}
	if c.note == nil {
		return nil, nil
	}
	defer func() { _ = c.note.Close() }()
	return crashnote.Open(c.note)
}

// hearSuspects tells the owners what the supervisor knows of earlier processes. It is called when requests begin to
// come: from then on the times count.
func hearSuspects(p *Process) {
	if p.child == nil || len(p.child.known.Suspects) == 0 {
		return
	}
	suspects := make([]dispatch.Suspect, len(p.child.known.Suspects))
	for i, s := range p.child.known.Suspects {
		suspects[i] = dispatch.Suspect{Owner: s.Owner, Worker: s.Worker, Times: s.Times, Left: s.Left, Try: s.Try}
		if s.Worker != "" {
			p.rooms.host.Log(events.LogLine{Time: time.Now(), Owner: s.Owner, Worker: s.Worker, Version: s.Version,
				Level: "error", Text: said(s)})
		}
	}
	p.rooms.dispatch.Crashes().Suspect(suspects)
}

// said is the line in the output of a suspect.
func said(s crashnote.Suspect) string {
	text := fmt.Sprintf("The process died while this worker ran, %d times lately.", s.Times)
	if s.Left > 0 {
		return text + fmt.Sprintf(" Its HTTP requests are answered 503 for %s.", s.Left.Round(100*time.Millisecond))
	}
	return text + " Its HTTP requests run beside those of no other such worker at first."
}
