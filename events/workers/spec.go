package workers

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Spec says how a worker is to be run. It is what a manifest says, what a stored version holds, and what every room
// reads of a Worker. Zero fields mean the default.
//
// A new field needs a tag here, a check in Validate, and a field in what deploy hashes.
type Spec struct {
	Mode Mode `json:"mode,omitempty"`
	Bindings
	Limits     Limits           `json:"limits"`
	Retries    Retries          `json:"retries"`
	Lifetime   Lifetime         `json:"lifetime,omitzero"`      // of mode Persistent only
	OnDead     *events.DeadHook `json:"onDeadLetter,omitempty"` // gets the worker's dead letters; nil = none
	Idempotent bool             `json:"idempotent,omitempty"`   // a successful event never runs again: its stored result answers
	Schedules  []Schedule       `json:"schedules,omitempty"`    // when its scheduled handler runs by itself
	Sources    []Source         `json:"sources,omitempty"`      // whose messages are its tasks
	Secrets    []string         `json:"secrets,omitempty"`      // env.NAME is the value of this secret, which is stored elsewhere
	// Concurrency is how many events of the worker may run at once in all processes together; 0 = as many as its owner's.
	Concurrency int `json:"concurrency,omitempty"`
	// Batch bounds the batches of a queue handler; nil = the defaults.
	Batch *Batch `json:"batch,omitempty"`
	// BinaryType is the binaryType that new WebSockets have; "" = BinaryBlob.
	BinaryType BinaryType `json:"binaryType,omitempty"`
	HTTP       *HTTP      `json:"http,omitempty"`  // nil = as all workers do
	Trace      *Trace     `json:"trace,omitempty"` // nil = no server learns of traces
	// Assets are files that answer HTTP requests; nil = none.
	Assets *Assets `json:"assets,omitempty"`
}

// OrDefault fills mode, limits and retries that are zero.
func (s Spec) OrDefault() Spec {
	s.Mode, s.Limits, s.Retries = s.Mode.OrDefault(), s.Limits.OrDefault(), s.Retries.OrDefault()
	return s
}

// Validate returns an error that begins with the path of the field that is wrong, for example "limits.cpuMs is …", and
// says what is allowed. It does not read the expressions of schedules.
func (s Spec) Validate() error {
	checks := []func() error{
		s.Bindings.Validate, s.Limits.Validate, s.Retries.Validate, s.Lifetime.Validate, s.validateSchedules,
		s.validateSources, s.validateSecrets, s.validateHTTP, s.Trace.validate, s.Assets.validate, s.validateFilesBinding,
		s.Mode.Validate, s.BinaryType.validate,
	}
	if s.Batch != nil {
		checks = append(checks, s.Batch.Validate)
	}
	if s.OnDead != nil {
		checks = append(checks, s.OnDead.Validate)
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	if s.Concurrency < 0 || s.Concurrency > MaxConcurrency {
		return fmt.Errorf("concurrency is %d: allowed is 1 to %d, and 0 for no limit", s.Concurrency, MaxConcurrency)
	}
	if s.Lifetime != (Lifetime{}) && s.Mode != Persistent {
		return fmt.Errorf("lifetime is for mode %q: the mode is %q", Persistent, s.Mode.OrDefault())
	}
	return nil
}

func (s Spec) validateSchedules() error {
	if len(s.Schedules) > MaxSchedules {
		return fmt.Errorf("schedules has %d: at most %d are allowed", len(s.Schedules), MaxSchedules)
	}
	for i, schedule := range s.Schedules {
		if err := schedule.Validate(); err != nil {
			return fmt.Errorf("schedules[%d].%w", i, err)
		}
		if j := slices.IndexFunc(s.Schedules, func(o Schedule) bool { return o.Name == schedule.Name }); j < i {
			return fmt.Errorf("schedules[%d].name is %q: schedules[%d] has that name", i, schedule.Name, j)
		}
	}
	return nil
}

// MaxConcurrency is the highest Concurrency of a worker.
const MaxConcurrency = 100_000

// MaxSecrets is the largest number of secrets that a worker may name.
const MaxSecrets = 64

// validateSecrets checks the names of secrets. A name in env is one thing, so no binding may have the same name.
func (s Spec) validateSecrets() error {
	if len(s.Secrets) > MaxSecrets {
		return fmt.Errorf("secrets has %d: at most %d are allowed", len(s.Secrets), MaxSecrets)
	}
	for i, name := range s.Secrets {
		if err := events.CheckEnvName(name); err != nil {
			return fmt.Errorf("secrets[%d] %w", i, err)
		}
		if slices.Index(s.Secrets, name) < i {
			return fmt.Errorf("secrets[%d] %s stands twice", i, name)
		}
		for _, k := range bindingKinds {
			if _, both := k.of(&s.Bindings).get()[name]; both {
				return fmt.Errorf("secrets[%d] %s is a %s too: a name in env is one thing", i, name, k.noun)
			}
		}
	}
	return nil
}

// Mode says how the isolates of a worker are used.
type Mode string

// The modes. The zero Mode means Pinned.
const (
	// Pinned: each thread has isolates of its own for an owner, with warm contexts. A context runs one event at a time.
	Pinned Mode = "pinned"
	// Shared: the threads of a process share the isolates of an owner. Any thread takes an idle one.
	Shared Mode = "shared"
	// Oneshot: each event gets a new isolate, which ends with it.
	Oneshot Mode = "oneshot"
	// Persistent: one context per process runs all events of the worker, many at once, and keeps its state.
	Persistent Mode = "persistent"
)

// Modes are all modes, the default first.
var Modes = [...]Mode{Pinned, Shared, Oneshot, Persistent}

// OrDefault is Pinned for the zero Mode.
func (m Mode) OrDefault() Mode {
	if m == "" {
		return Pinned
	}
	return m
}

// Validate returns an error that names the modes when m is none of them. The zero Mode is allowed.
func (m Mode) Validate() error {
	if m == "" || slices.Contains(Modes[:], m) {
		return nil
	}
	names := make([]string, len(Modes))
	for i, known := range Modes {
		names[i] = string(known)
	}
	return fmt.Errorf("mode %q: it is one of %s", m, strings.Join(names, ", "))
}

// BinaryType is what a WebSocket makes of a binary message, until its own binaryType says otherwise.
type BinaryType string

// The types. The standard's is BinaryBlob; Cloudflare's was BinaryBuffer until 2026-03-17.
const (
	BinaryBlob   BinaryType = "blob"
	BinaryBuffer BinaryType = "arraybuffer"
)

// BinaryTypes are all types, the default first.
var BinaryTypes = [...]BinaryType{BinaryBlob, BinaryBuffer}

func (b BinaryType) validate() error {
	if b == "" || slices.Contains(BinaryTypes[:], b) {
		return nil
	}
	return fmt.Errorf("binaryType is %q: it is %q or %q", b, BinaryBlob, BinaryBuffer)
}

// Batch bounds the batches that a queue handler gets. Zero and nil fields mean the default.
type Batch struct {
	MaxSize int     `json:"maxSize,omitempty"`   // events in a batch
	MaxWait *Millis `json:"maxWaitMs,omitempty"` // how long the first event waits for others; 0 = not at all
}

// DefaultBatch are the bounds of a worker whose manifest has none, and MaxBatch the largest ones. They are those of
// Cloudflare Queues.
var (
	DefaultBatch = Batch{MaxSize: 10, MaxWait: new(Millis(5 * time.Second))}
	MaxBatch     = Batch{MaxSize: 100, MaxWait: new(Millis(time.Minute))}
)

// OrDefault sets the fields that are not set. b may be nil.
func (b *Batch) OrDefault() Batch {
	d := DefaultBatch
	if b != nil && b.MaxSize != 0 {
		d.MaxSize = b.MaxSize
	}
	if b != nil && b.MaxWait != nil {
		d.MaxWait = b.MaxWait
	}
	return d
}

// Validate returns an error that names the bound that is not allowed, and what is.
func (b *Batch) Validate() error {
	switch {
	case b.MaxSize < 0 || b.MaxSize > MaxBatch.MaxSize:
		return fmt.Errorf("batch.maxSize is %d: it is 1 to %d", b.MaxSize, MaxBatch.MaxSize)
	case b.MaxWait != nil && (*b.MaxWait < 0 || *b.MaxWait > *MaxBatch.MaxWait):
		return fmt.Errorf("batch.maxWaitMs is %d: it is 0 to %d", b.MaxWait.ms(), MaxBatch.MaxWait.ms())
	}
	return nil
}

// Lifetime bounds how long a persistent worker's context lives. The next event makes it again. Zero means no bound.
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

// Trace says what a worker tells others of its traces.
type Trace struct {
	// Propagate are the hosts to which subrequests of a sampled event take traceparent and tracestate: api.example.com, or
	// *.example.com for every host below example.com.
	Propagate []string `json:"propagate,omitempty"`
}

// maxPropagate is the largest number of hosts in Trace.Propagate.
const maxPropagate = 32

// Propagates reports whether a host, as a URL has it, is one of Propagate.
func (t *Trace) Propagates(host string) bool {
	if t == nil {
		return false
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	for _, p := range t.Propagate {
		if below, ok := strings.CutPrefix(p, "*"); ok && len(host) > len(below) && strings.HasSuffix(host, below) ||
			host == p {
			return true
		}
	}
	return false
}

func (t *Trace) validate() error {
	if t == nil {
		return nil
	}
	if len(t.Propagate) > maxPropagate {
		return fmt.Errorf("trace.propagate has %d: at most %d are allowed", len(t.Propagate), maxPropagate)
	}
	for i, p := range t.Propagate {
		host := strings.TrimPrefix(p, "*.")
		if !isHostPattern(host) && !isIPv6(p) {
			return fmt.Errorf("trace.propagate[%d] is %q: it is a host in lower case like api.example.com, or *.example.com for every host below it", i, p)
		}
	}
	return nil
}

// isHostPattern reports whether a host, or what follows *., may be propagated to. It has no port.
func isHostPattern(host string) bool {
	return host != "" && len(host) <= 253 && strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-") == "" &&
		host[0] != '.'
}

// isIPv6 reports whether p is an address as URLs have it: in brackets, and as short as it can be.
func isIPv6(p string) bool {
	inner, ok := strings.CutPrefix(p, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	a, err := netip.ParseAddr(inner)
	return ok && closed && err == nil && a.Is6() && a.String() == inner
}
