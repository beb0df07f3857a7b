package isolates

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/limits"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Config configures a Pool. Take DefaultConfig and change the fields that differ.
type Config struct {
	limits.Pool
	// AllowAddresses are networks that fetch() may reach even if they are private, link-local or loopback.
	AllowAddresses []netip.Prefix
	// AllowHosts are host names that fetch() may connect to, whatever addresses they resolve to.
	AllowHosts []string
	// RefuseAddress says which addresses handlers never reach, whatever is allowed: those of the fleet's NATS. It is
	// called from any goroutine. nil = none.
	RefuseAddress func(netip.AddrPort) bool
	// Dial connects for the requests, sockets and WebSockets of an owner's handlers, in a process that cannot connect
	// itself. The guard is behind it: AllowAddresses and AllowHosts mean nothing then. nil = this process connects.
	Dial egress.Dial
	// Lookup finds the addresses of names, in such a process. nil = this process does.
	Lookup egress.Lookup
	// RootCAs are the authorities whose certificates handlers' requests accept; see egress.Authorities. nil = those of
	// the system, whose files are read when they are first needed.
	RootCAs *x509.CertPool
	// Held is called when the number of bytes that Go holds for events has changed by much. bytes is the number now. It
	// is called from any goroutine. nil = no calls.
	Held func(bytes int64)
	// Secrets returns the values of the secrets that a worker names. It is called only for workers that name some, for
	// each of their events, by the threads: it must not block. With an error, which must not quote a value, the event
	// fails. nil = no worker may name secrets.
	Secrets func(w *workers.Worker) (*Secrets, error)
	// Note names, for each thread, the worker for which it is in V8. nil = no process reads it.
	Note *crashnote.Note
	// OnContext is called when a context is made, discarded or evicted, by its thread: it must not block. nil = no
	// calls.
	OnContext func(ContextChange)
	// Files answers requests to the bindings of workers' files. nil = such requests fail.
	Files bindings.Files
	// Services answer requests and calls to the service bindings of workers. nil = they fail.
	Services bindings.Services
}

// Bounds that are not worth a setting.
const (
	maxTimers = 10_000 // pending timers per event
	loadCPU   = time.Second
	loadWall  = 10 * time.Second // of a module's evaluation, top-level await included
	maxLoops  = 200_000          // commands of one turn
)

// DefaultConfig is the configuration of a process without settings.
func DefaultConfig(threads int) Config {
	return Config{Pool: limits.Pool{
		Threads: threads, Slots: 64, MaxIsolates: 500, ContextsPerIsolate: 64, ContextMaxReuses: 1000, ContextKeepMB: 32,
		MaxParked:      4,
		OldVersionIdle: time.Minute, SpareIsolates: 2, CodeCacheBytes: 64 << 20,
	}}
}

// OrDefault fills the fields that are zero and whose default depends on other fields.
func (c Config) OrDefault() Config {
	if c.HeapMB == 0 {
		c.HeapMB = mostHeapMB(c.Threads + c.Background)
	}
	if c.OwnerHeapMB == 0 {
		c.OwnerHeapMB = max(c.HeapMB/2, 1)
	}
	if c.OwnerMaxIsolates == 0 {
		c.OwnerMaxIsolates = max(c.MaxIsolates/2, 1)
	}
	return c
}

// Validate returns an error that names the wrong field, its value and the allowed values.
func (c Config) Validate() error {
	c = c.OrDefault()
	for _, f := range []struct {
		name       string
		value      int
		least, max int
	}{
		{"Threads", c.Threads, 1, 64},
		{"Slots", c.Slots, 1, 10_000},
		{"Background", c.Background, 0, 64 - c.Threads},
		{"MaxIsolates", c.MaxIsolates, c.Threads + c.Background, 2000},
		{"HeapMB", c.HeapMB, 64, mostHeapMB(c.Threads + c.Background)},
		{"OwnerMaxIsolates", c.OwnerMaxIsolates, 1, c.MaxIsolates},
		{"OwnerHeapMB", c.OwnerHeapMB, 1, c.HeapMB},
		{"ContextsPerIsolate", c.ContextsPerIsolate, 1, 1000},
		{"ContextMaxReuses", c.ContextMaxReuses, 1, 1 << 30},
		{"ContextKeepMB", c.ContextKeepMB, 0, cageMB},
		{"SpareIsolates", c.SpareIsolates, 0, 64},
		{"CodeCacheBytes", c.CodeCacheBytes, 0, 1 << 30},
		{"MaxParked", c.MaxParked, 1, 64},
	} {
		if f.value < f.least || f.value > f.max {
			return fmt.Errorf("isolates: %s is %d: it is %d to %d", f.name, f.value, f.least, f.max)
		}
	}
	if !c.Compilers.Valid() {
		return fmt.Errorf("isolates: Compilers is %q: it is full, baseline or none", c.Compilers)
	}
	return nil
}

// startV8 starts V8 and makes the snapshot, once per process.
func (c Config) startV8() error {
	with := v8x.AllCompilers
	switch c.Compilers {
	case workers.CompilersBaseline:
		with = v8x.Baseline
	case workers.CompilersNone:
		with = v8x.Interpreter
	}
	return js.Start(with)
}

// prewarmed returns how many isolates are kept ready. Most of the room is for isolates that are warm for workers.
func (c Config) prewarmed() int {
	return min(c.SpareIsolates, (c.MaxIsolates-c.Threads-c.Background)/4)
}

// maxText is how many bytes of a line of output, or of a failure, are read. A failure keeps less, and a line is
// shorter.
const maxText = 64 << 10

// maxIsolatesOf returns how many isolates a thread may have. Background threads have few owners, and together an eighth
// of all isolates.
func (c Config) maxIsolatesOf(index int) int {
	all, background := c.MaxIsolates-c.prewarmed(), 0
	if c.Background > 0 {
		background = max(1, all/(8*c.Background))
	}
	if index >= c.Threads {
		return background
	}
	rest := all - c.Background*background
	n := rest / c.Threads
	if index < rest%c.Threads {
		n++
	}
	return max(1, n)
}

// The heaps of all isolates of a process lie in one address range of 4 GB (V8's pointer compression cage). V8 ends the
// process, or a thread of it, when that range is full. So the sum of the heaps is kept below a budget. A new isolate is
// made only where it fits. When existing isolates have grown too large, idle ones are closed first, then the largest.
const (
	cageMB  = 4096
	slackMB = 512 // a single value may be this large before V8 checks any limit
	// freshHeap is the assumed size of a new isolate with a context from the snapshot. The isolate is measured after
	// its first turns.
	freshHeap = 3 << 20
)

// mostHeapMB is the largest budget for that many threads. It leaves room for the slack. It also assumes that each
// thread may be in an isolate that is about to grow to its limit, and beyond it by as much as the other contexts in the
// isolate may have.
func mostHeapMB(threads int) int {
	return max(cageMB-slackMB-threads*(workers.DefaultLimits.HeapMB+maxOthers>>20), 512)
}
