package cells

import (
	"cmp"
	"net"

	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
)

// Process is the process of a cell, which waits for its first frame.
type Process struct {
	Events  *net.UnixConn // frames (package wire)
	Calls   net.Conn      // HTTP/2 (package calls)
	PID     int           // 0 = it is a child of another process
	Refused []string      // the parts of its confinement that the system refused
	// Kill ends the process at once. It may be called often, by any goroutine.
	Kill func()
	// Wait waits for the end. It is called once.
	Wait func() Ending
}

// Ending is how the process of a cell ended.
type Ending struct {
	Why   string          // in words
	Crash crashnote.Crash // what ran in V8, if it ended by a fault
	Text  string          // the end of what it wrote
	// Memory says that the kernel ended it because it used more memory than it may. That is in no run's account.
	Memory bool
}

// Spawned is a Process that a Spawner has started.
func Spawned(p *spawn.Process) *Process {
	return &Process{
		Events: p.Events, Calls: p.Calls,
		PID: p.PID(), Refused: p.Refused(),
		Kill: p.Kill,
		Wait: func() Ending {
			ended := p.Wait()
			defer func() { _ = p.Note.Close() }()
			crash, err := crashnote.Read(p.Note, crashnote.End{Signal: ended.Signal, Code: ended.Code, Text: []byte(ended.Text),
				Killing: ended.Memory})
			if err != nil {
				crash = crashnote.Crash{}
			}
			return Ending{Why: cmp.Or(ended.Why, "it ended by itself"), Crash: crash, Text: ended.Text,
				Memory: ended.Memory}
		},
	}
}
