package workers

import (
	"fmt"
	"time"
)

// Limits bound one attempt of a worker. Zero means the default. Times are milliseconds in JSON.
type Limits struct {
	CPU         Millis `json:"cpuMs,omitempty"`       // CPU time of the attempt
	Wall        Millis `json:"wallMs,omitempty"`      // from start to the end of waitUntil
	HeapMB      int    `json:"heapMB,omitempty"`      // V8 heap of the isolate
	Subrequests int    `json:"subrequests,omitempty"` // fetch() calls per attempt
	Sends       int    `json:"sends,omitempty"`       // send() calls per attempt
	LogBytes    int    `json:"logBytes,omitempty"`    // console output per attempt
}

// DefaultLimits are the limits of a worker whose manifest has none.
var DefaultLimits = Limits{
	CPU: Millis(50 * time.Millisecond), Wall: Millis(30 * time.Second), HeapMB: 128, Subrequests: 50, Sends: 1000,
	LogBytes: 64 << 10,
}

// MaxLimits are the largest limits that a manifest may have.
var MaxLimits = Limits{
	CPU: Millis(5 * time.Minute), Wall: Millis(15 * time.Minute), HeapMB: 512, Subrequests: 1000, Sends: 100_000,
	LogBytes: 1 << 20,
}

// OrDefault sets the limits that are zero.
func (l Limits) OrDefault() Limits {
	fill := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if l.CPU == 0 {
		l.CPU = DefaultLimits.CPU
	}
	if l.Wall == 0 {
		l.Wall = DefaultLimits.Wall
	}
	fill(&l.HeapMB, DefaultLimits.HeapMB)
	fill(&l.Subrequests, DefaultLimits.Subrequests)
	fill(&l.Sends, DefaultLimits.Sends)
	fill(&l.LogBytes, DefaultLimits.LogBytes)
	return l
}

// Validate returns an error that names the limit that is out of bounds and its bounds.
func (l Limits) Validate() error {
	for _, c := range []struct {
		name          string
		value, lo, hi int64
	}{
		{"limits.cpuMs", l.CPU.ms(), 1, MaxLimits.CPU.ms()},
		{"limits.wallMs", l.Wall.ms(), 1, MaxLimits.Wall.ms()},
		{"limits.heapMB", int64(l.HeapMB), 8, int64(MaxLimits.HeapMB)},
		{"limits.subrequests", int64(l.Subrequests), 1, int64(MaxLimits.Subrequests)},
		{"limits.sends", int64(l.Sends), 1, int64(MaxLimits.Sends)},
		{"limits.logBytes", int64(l.LogBytes), 1, int64(MaxLimits.LogBytes)},
	} {
		if c.value != 0 && (c.value < c.lo || c.value > c.hi) {
			return fmt.Errorf("%s is %d: it is %d to %d", c.name, c.value, c.lo, c.hi)
		}
	}
	return nil
}
