package events

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Bounds of the service calls that one event causes.
const (
	// MaxServiceDepth is how many calls may wait for one another: a worker calls one that calls one, and so on.
	MaxServiceDepth = 8
	// MaxServiceCalls is how many calls one event may cause in all, and MaxServiceCallsAtOnce how many at a time.
	MaxServiceCalls       = 1000
	MaxServiceCallsAtOnce = 32
)

// The errors of Begin. They begin as those of Cloudflare do.
var (
	ErrServiceDepth  = fmt.Errorf("subrequest depth limit exceeded: at most %d service calls may wait for one another", MaxServiceDepth)
	ErrServiceCalls  = fmt.Errorf("too many Worker invocations: an event may cause at most %d service calls", MaxServiceCalls)
	ErrServiceAtOnce = fmt.Errorf("too many Worker invocations at once: an event may cause at most %d", MaxServiceCallsAtOnce)
)

// ServiceTree counts the service calls that one event causes, whichever worker makes them. The zero ServiceTree is
// ready to use. Any goroutine may use it.
type ServiceTree struct{ made, under atomic.Int64 }

// ServiceCall is what makes an event a call: a worker sent it to one of its owner through a binding, and waits for the
// reply. Such an event is direct.
type ServiceCall struct {
	Entrypoint string // the export of the worker's module that answers; "" = the default one
	// Method is the method of the entrypoint that is called; "" = it answers a request. The event's body has the
	// arguments, as V8 serialized them.
	Method string
	CF     string // cf of the request as JSON; "" = it has none

	callers []string // the workers that wait for the reply, the first one first
	tree    *ServiceTree
}

// Begin counts a call that a worker makes while it handles from; nil = from was not called itself. End must be called
// when the call is over.
func (t *ServiceTree) Begin(from *ServiceCall, caller string, to ServiceTarget, method string) (*ServiceCall, error) {
	c := &ServiceCall{Entrypoint: to.Entrypoint, Method: method, tree: t}
	if from != nil {
		c.callers = from.callers
		if from.tree != nil { // otherwise from was made in another process, which counts its calls too
			c.tree = from.tree
		}
	}
	c.callers = append(slices.Clip(c.callers), caller)
	if len(c.callers) > MaxServiceDepth {
		return nil, ErrServiceDepth
	}
	if c.tree.under.Add(1) > MaxServiceCallsAtOnce {
		c.End()
		return nil, ErrServiceAtOnce
	}
	if c.tree.made.Add(1) > MaxServiceCalls {
		c.End()
		return nil, ErrServiceCalls
	}
	return c, nil
}

// End says that nothing of the call runs any more.
func (c *ServiceCall) End() { c.tree.under.Add(-1) }

// Fetches reports whether the fetch handler of the worker answers. Which entrypoints a worker has, its thread finds
// out.
func (c *ServiceCall) Fetches() bool { return c.Entrypoint == "" && c.Method == "" }

// From reports whether a worker is among those that wait for the reply.
func (c *ServiceCall) From(worker string) bool { return slices.Contains(c.callers, worker) }

// ServiceTarget is the value of a service binding: a worker of the same owner, and what in it answers.
type ServiceTarget struct {
	Worker     string
	Entrypoint string // the name of an export of its module; "" = the default one
}

// String is the target as manifests name it: WORKER, or WORKER#ENTRYPOINT.
func (t ServiceTarget) String() string {
	if t.Entrypoint == "" {
		return t.Worker
	}
	return t.Worker + "#" + t.Entrypoint
}

// ParseServiceTarget reads what String makes. The error says what is wrong and what is allowed.
func ParseServiceTarget(text string) (ServiceTarget, error) {
	worker, entrypoint, named := strings.Cut(text, "#")
	if err := CheckName("worker", worker); err != nil {
		return ServiceTarget{}, err
	}
	if !named {
		return ServiceTarget{Worker: worker}, nil
	}
	if err := checkEntrypoint(entrypoint); err != nil {
		return ServiceTarget{}, err
	}
	return ServiceTarget{worker, entrypoint}, nil
}

var errEntrypoint = errors.New("an entrypoint is the name of an export: A-Z a-z 0-9 _ $, not a digit first, at most 128 bytes, and not default")

// checkEntrypoint returns an error when no export can have this name, or when it is the default one, which has no name
// here.
func checkEntrypoint(name string) error {
	if err := CheckEnvName(strings.ReplaceAll(name, "$", "_")); err != nil || name == "default" {
		return errEntrypoint
	}
	return nil
}
