package fleet

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/internal/process/supervisor"
)

// crashFiles are the files by which a supervisor learns how a child died, and by which the next one learns it. They are
// beside the socket of the child, where only this user comes.
type crashFiles struct {
	text     string // what the Go runtime writes when the process dies
	suspects string // what the supervisor tells the process: whom it must refuse
	ended    string // and how others ended
}

func crashFilesOf(socket string) crashFiles {
	return crashFiles{socket + ".crash", socket + ".suspects", socket + ".ended"}
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
}

// begin returns the instance and the note for a process that will be started, and writes what the process should know.
// Without them no one is accused, and all workers run.
func (c *crashes) begin(socket string) (instance string, note *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	note, err := crashnote.Create()
	if err != nil {
		c.log.Warn().Err(err).Msg("if the next process dies, it will not be known which worker it ran")
	}
	instance = rand.Text()
	c.lives[socket] = life{instance, note}
	files := crashFilesOf(socket)
	if all := c.account.Suspects(time.Now()); len(all) > 0 {
		if err := writeJSON(files.suspects, all); err != nil {
			c.log.Warn().Err(err).Msg("the next process does not learn which workers ended the last one")
		}
	}
	if len(c.ended) > 0 {
		if err := writeJSON(files.ended, c.ended); err != nil {
			c.log.Warn().Err(err).Msg("the next process does not learn how others ended")
		}
	}
	return instance, note
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// take reads what a process left.
func (c *crashes) take(process int, socket string, saw supervisor.End) {
	files := crashFilesOf(socket)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		_ = os.Remove(files.text)
		_ = os.Remove(files.suspects)
		_ = os.Remove(files.ended)
	}()
	l, ok := c.lives[socket]
	if !ok {
		return
	}
	delete(c.lives, socket)
	end := endOf(saw, crashnote.CrashText(files.text))
	cause := end.Cause()
	c.ended = append(c.ended[max(0, len(c.ended)-mostEnded+1):], crashnote.Ended{Instance: l.instance, Cause: cause})
	if !end.Asked {
		c.log.Error().Int("process", process).Stringer("cause", cause).Int("status", end.Code).Stringer("signal", end.Signal).
			Msg("why a process ended")
	}
	if l.note == nil {
		return
	}
	defer func() { _ = l.note.Close() }()
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
func (c *Child) introduce(to consumer.Config, log zerolog.Logger) consumer.Config {
	if c == nil {
		return to
	}
	to.Instance = c.instance
	text, err := os.ReadFile(c.crashes.ended)
	if err != nil {
		return to // there are none
	}
	if err := json.Unmarshal(text, &to.Ended); err != nil {
		log.Warn().Err(err).Msg("how other processes ended is not known")
	}
	return to
}

// openNote begins to note what the threads run, for the supervisor. It returns nil when the supervisor made no note.
func (c *Child) openNote() (*crashnote.Note, error) {
	if c.note == nil {
		return nil, nil
	}
	text, err := os.OpenFile(c.crashes.text, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = text.Close() }() // the runtime has its own
	if err := debug.SetCrashOutput(text, debug.CrashOptions{}); err != nil {
		return nil, err
	}
	defer func() { _ = c.note.Close() }()
	return crashnote.Open(c.note)
}

// hearSuspects reads what the supervisor knows of earlier processes, and tells the owners. It is called when requests
// begin to come: from then on the times count.
func hearSuspects(p *Process) {
	if p.child == nil {
		return
	}
	text, err := os.ReadFile(p.child.crashes.suspects)
	if err != nil {
		return // there are none
	}
	var all []crashnote.Suspect
	if err := json.Unmarshal(text, &all); err != nil {
		p.log.Warn().Err(err).Msg("the workers that ended earlier processes are not known")
		return
	}
	suspects := make([]dispatch.Suspect, len(all))
	for i, s := range all {
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
