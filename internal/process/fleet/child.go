package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
)

// Variables that tell a supervisor's child what it is.
const (
	// embeddedVariable says that its NATS URL is the supervisor's embedded NATS.
	embeddedVariable = "_PINWHEEL_EMBEDDED"
	// instanceVariable is the name by which the fleet will learn how it ended.
	instanceVariable = "_PINWHEEL_INSTANCE"
	// refusedVariable says which parts of the confinement the system has refused.
	refusedVariable = "_PINWHEEL_REFUSED"
)

// Variables with the descriptor of a file that a child inherits. A confined process opens none of these itself.
const (
	adminVariable = "_PINWHEEL_ADMIN" // socket where the supervisor sends its requests
	httpVariable  = "_PINWHEEL_HTTP"  // socket for HTTP requests, which all children share
	noteVariable  = "_PINWHEEL_NOTE"  // the note that it leaves when it dies
	textVariable  = "_PINWHEEL_TEXT"  // for what the Go runtime writes when it dies
	knownVariable = "_PINWHEEL_KNOWN" // what the supervisor knows of other processes
	spawnVariable = "_PINWHEEL_SPAWN" // connection by which the supervisor starts processes for it
)

// firstDescriptor is that of the first file that a supervisor gives a child.
const firstDescriptor = 3

// Child is what a child of a supervisor knows about the supervisor.
type Child struct {
	Number   int          // of the process
	listener net.Listener // where the supervisor sends its requests
	http     net.Listener // where HTTP requests come; nil = nowhere
	embedded bool         // NATS is embedded in the supervisor
	instance string       // no other process has it
	known    known
	note     *os.File       // that the child leaves when it dies; nil = none
	text     *os.File       // for what the Go runtime writes then; nil = none
	spawner  *spawn.Spawner // starts processes for it
	refused  []string       // parts of the confinement that are missing
	cells    []string       // the same for its cells; nil = it is not known
	// noCgroups says why its cells have no cgroups; "" = they have.
	noCgroups string
}

// inherited returns the file that the supervisor has given the child; nil = none.
func inherited(variable string) *os.File {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(n), variable)
}

// inheritedListener returns a listener that the supervisor has given the child; nil = none.
func inheritedListener(variable string) (net.Listener, error) {
	f := inherited(variable)
	if f == nil {
		return nil, nil
	}
	defer func() { _ = f.Close() }() // the listener has its own
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("socket of the supervisor: %w", err)
	}
	return l, nil
}

// AsChild returns nil when this process is not a child. It confines a child further.
func AsChild(cfg config.Config) (c *Child, err error) {
	value := os.Getenv(config.ChildVariable)
	if value == "" {
		return nil, nil
	}
	number, _, _ := strings.Cut(value, ":")
	c = &Child{instance: os.Getenv(instanceVariable), embedded: os.Getenv(embeddedVariable) != "",
		note: inherited(noteVariable), text: inherited(textVariable), cells: heardCells(),
		noCgroups: os.Getenv(noCgroupsVariable)}
	if c.Number, err = strconv.Atoi(number); err != nil {
		return nil, fmt.Errorf("%s is %q: it is a number, a colon and a path", config.ChildVariable, value)
	}
	if text := os.Getenv(refusedVariable); text != "" {
		c.refused = strings.Split(text, "\n")
	}
	if cfg.Confine != config.ConfineOff {
		if err := confine.Self(); err != nil {
			if cfg.Confine == config.ConfineRequire {
				return nil, fmt.Errorf("PINWHEEL_CONFINE is require: %w", err)
			}
			c.refused = append(c.refused, confine.SystemCalls+", when the process has started: "+err.Error())
		}
	}
	if c.listener, err = inheritedListener(adminVariable); err != nil {
		return nil, err
	}
	if c.listener == nil {
		return nil, errors.New("the supervisor is of another release, and gives no socket: restart it")
	}
	if c.http, err = inheritedListener(httpVariable); err != nil {
		return nil, err
	}
	if f := inherited(knownVariable); f != nil {
		defer func() { _ = f.Close() }()
		text, err := io.ReadAll(f)
		if err == nil {
			err = json.Unmarshal(text, &c.known)
		}
		if err != nil {
			return nil, fmt.Errorf("what the supervisor knows: %w", err)
		}
	}
	if f := inherited(spawnVariable); f != nil {
		if c.spawner, err = spawn.OpenRemote(f); err != nil {
			return nil, err
		}
		c.spawner.Require = cfg.CellConfine == config.ConfineRequire
	}
	return c, nil
}
