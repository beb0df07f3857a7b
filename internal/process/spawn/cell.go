package spawn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/process/cgroup"
	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
)

// Descriptors of a cell, in their order. The first is firstDescriptor.
const (
	eventsFile = iota
	callsFile
	noteFile
	controlFile
	cellFiles
)

const firstDescriptor = 3

// begins is how long a cell may take until it has confined itself, also on a busy machine.
const begins = time.Minute

// orders is what a cell is told when it begins. It answers with texts of what the system has refused.
type orders struct {
	Confine    bool   `json:"confine"`
	OwnUsers   bool   `json:"ownUsers"`
	Processors int    `json:"processors"` // for Go, which cannot see the limits of its cgroup
	Data       uint64 `json:"data"`       // bytes of memory that it may have
}

// besideHeap is how much memory a cell may have beside the heaps of its pool, bytes: what V8 makes of code, what Go has
// (package cell bounds it), and the stacks of threads, 8 MiB each.
const besideHeap = 3 << 30

// usedBesideHeap is how much of that a cell may use, bytes, where a cgroup counts it: stacks are larger than what is
// used of them, and so is what V8 reserves for code.
const usedBesideHeap = 3 << 29

// largestHeap is that of a pool without a bound of its own, bytes: that of V8's cage.
const largestHeap = 4 << 30

// CellLimits are those of the cgroup of a cell whose pool has heaps of so many bytes; 0 = without a bound of its own.
func CellLimits(heapBytes int64) cgroup.Limits {
	return cgroup.Limits{
		Memory: uint64(cmp.Or(heapBytes, largestHeap)) + usedBesideHeap, Processes: confine.CellThreads,
	}
}

// beginCell starts a cell. Its user gets both connections, and the note of crashes.
func (p *process) beginCell(s *Starter) (err error) {
	given, theirs := make([]*os.File, noteFile+1), make([]*os.File, cellFiles)
	defer func() { closeAll(theirs) }()
	defer func() {
		if err != nil {
			closeAll(given)
			if p.control != nil {
				_ = p.control.Close()
			}
		}
	}()
	for _, i := range []int{eventsFile, callsFile} {
		if given[i], theirs[i], err = filePair(); err != nil {
			return err
		}
	}
	if p.control, theirs[controlFile], err = filePair(); err != nil {
		return err
	}
	if given[noteFile], err = crashnote.Create(); err != nil {
		return err
	}
	theirs[noteFile] = given[noteFile]
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	p.output = &ends{full: make(chan struct{})}
	build := func() *exec.Cmd {
		cmd := command(s.Executable, CellVariable, strconv.Itoa(firstDescriptor))
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = null, p.output, p.output, theirs
		cmd.WaitDelay = 10 * time.Second // nobody else has its output
		return cmd
	}
	p.cell = orders{
		Confine: s.ConfineCells, Processors: runtime.GOMAXPROCS(0),
		Data: uint64(cmp.Or(s.HeapBytes, largestHeap)) + besideHeap,
	}
	if !s.ConfineCells {
		p.cmd = build()
		err = confine.Start(p.cmd, nil, p.over)
	} else {
		var begun confine.Started
		begun, err = confine.Cell{Executable: s.Executable, Command: build}.Start(p.over)
		p.cmd, p.refused, p.cell.OwnUsers = begun.Cmd, begun.Refused.Texts(), begun.OwnUsers
	}
	if err == nil {
		err = p.enterGroup(s)
	}
	if err != nil {
		return err
	}
	theirs[noteFile] = nil // given too
	p.given = given
	return nil
}

// enterGroup moves a cell that has just started into a cgroup of its own. It waits for its orders, and has read
// nothing. The kernel could start it there, by clone3. The thread that starts it may not call that: a filter cannot see
// what for. A thread that is nobody's may not name the cgroup either.
func (p *process) enterGroup(s *Starter) (err error) {
	if s.Cgroups == nil {
		return nil
	}
	if p.group, err = s.Cgroups.Make(CellLimits(s.HeapBytes)); err == nil {
		err = p.group.Take(p.cmd.Process.Pid)
	}
	if err == nil {
		return nil
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	close(p.over)
	if p.group != nil {
		p.group.Close()
	}
	return fmt.Errorf("cgroup of a cell: %w", err)
}

// give tells a cell what to do, and returns what it says that the system has refused.
func (o orders) give(control *os.File) (refused []string, err error) {
	conn, err := connection(control)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(begins))
	if err := json.NewEncoder(conn).Encode(o); err != nil {
		return nil, err
	}
	return refused, json.NewDecoder(conn).Decode(&refused)
}

// Process is a cell, as its broker has it.
type Process struct {
	Events, Calls *net.UnixConn // the broker closes them
	// Note is what the cell runs: crashnote.Read reads it when the cell has ended, and the broker closes it.
	Note *os.File
	*handle
}

// Refused are the parts of the confinement that the system has refused, and why. Empty: it is confined as it should be.
func (p *Process) Refused() []string { return p.birth.Refused }

// Cell starts a cell, and returns when it has confined itself and has run nothing yet, or ctx is done. Its broker calls
// Kill and Wait. Any goroutine may call it. An *UnconfinedError says that Require is set, and a part is missing.
func (s *Spawner) Cell(ctx context.Context) (*Process, error) {
	p, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	if s.Require && len(p.Refused()) > 0 {
		p.discard()
		return nil, fmt.Errorf("start a cell: %w", &UnconfinedError{p.Refused()})
	}
	return p, nil
}

// begin starts a cell, whatever the system has refused.
func (s *Spawner) begin(ctx context.Context) (*Process, error) {
	files, err := s.ask(cell)
	if err != nil {
		return nil, fmt.Errorf("start a cell: %w", err)
	}
	p := &Process{Note: files[noteFile]}
	var errs [3]error
	p.Events, errs[0] = connection(files[eventsFile])
	p.Calls, errs[1] = connection(files[callsFile])
	p.handle, errs[2] = newHandle(files[noteFile+1])
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("start a cell: %w", err)
	}
	p.release = func() {}
	stop := context.AfterFunc(ctx, p.Kill)
	err = p.born()
	if stopped := stop(); err == nil && stopped {
		return p, nil
	}
	p.discard()
	return nil, fmt.Errorf("start a cell: %w", cmp.Or(ctx.Err(), err))
}

// discard ends a cell that nobody uses.
func (p *Process) discard() {
	p.Kill()
	p.Wait()
	_, _, _ = p.Events.Close(), p.Calls.Close(), p.Note.Close()
}
