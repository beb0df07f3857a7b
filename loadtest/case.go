package main

import (
	"cmp"
	"fmt"
	"strings"
)

// Loads.
const (
	saturation = "saturation" // a stream filled beforehand is drained, as fast as it goes
	openLoop   = "open"       // events at a fixed rate, whatever becomes of those before
)

// Case is what is measured in every round: one line of the report. Its fields are those of the JSON file.
type Case struct {
	System    string  `json:"system"`           // pinwheel, or the name of a peer
	Beside    bool    `json:"beside,omitempty"` // measured beside others
	Scenario  string  `json:"scenario"`
	Load      string  `json:"load"`
	Topology  string  `json:"topology"`
	Processes int     `json:"processes"`
	Owners    int     `json:"owners"`
	Events    int     `json:"events,omitempty"` // saturation
	Rate      int     `json:"rate,omitempty"`   // open: events per second
	Seconds   float64 `json:"seconds,omitempty"`
	Pending   int     `json:"pending,omitempty"` // events stored and not answered while others are counted
	Curve     string  `json:"curve,omitempty"`   // that this is a point of
	At        int     `json:"at,omitempty"`      // size of what the curve is over
	Line      string  `json:"line,omitempty"`    // of a curve with several
}

// ours is the system that is not a peer.
const ours = "pinwheel"

// Name tells a case from all others of a report, and names it in another report.
func (c Case) Name() string {
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
