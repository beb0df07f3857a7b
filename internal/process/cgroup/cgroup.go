package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Where Linux shows cgroups, and that of a process.
const (
	mounted = "/sys/fs/cgroup"
	ofSelf  = "/proc/self/cgroup"
)

// Names of the cgroups that Open makes.
const (
	fleetName = "fleet"
	cellsName = "cells"
)

// needed are the controllers without which there are no limits. Without wanted, processes share the processors as
// elsewhere.
var needed, wanted = []string{"memory", "pids"}, []string{"cpu"}

// Limits are those of a group.
type Limits struct {
	Memory    uint64 // bytes, also those that the kernel needs for the process. Beyond them it ends
	Processes int    // and threads
}

// Tree is the cgroup of this process, in which it makes others. Any goroutine may call its methods.
type Tree struct {
	cells string // directory
	made  atomic.Int64
}

// Open moves this process into a cgroup below its own, and returns what makes others beside it. It is called before
// this process has started any other. The error says why there are none: it is no fault then, and nothing has changed.
func Open(l Limits) (*Tree, error) {
	dir, err := own()
	if err != nil {
		return nil, err
	}
	return open(dir, os.Getpid(), l)
}

// open is Open for the process with that ID in the cgroup of that directory.
func open(dir string, pid int, l Limits) (_ *Tree, err error) {
	enable, err := controllers(dir)
	if err != nil {
		return nil, err
	}
	if err := alone(dir, pid); err != nil {
		return nil, err
	}
	t := &Tree{cells: filepath.Join(dir, cellsName)}
	fleet := filepath.Join(dir, fleetName)
	defer func() {
		if err != nil {
			err = errors.Join(err, t.undo(dir, fleet, enable, pid))
		}
	}()
	for _, d := range []string{fleet, t.cells} {
		if err := os.Mkdir(d, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	if err := write(fleet, "cgroup.procs", strconv.Itoa(pid)); err != nil {
		return nil, err
	}
	for _, d := range []string{dir, t.cells} {
		if err := write(d, "cgroup.subtree_control", enable); err != nil {
			return nil, err
		}
	}
	t.sweep()
	if err := passOn(dir, fleet); err != nil {
		return nil, err
	}
	g, err := t.Make(l) // what can be made now can be made later
	if err != nil {
		return nil, err
	}
	g.Close()
	return t, nil
}

// undo undoes what open has done. Its error says what stays.
func (t *Tree) undo(dir, fleet, enable string, pid int) error {
	errs := []error{os.Remove(t.cells),
		write(dir, "cgroup.subtree_control", strings.ReplaceAll(enable, "+", "-")),
		write(dir, "cgroup.procs", strconv.Itoa(pid)), os.Remove(fleet)}
	for i, err := range errs {
		switch {
		case errors.Is(err, os.ErrNotExist): // it was not made
			errs[i] = nil
		case err != nil:
			errs[i] = fmt.Errorf("undo what was begun: %w", err)
		}
	}
	return errors.Join(errs...)
}

// controllers is what to write to have the needed controllers, and those of the wanted ones that are there.
func controllers(dir string) (enable string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return "", err
	}
	has := strings.Fields(string(text))
	var list []string
	for _, name := range slices.Concat(needed, wanted) {
		switch {
		case slices.Contains(has, name):
			list = append(list, "+"+name)
		case slices.Contains(needed, name):
			return "", fmt.Errorf("the cgroup %s has no controller for %s: systemd gives it with Delegate=", dir, name)
		}
	}
	return strings.Join(list, " "), nil
}

// alone returns nil when no other process is in the cgroup: others cannot be moved, and would be in the way.
func alone(dir string, pid int) error {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	if in := strings.Fields(string(text)); !slices.Equal(in, []string{strconv.Itoa(pid)}) {
		return fmt.Errorf("the cgroup %s has processes that are not Pinwheel's", dir)
	}
	return nil
}

// passOn repeats the limit of processor time for the fleet: Go looks at the cgroup that it is in, and at none above.
func passOn(dir, fleet string) error {
	const file = "cpu.max"
	text, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, os.ErrNotExist) || bytes.HasPrefix(text, []byte("max")) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := write(fleet, file, strings.TrimSpace(string(text))); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil // no controller for it
}

// sweep removes what an earlier process has left. What has processes stays.
func (t *Tree) sweep() {
	old, _ := filepath.Glob(filepath.Join(t.cells, "[0-9]*"))
	for _, dir := range old {
		_ = os.Remove(dir)
	}
}

// Group is a cgroup for one process.
type Group struct{ dir string }

// Make makes a group with these limits. Its user calls Close.
func (t *Tree) Make(l Limits) (*Group, error) {
	g := &Group{}
	for g.dir == "" {
		dir := filepath.Join(t.cells, strconv.FormatInt(t.made.Add(1), 10))
		switch err := os.Mkdir(dir, 0o755); {
		case err == nil:
			g.dir = dir
		case !errors.Is(err, os.ErrExist): // an earlier process had it
			return nil, fmt.Errorf("make a cgroup: %w", err)
		}
	}
	for _, one := range []struct {
		file, value string
		optional    bool
	}{
		{"memory.max", strconv.FormatUint(l.Memory, 10), false},
		{"memory.swap.max", "0", true}, // a kernel without swap has no such file
		{"memory.oom.group", "1", false},
		{"pids.max", strconv.Itoa(l.Processes), false},
	} {
		err := write(g.dir, one.file, one.value)
		if err != nil && !(one.optional && errors.Is(err, os.ErrNotExist)) {
			g.Close()
			return nil, fmt.Errorf("limit a cgroup: %w", err)
		}
	}
	return g, nil
}

// Take moves a process into the group. What it has used before is counted where it was.
func (g *Group) Take(pid int) error { return write(g.dir, "cgroup.procs", strconv.Itoa(pid)) }

// Close removes the group. Its process has ended. It reports whether the kernel ended it because it was beyond the
// memory of the group. When the machine, or a group above, has no memory left, the kernel may choose any process: what
// it ends then is not to blame.
func (g *Group) Close() (memory bool) {
	text, _ := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	beyond, ended := false, false
	for line := range strings.Lines(string(text)) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "oom": // the limit of the group itself
			beyond = n != "0"
		case "oom_kill": // for any limit
			ended = n != "0"
		}
	}
	_ = os.Remove(g.dir)
	return beyond && ended
}

// write writes to a file of a cgroup, which is there.
func write(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
