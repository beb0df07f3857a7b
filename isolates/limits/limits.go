// Package limits has the figures of a pool of isolates: what of its configuration is the same in another process.
package limits

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Pool is how many of everything a pool may have.
type Pool struct {
	// Threads is the number of pinned threads.
	Threads int
	// Background is the number of additional threads of a lower priority: threads Threads to Threads+Background-1.
	// Their Source gives them events of owners that take more than their share.
	Background int
	// Slots is the number of events that one thread may have in progress. Most of them wait for I/O.
	Slots int
	// MaxIsolates is the number of isolates that the process may have. Its threads share them evenly, except that the
	// background threads have an eighth.
	MaxIsolates int
	// HeapMB bounds the heaps and ArrayBuffers of all isolates together. Zero means as much as V8 can hold with that
	// many threads.
	HeapMB int
	// OwnerMaxIsolates and OwnerHeapMB bound MaxIsolates and HeapMB for one owner. Zero means half.
	OwnerMaxIsolates int
	OwnerHeapMB      int
	// ContextsPerIsolate is the largest number of contexts of one owner that share an isolate. Fewer do when they are
	// not small (isolates.maxOthers).
	ContextsPerIsolate int
	// ContextMaxReuses is the number of events after which a context is checked. It is recreated if its isolate takes
	// more than ContextKeepMB. So a worker's data cannot grow forever (docs/development/adr/0010).
	ContextMaxReuses int
	ContextKeepMB    int // 0 = the context is always recreated
	// OldVersionIdle is how long the context of an older version stays without an event once a newer version has had
	// one.
	OldVersionIdle time.Duration
	// SpareIsolates is the number of prewarmed isolates. They are ready for workers that have none, so that the first
	// event does not wait. They are part of MaxIsolates, at most a quarter. 0 = none.
	SpareIsolates int
	// CodeCacheBytes is how much memory the process may use for compiled code of workers. It is kept so that later
	// contexts need not compile it again. 0 = none.
	CodeCacheBytes int
	// MaxReply is the largest number of bytes in the body of a reply. A longer body is not kept (events.Reply.Dropped).
	// 0 = no bound.
	MaxReply int
	// Compilers are those that V8 has in this process. All pools and Checkers of a process have the same. "" = full.
	Compilers workers.Compilers
	// MaxParked is how many threads V8 may lose by fatal errors before Healthy returns an error.
	MaxParked int
}
