package isolates

import (
	"fmt"
	"net/netip"
	"time"
)

// Config of a Pool. Take DefaultConfig and change what differs.
type Config struct {
	// Threads is how many pinned threads there are.
	Threads int
	// Background is how many there are beside those, of a lower priority: threads Threads to Threads+Background-1. Their Source gives them
	// events of owners that take more than their share.
	Background int
	// Slots is how many events one thread may have in progress, most of them waiting for I/O.
	Slots int
	// MaxIsolates is how many isolates the process may have, shared evenly by its threads; those of Background have an eighth.
	MaxIsolates int
	// HeapMB is what the heaps and ArrayBuffers of all isolates may take together. Zero means as much as V8 can hold with so
	// many threads.
	HeapMB int
	// OwnerMaxIsolates and OwnerHeapMB are the most that one owner may have of both. Zero means half.
	OwnerMaxIsolates int
	OwnerHeapMB      int
	// ContextsPerIsolate is how many contexts of one owner share an isolate at most. Fewer do when they are not small (crowdBytes).
	ContextsPerIsolate int
	// ContextMaxReuses is after how many events it is looked whether a context is to be made anew, so that what a guest
	// keeps cannot grow for ever: it is when its isolate takes more than ContextKeepMB (docs/adr/0010).
	ContextMaxReuses int
	ContextKeepMB    int // 0 = it is in any case
	// SpareIsolates is how many isolates the process keeps ready for workers that have none, so that their first event
	// does not wait for one; they are part of MaxIsolates, at most a quarter. 0 = none.
	SpareIsolates int
	// CodeCacheBytes is how much memory the process may use for what V8 has compiled of workers, kept so that later
	// contexts need not compile it again; 0 = none.
	CodeCacheBytes int
	// AllowAddresses are networks that fetch() may reach although they are private, link-local or loopback.
	AllowAddresses []netip.Prefix
	// AllowHosts are host names that fetch() may connect to whatever they resolve to.
	AllowHosts []string
	// MaxReply is how many bytes the body of a reply may have: a longer one is not kept (events.Reply.Dropped). 0 = any number.
	MaxReply int
	// Held is called when what Go holds for events has changed by much, with how many bytes that is now. From any goroutine. nil = nobody
	// wants to know.
	Held func(bytes int64)
	// MaxParked is how many threads V8 may lose by fatal errors before Healthy says no.
	MaxParked int
}

// Bounds that are not worth a setting.
const (
	maxTimers       = 10_000   // pending timers per event
	maxResponseBody = 64 << 20 // of one subrequest, bytes
	maxConcurrent   = 6        // subrequests of one event under way at once
	loadCPU         = time.Second
	loadWall        = 10 * time.Second // of a module's evaluation, top-level await included
	maxLoops        = 200_000          // commands of one turn
)

// DefaultConfig is what a process has that was told nothing.
func DefaultConfig(threads int) Config {
	return Config{
		Threads: threads, Slots: 64, MaxIsolates: 500, ContextsPerIsolate: 64, ContextMaxReuses: 1000, ContextKeepMB: 32, MaxParked: 4,
		SpareIsolates: 2, CodeCacheBytes: 64 << 20,
	}
}

// OrDefault fills the fields that are zero and have a default that depends on others.
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

// Validate returns an error that names the field that is wrong, its value and what is allowed.
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
	return nil
}
