package spawn

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"

	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
)

// Inherited is all that a cell has.
type Inherited struct {
	Events, Calls net.Conn        // to its broker
	Note          *crashnote.Note // of which worker each of its threads runs
}

// AsCell returns false in a process that is no cell. It confines a cell, which must have begun nothing else: main calls
// it first, and so does TestMain. A cell that gets an error ends.
func AsCell() (have *Inherited, ok bool, err error) {
	first, err := strconv.Atoi(os.Getenv(CellVariable))
	if err != nil {
		return nil, false, nil
	}
	if first != firstDescriptor {
		return nil, true, fmt.Errorf("%s is %d: it is %d", CellVariable, first, firstDescriptor)
	}
	have = &Inherited{}
	var errs [4]error
	open := func(n int) *os.File { return os.NewFile(uintptr(first+n), CellVariable) }
	have.Events, errs[0] = connection(open(eventsFile))
	have.Calls, errs[1] = connection(open(callsFile))
	note := open(noteFile)
	have.Note, errs[2] = crashnote.Open(note)
	_ = note.Close() // what is mapped stays
	control, err := connection(open(controlFile))
	errs[3] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, true, err
	}
	defer func() { _ = control.Close() }()
	var o orders
	if err := json.NewDecoder(control).Decode(&o); err != nil {
		return nil, true, fmt.Errorf("orders of a cell: %w", err)
	}
	if o.Processors > 0 {
		runtime.GOMAXPROCS(o.Processors)
	}
	refused := []string{}
	if o.Confine {
		refused = append(refused, confine.CellSelf(o.OwnUsers, o.Data).Texts()...)
	}
	return have, true, json.NewEncoder(control).Encode(refused)
}
