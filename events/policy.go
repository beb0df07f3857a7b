package events

import "fmt"

// Policy is what an owner may have, beside others. Zero fields mean what the process's configuration says.
type Policy struct {
	// Weight is the owner's share of CPU time when others want it too: one of weight 2 gets twice what one of weight 1, the
	// default, gets.
	Weight int `json:"weight,omitempty"`
	// MaxRunning and MaxQueued are events of the owner that are in progress, and wait, in a process.
	MaxRunning int `json:"maxRunning,omitempty"`
	MaxQueued  int `json:"maxQueued,omitempty"`
	// FleetMaxRunning and FleetMaxQueued are the same in all processes together: each has an even share, and at least one.
	FleetMaxRunning int `json:"fleetMaxRunning,omitempty"`
	FleetMaxQueued  int `json:"fleetMaxQueued,omitempty"`
	// Calls, CallBurst and CallBytes are what the call bridges of all processes together store for the owner: events in a second, events at once
	// (by default as many), and bytes of bodies and headers in a second.
	Calls     int `json:"calls,omitempty"`
	CallBurst int `json:"callBurst,omitempty"`
	CallBytes int `json:"callBytes,omitempty"`
	// Sends and SendBytes are what all processes together store of what its workers send to each other: tasks in a second (and at once as many,
	// or CallBurst if that is more), and bytes in a second. Zero means as many as Calls and CallBytes, beside those.
	Sends     int `json:"sends,omitempty"`
	SendBytes int `json:"sendBytes,omitempty"`
	// MaxIsolates and HeapMB are what its isolates in a process may come to.
	MaxIsolates int `json:"maxIsolates,omitempty"`
	HeapMB      int `json:"heapMB,omitempty"`
	// Ceilings are the most that the limits of its workers may be. What a worker asks beyond them it does not get.
	Ceilings Limits `json:"ceilings,omitzero"`
}

// MaxPolicy are the most that may be asked for.
var MaxPolicy = Policy{
	Weight: 100, MaxRunning: 640_000, MaxQueued: 1_000_000, FleetMaxRunning: 10_000_000, FleetMaxQueued: 100_000_000,
	Calls: 10_000_000, CallBurst: 10_000_000, CallBytes: 1 << 40, Sends: 10_000_000, SendBytes: 1 << 40, MaxIsolates: 2000, HeapMB: 3584, Ceilings: MaxLimits,
}

// Validate returns an error that names the field that is out of bounds and its bounds.
func (p Policy) Validate() error {
	for _, c := range []struct {
		name       string
		value, max int
	}{
		{"weight", p.Weight, MaxPolicy.Weight},
		{"maxRunning", p.MaxRunning, MaxPolicy.MaxRunning},
		{"maxQueued", p.MaxQueued, MaxPolicy.MaxQueued},
		{"fleetMaxRunning", p.FleetMaxRunning, MaxPolicy.FleetMaxRunning},
		{"fleetMaxQueued", p.FleetMaxQueued, MaxPolicy.FleetMaxQueued},
		{"calls", p.Calls, MaxPolicy.Calls},
		{"callBurst", p.CallBurst, MaxPolicy.CallBurst},
		{"callBytes", p.CallBytes, MaxPolicy.CallBytes},
		{"sends", p.Sends, MaxPolicy.Sends},
		{"sendBytes", p.SendBytes, MaxPolicy.SendBytes},
		{"maxIsolates", p.MaxIsolates, MaxPolicy.MaxIsolates},
		{"heapMB", p.HeapMB, MaxPolicy.HeapMB},
	} {
		if c.value < 0 || c.value > c.max {
			return fmt.Errorf("%s is %d: it is 1 to %d, or 0 for the default", c.name, c.value, c.max)
		}
	}
	if err := p.Ceilings.Validate(); err != nil {
		return fmt.Errorf("ceilings: %w", err)
	}
	return nil
}

// Within is l, with defaults filled in, lowered to the ceilings that are not zero.
func (l Limits) Within(ceilings Limits) Limits {
	l = l.OrDefault()
	lower := func(v *int, c int) {
		if c != 0 {
			*v = min(*v, c)
		}
	}
	if ceilings.CPU != 0 {
		l.CPU = min(l.CPU, ceilings.CPU)
	}
	if ceilings.Wall != 0 {
		l.Wall = min(l.Wall, ceilings.Wall)
	}
	lower(&l.HeapMB, ceilings.HeapMB)
	lower(&l.Subrequests, ceilings.Subrequests)
	lower(&l.Sends, ceilings.Sends)
	lower(&l.LogBytes, ceilings.LogBytes)
	return l
}

// Allow returns an error that names the first limit a manifest asks for that the owner's ceilings do not allow.
func (p Policy) Allow(l Limits) error {
	for _, c := range []struct {
		name        string
		asked, most int64
	}{
		{"limits.cpuMs", l.CPU.ms(), p.Ceilings.CPU.ms()},
		{"limits.wallMs", l.Wall.ms(), p.Ceilings.Wall.ms()},
		{"limits.heapMB", int64(l.HeapMB), int64(p.Ceilings.HeapMB)},
		{"limits.subrequests", int64(l.Subrequests), int64(p.Ceilings.Subrequests)},
		{"limits.sends", int64(l.Sends), int64(p.Ceilings.Sends)},
		{"limits.logBytes", int64(l.LogBytes), int64(p.Ceilings.LogBytes)},
	} {
		if c.most != 0 && c.asked > c.most {
			return fmt.Errorf("%s is %d: this owner may have at most %d", c.name, c.asked, c.most)
		}
	}
	return nil
}
