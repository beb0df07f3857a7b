package events

import (
	"fmt"
	"time"
)

// Mode is how the isolates of a worker are used (design §5).
type Mode string

// The modes. The zero Mode means Pinned.
const (
	// Pinned: each thread keeps isolates of its own for an owner, with warm contexts that run one event at a time.
	Pinned Mode = "pinned"
	// Shared: the isolates of an owner are the process's, and any thread takes one that is idle.
	Shared Mode = "shared"
	// Oneshot: each event gets an isolate that nothing ran in before, and that is gone after it.
	Oneshot Mode = "oneshot"
	// Persistent: one context per process runs all events of the worker, many at once, and keeps its state.
	Persistent Mode = "persistent"
)

// Modes are all of them, the default first.
var Modes = [...]Mode{Pinned, Shared, Oneshot, Persistent}

// OrDefault is Pinned for the zero Mode.
func (m Mode) OrDefault() Mode {
	if m == "" {
		return Pinned
	}
	return m
}

// Lifetime bounds how long a persistent worker's context lives. It is made anew by the next event. Zero means without bound.
type Lifetime struct {
	Idle     Millis `json:"idleMs,omitempty"`   // without an event
	TTL      Millis `json:"ttlMs,omitempty"`    // since it was made
	Requests int    `json:"requests,omitempty"` // events
}

// MaxLifetime are the largest bounds a manifest may give.
var MaxLifetime = Lifetime{
	Idle: Millis(30 * 24 * time.Hour), TTL: Millis(30 * 24 * time.Hour), Requests: 1_000_000_000,
}

// Validate returns an error that names the bound that is not allowed, and what is.
func (l Lifetime) Validate() error {
	for _, c := range []struct {
		name           string
		value, lo, max int64
	}{
		{"lifetime.idleMs", l.Idle.ms(), 10, MaxLifetime.Idle.ms()},
		{"lifetime.ttlMs", l.TTL.ms(), 10, MaxLifetime.TTL.ms()},
		{"lifetime.requests", int64(l.Requests), 1, int64(MaxLifetime.Requests)},
	} {
		if c.value != 0 && (c.value < c.lo || c.value > c.max) {
			return fmt.Errorf("%s is %d: it is %d to %d", c.name, c.value, c.lo, c.max)
		}
	}
	return nil
}

// Worker is one version of a named handler bundle of an owner. It never changes once made, so
// that every thread may read it.
type Worker struct {
	Owner string
	Name  string

	Version string // "<number>-<first 12 hex digits of the hash>"
	Number  int    // 1 for the first deploy of this worker, then counting
	Hash    string // SHA-256 over bundle and manifest, hex

	Mode      Mode
	Handlers  []Kind // kinds that the module has a handler for
	Code      string // one ES module, imports bundled
	File      string // what stack traces call it, e.g. "hello.js"
	SourceMap []byte // version 3 JSON; nil = none

	Vars   map[string]string // env.NAME = string
	Queues map[string]string // env.NAME.send(…) publishes a task to this worker of the same owner

	Limits   Limits
	Retries  Retries
	Lifetime Lifetime // of mode Persistent only

	Schedules []Schedule // when its scheduled handler runs by itself

	OnDead *DeadHook // who is told of its dead letters, nil = nobody

	Idempotent bool // an event that has succeeded is not run again: its stored result answers

	DeployedAt time.Time
}

// Target is "owner/name".
func (w *Worker) Target() string { return w.Owner + "/" + w.Name }

// Limits bound one attempt of a worker. Zero means the default; times are in the JSON as milliseconds.
type Limits struct {
	CPU         Millis `json:"cpuMs,omitempty"`       // CPU time of the attempt
	Wall        Millis `json:"wallMs,omitempty"`      // from start to the end of waitUntil
	HeapMB      int    `json:"heapMB,omitempty"`      // V8 heap of the isolate
	Subrequests int    `json:"subrequests,omitempty"` // fetch() calls per attempt
	Sends       int    `json:"sends,omitempty"`       // send() calls per attempt
	LogBytes    int    `json:"logBytes,omitempty"`    // console output per attempt
}

// DefaultLimits are the limits of a worker whose manifest names none.
var DefaultLimits = Limits{
	CPU: Millis(50 * time.Millisecond), Wall: Millis(30 * time.Second), HeapMB: 128, Subrequests: 50, Sends: 1000, LogBytes: 64 << 10,
}

// MaxLimits are the most a manifest may ask for.
var MaxLimits = Limits{
	CPU: Millis(5 * time.Minute), Wall: Millis(15 * time.Minute), HeapMB: 512, Subrequests: 1000, Sends: 100_000, LogBytes: 1 << 20,
}

// OrDefault fills the limits that are zero.
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

// Retries is how a worker's failed events are tried again. Zero and nil fields mean the default.
type Retries struct {
	MaxAttempts int      `json:"maxAttempts,omitempty"` // runs in all; 1 = never again
	Initial     Millis   `json:"initialMs,omitempty"`   // delay before the second run
	Factor      float64  `json:"factor,omitempty"`      // each further delay is this much longer
	Max         Millis   `json:"maxMs,omitempty"`       // no delay is longer
	Jitter      *float64 `json:"jitter,omitempty"`      // each delay is off by up to this part of it, either way
	Fetch       bool     `json:"fetch,omitempty"`       // retry fetch events too; by default only task and scheduled
}

// DefaultRetries is the policy of a worker whose manifest names none.
var DefaultRetries = Retries{
	MaxAttempts: 5, Initial: Millis(time.Second), Factor: 2, Max: Millis(time.Minute), Jitter: new(0.2),
}

// OrDefault fills the fields that are zero.
func (r Retries) OrDefault() Retries {
	d := DefaultRetries
	if r.MaxAttempts == 0 {
		r.MaxAttempts = d.MaxAttempts
	}
	if r.Initial == 0 {
		r.Initial = d.Initial
	}
	if r.Factor == 0 {
		r.Factor = d.Factor
	}
	if r.Max == 0 {
		r.Max = max(d.Max, r.Initial)
	}
	if r.Jitter == nil {
		r.Jitter = d.Jitter
	}
	return r
}

// Validate returns an error that names the field that is out of bounds and its bounds.
func (r Retries) Validate() error {
	hour := Millis(time.Hour).ms()
	switch {
	case r.MaxAttempts < 0 || r.MaxAttempts > 100:
		return fmt.Errorf("retries.maxAttempts is %d: it is 1 to 100", r.MaxAttempts)
	case r.Initial < 0 || r.Initial.ms() > hour:
		return fmt.Errorf("retries.initialMs is %d: it is 1 to %d", r.Initial.ms(), hour)
	case r.Factor != 0 && (r.Factor < 1 || r.Factor > 10):
		return fmt.Errorf("retries.factor is %g: it is 1 to 10", r.Factor)
	case r.Max < 0 || r.Max.ms() > 24*hour || r.Max != 0 && r.Max < r.Initial:
		return fmt.Errorf("retries.maxMs is %d: it is retries.initialMs to %d", r.Max.ms(), 24*hour)
	case r.Jitter != nil && !(*r.Jitter >= 0 && *r.Jitter <= 1):
		return fmt.Errorf("retries.jitter is %g: it is 0 to 1", *r.Jitter)
	}
	return nil
}

// Millis is a duration that is a whole number of milliseconds in JSON.
type Millis time.Duration

// Duration is m as a time.Duration.
func (m Millis) Duration() time.Duration { return time.Duration(m) }

func (m Millis) ms() int64 { return time.Duration(m).Milliseconds() }

// MarshalJSON writes the milliseconds as a number.
func (m Millis) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%d", m.ms()), nil }

// UnmarshalJSON reads a number of milliseconds that is whole and not negative.
func (m *Millis) UnmarshalJSON(b []byte) error {
	var n int64
	if _, err := fmt.Sscanf(string(b), "%d", &n); err != nil || n < 0 || n > int64(24*time.Hour/time.Millisecond)*365 || fmt.Sprint(n) != string(b) {
		return fmt.Errorf("%s is not a whole number of milliseconds", b)
	}
	*m = Millis(time.Duration(n) * time.Millisecond)
	return nil
}
