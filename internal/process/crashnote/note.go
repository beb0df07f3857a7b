package crashnote

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Layout of a note: slots of a fixed size. A slot has a byte that says whether its thread runs a worker, the length of
// a text, and the text: goroutine, owner, worker and version, with spaces between them.
const (
	slots    = 256 // further threads are not noted
	slotSize = 512
	header   = 3
	mostText = slotSize - header
)

// Note is a file in memory that a process shares with its supervisor. What is written to it stays when the process dies
// in any way. A nil Note notes nothing.
type Note struct {
	mu   sync.Mutex
	mem  []byte
	free []int // numbers of slots
}

// Create makes the file of a note, for the process that will be started. On Linux it is on no disk: a thread that wrote
// to a page while it is stored would wait.
func Create() (*os.File, error) {
	f, err := Nameless("note")
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(slots * slotSize); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Open maps a file of Create. The map stays until the process ends, also when the file is closed.
func Open(f *os.File) (*Note, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, slots*slotSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a note: %w", err)
	}
	n := &Note{mem: mem}
	for i := slots - 1; i >= 0; i-- {
		n.free = append(n.free, i)
	}
	return n, nil
}

// Slot returns the place of one more thread; nil when there is none left. Any goroutine may call it.
func (n *Note) Slot() *Slot {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.free) == 0 {
		return nil
	}
	i := n.free[len(n.free)-1]
	n.free = n.free[:len(n.free)-1]
	return &Slot{note: n, number: i, mem: n.mem[i*slotSize : (i+1)*slotSize]}
}

// Slot is the place of one thread in a Note. All methods but Free are for the goroutine of the thread. A nil Slot notes
// nothing.
type Slot struct {
	note   *Note
	number int
	mem    []byte
	who    string          // the goroutine
	worker *workers.Worker // whose text is in mem
}

// Bind says that the calling goroutine is that of the thread. It is called before Enter.
func (s *Slot) Bind() {
	if s == nil {
		return
	}
	s.who, s.worker = goroutine(), nil
}

// Enter says that the thread runs w from now on. It costs two writes to memory, or a copy of the names of w when the
// thread ran another worker before.
func (s *Slot) Enter(w *workers.Worker) {
	if s == nil {
		return
	}
	if s.worker != w {
		text := s.mem[header:header]
		for _, part := range [...]string{s.who, " ", w.Owner, " ", w.Name, " ", w.Version} {
			if len(text)+len(part) > mostText {
				return
			}
			text = append(text, part...)
		}
		s.mem[1], s.mem[2] = byte(len(text)), byte(len(text)>>8)
		s.worker = w
	}
	s.mem[0] = 1
}

// Leave says that the thread runs no worker.
func (s *Slot) Leave() {
	if s != nil {
		s.mem[0] = 0
	}
}

// Free gives the place to another thread. The thread has left it.
func (s *Slot) Free() {
	if s == nil {
		return
	}
	s.mem[0] = 0
	s.note.mu.Lock()
	s.note.free = append(s.note.free, s.number)
	s.note.mu.Unlock()
}

// goroutine returns the number of the calling goroutine. The Go runtime says it in the text that it writes when a
// process dies, and offers it nowhere else.
func goroutine() string {
	var buffer [64]byte
	return goroutineOf(buffer[:runtime.Stack(buffer[:], false)])
}

// goroutineOf returns the number of the first goroutine in a text of the Go runtime; "" = none. The first one is that
// in which a process died.
func goroutineOf(text []byte) string {
	const begin = "goroutine "
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(begin))
		number, _, ok2 := bytes.Cut(rest, []byte(" "))
		if _, err := strconv.ParseUint(string(number), 10, 64); ok && ok2 && err == nil {
			return string(number)
		}
	}
	return ""
}

// Run is what a thread ran.
type Run struct {
	Owner, Worker, Version string
	goroutine              string
}

// Crash is what was found about the end of a process.
type Crash struct {
	Runs []Run // of the threads that ran a worker when the process died; none when its cause is Outside
	Sure bool  // Runs has the one that ended the process
}

const mostCrashText = 1 << 20 // bytes of it that are read

// Read reads the note of a process that has ended in that way.
func Read(note *os.File, end End) (Crash, error) {
	mem := make([]byte, slots*slotSize)
	if _, err := note.ReadAt(mem, 0); err != nil {
		return Crash{}, err
	}
	if end.Cause() == Outside {
		return Crash{}, nil
	}
	var c Crash
	for len(mem) > 0 {
		if r, ok := runOf(mem[:slotSize]); ok {
			c.Runs = append(c.Runs, r)
		}
		mem = mem[slotSize:]
	}
	return c.at(goroutineOf(end.Text)), nil
}

// CrashText returns the beginning of what the Go runtime wrote to a file; empty = nothing.
func CrashText(f *os.File) []byte {
	said, _ := io.ReadAll(io.NewSectionReader(f, 0, mostCrashText))
	return said
}

// at returns the crash with only the run of that goroutine, if it had one.
func (c Crash) at(goroutine string) Crash {
	for _, r := range c.Runs {
		if goroutine != "" && r.goroutine == goroutine {
			return Crash{Runs: []Run{r}, Sure: true}
		}
	}
	return c
}

// runOf reads a slot. The process may have died in the middle of a write.
func runOf(slot []byte) (Run, bool) {
	n := int(slot[1]) | int(slot[2])<<8
	if slot[0] != 1 || n > mostText {
		return Run{}, false
	}
	parts := bytes.SplitN(slot[header:header+n], []byte(" "), 4)
	if len(parts) != 4 || !events.ValidName(string(parts[1])) || !events.ValidName(string(parts[2])) {
		return Run{}, false
	}
	return Run{string(parts[1]), string(parts[2]), string(parts[3]), string(parts[0])}, true
}
