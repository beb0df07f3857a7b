package main

import (
	"cmp"
	"fmt"
	"strings"
)

// Loads.
const (
	saturation = "saturation" // a stream is filled first, and then drained as fast as possible
	openLoop   = "open"       // events at a fixed rate, independent of earlier events
)

// Case is what each round measures: one line of the report. Its fields are those of the JSON file.
type Case struct {
	System      string  `json:"system"`           // pinwheel, or the name of a peer
	Beside      bool    `json:"beside,omitempty"` // measured in comparison with others
	Scenario    string  `json:"scenario"`
	Load        string  `json:"load"`
	Topology    string  `json:"topology"`
	Processes   int     `json:"processes"`
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

// ours is the system that is not a peer.
const ours = "pinwheel"

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
	if c.Processes > 1 {
		name += fmt.Sprintf(" processes=%d", c.Processes)
	}
	return name
}

func (o *options) newCase(s *scenario, load, topology string, processes int) Case {
	c := Case{System: ours, Scenario: s.name, Load: load, Topology: topology, Processes: processes, Owners: s.owners}
	if load == saturation {
		c.Events = cmp.Or(o.events, s.events)
	} else {
		c.Rate, c.Seconds = cmp.Or(o.rate, s.rate), cmp.Or(o.duration, s.length, openLength).Seconds()
	}
	if !s.warm { // a worker of its own for each event
		c.Owners = max(c.Events, int(float64(c.Rate)*c.Seconds))
	}
	return c
}
