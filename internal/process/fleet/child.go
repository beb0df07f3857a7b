package fleet

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// embeddedVariable tells a supervisor's child that its NATS URL is the supervisor's embedded NATS.
const embeddedVariable = "_PINWHEEL_EMBEDDED"

// noteVariable tells a supervisor's child which descriptor is the note that it leaves when it dies.
const noteVariable = "_PINWHEEL_NOTE"

// instanceVariable tells a supervisor's child by which name the fleet will learn how it ended.
const instanceVariable = "_PINWHEEL_INSTANCE"

// firstDescriptor is that of the first file that a supervisor gives a child.
const firstDescriptor = 3

// httpVariable tells a supervisor's child that httpDescriptor is the socket for HTTP requests, which all children
// share.
const (
	httpVariable   = "_PINWHEEL_HTTP"
	httpDescriptor = firstDescriptor
)

// Child is what a child of a supervisor knows about the supervisor.
type Child struct {
	Number   int          // of the process
	listener net.Listener // where the supervisor sends its requests
	http     net.Listener // where HTTP requests come; nil = nowhere
	embedded bool         // NATS is embedded in the supervisor
	instance string       // no other process has it
	crashes  crashFiles
	note     *os.File // that the child leaves when it dies; nil = none
}

// AsChild returns nil when this process is not a child.
func AsChild() (*Child, error) {
	value := os.Getenv(config.ChildVariable)
	if value == "" {
		return nil, nil
	}
	number, socket, _ := strings.Cut(value, ":")
	process, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: it is a number, a colon and a path", config.ChildVariable, value)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	c := &Child{Number: process, listener: l, crashes: crashFilesOf(socket), instance: os.Getenv(instanceVariable),
		embedded: os.Getenv(embeddedVariable) != ""}
	if os.Getenv(httpVariable) != "" {
		f := os.NewFile(httpDescriptor, "http")
		defer func() { _ = f.Close() }() // the listener has its own
		if c.http, err = net.FileListener(f); err != nil {
			return nil, fmt.Errorf("socket of the supervisor: %w", err)
		}
	}
	if n, err := strconv.Atoi(os.Getenv(noteVariable)); err == nil {
		c.note = os.NewFile(uintptr(n), "note")
	}
	return c, nil
}
