package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/crashnote"
	"github.com/pinwheel-run/pinwheel/internal/supervisor"
)

// crashFiles are the files by which a supervisor learns how a child died, and by which the next one learns it. They are
// beside the socket of the child, where only this user comes.
type crashFiles struct {
	text     string // what the Go runtime writes when the process dies
	suspects string // what the supervisor tells the process
}

func crashFilesOf(socket string) crashFiles {
	return crashFiles{socket + ".crash", socket + ".suspects"}
}

// crashes are the crashes of a supervisor's children.
type crashes struct {
	log zerolog.Logger

	mu      sync.Mutex
	account crashnote.Account
	notes   map[string]*os.File // of the processes that run, by their sockets
}

// begin returns the note for a process that will be started, and writes what the process should know. Without them no
// one is accused, and all workers run.
func (c *crashes) begin(socket string) (note *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	note, err := crashnote.Create()
	if err != nil {
		c.log.Warn().Err(err).Msg("if the next process dies, it will not be known which worker it ran")
	} else {
		c.notes[socket] = note
	}
	all := c.account.Suspects(time.Now())
	if len(all) == 0 {
		return note
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(crashFilesOf(socket).suspects, text, 0o600)
	}
	if err != nil {
		c.log.Warn().Err(err).Msg("the next process does not learn which workers ended the last one")
	}
	return note
}

// ended reads what a process left.
func (c *crashes) ended(process int, socket string, end supervisor.End) {
	files := crashFilesOf(socket)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		_ = os.Remove(files.text)
		_ = os.Remove(files.suspects)
	}()
	note := c.notes[socket]
	if note == nil {
		return
	}
	delete(c.notes, socket)
	defer func() { _ = note.Close() }()
	found, err := crashnote.Read(note, files.text, end.Killed)
	if err != nil || len(found.Runs) == 0 || end.Asked && !found.Sure { // it was killed because it took too long to end
		return
	}
	for _, r := range found.Runs {
		c.log.Error().Int("process", process).Str("owner", r.Owner).Str("worker", r.Worker).Str("version", r.Version).Bool("sure", found.Sure).
			Msg("a process died while this worker ran")
	}
	c.account.Add(found, time.Now())
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
			p.host.Log(events.LogLine{Time: time.Now(), Owner: s.Owner, Worker: s.Worker, Version: s.Version, Level: "error", Text: said(s)})
		}
	}
	p.dispatch.Suspect(suspects)
}

// said is the line in the output of a suspect.
func said(s crashnote.Suspect) string {
	text := fmt.Sprintf("The process died while this worker ran, %d times lately.", s.Times)
	if s.Left > 0 {
		return text + fmt.Sprintf(" Its HTTP requests are answered 503 for %s.", s.Left.Round(100*time.Millisecond))
	}
	return text + " Its HTTP requests run beside those of no other such worker at first."
}
