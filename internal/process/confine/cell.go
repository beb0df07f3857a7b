package confine

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
)

// Further parts of the confinement of a cell.
const (
	Namespaces = "namespaces" // users, processes, network, IPC, mounts and names of its own
	Users      = "users"      // not root
	Limits     = "limits"     // bounds of files, threads, messages and locked memory
)

// CellThreads is how many threads a cell may have.
const CellThreads = 512

// CellParts are all parts of the confinement of a cell, in the order in which they are taken.
var CellParts = []string{Capabilities, Namespaces, Files, Users, SystemCalls, Limits}

// Cell is how the process of a cell is started: it runs JavaScript, and has nothing but what it inherits. It opens no
// file and no socket.
//
//	Start → a thread of its own → fork, exec → the process → CellSelf
type Cell struct {
	// Executable is the program of the process, which is the one of this process too.
	Executable string
	// Command makes the command. It is called for each try, and its result is not started before.
	Command func() *exec.Cmd
}

// way is one of the ways in which a cell can be started. The first one that the system allows is taken.
type way struct {
	users      bool // user and other namespaces, as anybody may make them
	namespaces bool // without that of users, as only root may make them
	nobody     bool // the process is not root's
}

// ways are all, the best one first.
func ways(root bool) (list []way) {
	for _, w := range []way{{users: true, nobody: true}, {namespaces: true, nobody: true}, {nobody: true},
		{users: true}, {namespaces: true}, {}} {
		if root || !w.nobody && !w.namespaces {
			list = append(list, w)
		}
	}
	return list
}

// Started is what Cell.Start has done.
type Started struct {
	*exec.Cmd
	Refused Report
	// OwnUsers reports whether the process has a user namespace, in which its threads are counted apart.
	OwnUsers bool
}

// Start starts the process. ended is closed when it has ended, as for the function Start.
func (c Cell) Start(ended <-chan struct{}) (Started, error) {
	var tries []error
	for _, w := range ways(isRoot()) {
		s := Started{Cmd: c.Command(), OwnUsers: w.users}
		s.attributes(w, c.Executable)
		err := Start(s.Cmd, func() error {
			r, err := c.enter(w)
			s.Refused = r
			return err
		}, ended)
		if err == nil {
			s.Refused = append(s.Refused, missing(w, errors.Join(tries...))...)
			return s, nil
		}
		if !slices.ContainsFunc(tries, func(e error) bool { return e.Error() == err.Error() }) {
			tries = append(tries, err)
		}
	}
	return Started{}, errors.Join(tries...)
}

// missing are the parts that a process has not that was started in this way, because better ones failed.
func missing(w way, err error) (r Report) {
	if err == nil {
		return nil
	}
	if !w.users && !w.namespaces {
		r = append(r, Refused{Namespaces, err})
	}
	if isRoot() && !w.nobody {
		r = append(r, Refused{Users, err})
	}
	return r
}

// limit is a bound of a resource.
type limit struct {
	name     string
	resource int
	most     uint64
}

// errLimit says which limit the system refuses.
func (l limit) err(err error) error { return fmt.Errorf("setrlimit %s to %d: %w", l.name, l.most, err) }
