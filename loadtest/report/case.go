package report

import (
	"fmt"
	"strings"
)

// Loads.
const (
	Saturation = "saturation" // a stream is filled first, and then drained as fast as possible
	OpenLoop   = "open"       // events at a fixed rate, independent of earlier events
)

// Case is what each round measures: one line of the report. Its fields are those of the JSON file.
type Case struct {
	System      string  `json:"system"`           // pinwheel, or the name of a peer
	Beside      bool    `json:"beside,omitempty"` // measured in comparison with others
	Scenario    string  `json:"scenario"`
	Load        string  `json:"load"`
	Topology    string  `json:"topology"`
	Processes   int     `json:"processes"`
	Cell        string  `json:"cell,omitempty"` // where JavaScript of owners runs; "" = in the processes
	Owners      int     `json:"owners"`
	Events      int     `json:"events,omitempty"` // saturation
	Rate        int     `json:"rate,omitempty"`   // open: events per second
	Seconds     float64 `json:"seconds,omitempty"`
	Pending     int     `json:"pending,omitempty"`     // number of stored and unanswered events while others are counted
	Web         string  `json:"web,omitempty"`         // what is asked for over HTTP; "" = these are events
	Call        string  `json:"call,omitempty"`        // of the calls that a request makes; "" = none are counted
	Kernel      string  `json:"kernel,omitempty"`      // what a request computes; "" = not one of kernels
	Connections int     `json:"connections,omitempty"` // HTTP
	Bytes       int64   `json:"bytes,omitempty"`       // of the body that a request has, and its answer too; 0 = it is short
	Curve       string  `json:"curve,omitempty"`       // name of the curve that this is a point of
	At          int     `json:"at,omitempty"`          // size, the x value of the curve
	Line        string  `json:"line,omitempty"`        // line of a curve that has several
}

// Ours is the system that is not a peer.
const Ours = "pinwheel"

// Name distinguishes a case from all others of a report, and identifies it in another report.
func (c Case) Name() string {
	if c.Call+c.Kernel != "" {
		return fmt.Sprintf("%s %s", c.System, c.Call+c.Kernel)
	}
	if c.Web != "" {
		return fmt.Sprintf("%s %s %s owners=%d", c.System, c.Web, c.Load, c.Owners)
	}
	if c.Beside {
		return fmt.Sprintf("%s %s owners=%d", c.System, c.Load, c.Owners)
	}
	if c.Curve != "" {
		return strings.TrimSpace(fmt.Sprintf("%s=%d %s", c.Curve, c.At, c.Line))
	}
	name := fmt.Sprintf("%s %s %s", c.Scenario, c.Load, c.Topology)
	if c.Cell != "" {
		name += " cell=" + c.Cell
	}
	if c.Processes > 1 {
		name += fmt.Sprintf(" processes=%d", c.Processes)
	}
	return name
}

// What is asked for over HTTP.
const (
	WebJSON    = "json"       // POST of 1 KB of JSON, answered by a handler
	WebFile    = "file"       // GET of a file of 10 KB
	WebSockets = "websockets" // connections that carry nothing
	WebCalls   = "calls"      // GET, answered by a handler that calls bindings
	WebKernels = "kernels"    // GET, answered by a handler that computes
	WebPipe    = "pipe"       // POST of a long body, answered by a handler that hands it on
)

func Webs() []string { return []string{WebJSON, WebFile, WebSockets, WebCalls, WebKernels, WebPipe} }

// Calls are what the handler of workers/calls.mjs calls.
func Calls() []string { return []string{"function", "kv", "method", "fetch"} }

// CallsOfRequest is how many calls a request makes, one after the other.
const CallsOfRequest = 100

// Kernels are what the handler of workers/kernels.mjs computes.
func Kernels() []string {
	return []string{"nbody", "matrices", "sieve", "sha256", "deflate", "csv", "strings", "objects", "json", "markdown",
		"regexp"}
}

// RunsOfRequest is how often a request has its kernel computed.
const RunsOfRequest = 4

// Loads of HTTP, beside openLoop.
const (
	ClosedLoop = "closed" // each connection sends its next request when it has the answer to the last one
	IdleLoad   = "idle"   // WebSockets that carry nothing
)

// WebFloor is the system with the least that Pinwheel needs: net/http and pinned threads. It is no peer.
const WebFloor = "floor"

// Topologies.
const (
	TopologyEmbedded = "embedded"
	TopologyOne      = "one"
	TopologyR3       = "r3"
)
