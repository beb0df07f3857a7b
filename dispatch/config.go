package dispatch

import (
	"fmt"
	"time"
)

// Bounds of Config.
const (
	maxThreads = 64 // sets of threads are bits of a word; a machine with more cores runs several processes
	maxSlots   = 10_000
	maxQueued  = 1_000_000
)

// What the dispatcher counts with when nothing was measured yet, and the sizes of its steps.
const (
	// quantum is the CPU time an owner gets per round. It is also the most expected CPU time that a
	// thread takes at once: long enough to run events of one isolate together, which is several times cheaper than
	// alternating, short enough that nobody notices the wait.
	quantum = 500 * time.Microsecond
	// unknownCost is what an event of a worker that never ended an attempt here is expected to take.
	unknownCost = time.Millisecond
	// leastCost keeps events that use no measurable CPU from being free.
	leastCost = 2 * time.Microsecond
	// wakeWorth is how much expected CPU time is worth waking one more thread (waking costs about 26 µs).
	wakeWorth = 200 * time.Microsecond
	// lateAfter is when a woken thread that did not come is no longer counted on.
	lateAfter = 2 * time.Millisecond
	// expiryStep is how exact the deadline of a queued event is kept.
	expiryStep = 50 * time.Millisecond
	// ownAfter is how many runs of an event may be cut short by others in its isolate before it gets one to itself.
	ownAfter = 2
	// parkedSlack is how many parked events may wait above an owner's limit. The settler brings some before it is told of room, and
	// none must go back and come later than those behind it.
	parkedSlack = 64
	// briefCPU is the most that an attempt takes which is cheaper than to park its event: that takes about as much of us and of nats-server.
	briefCPU = 50 * time.Microsecond
	// keptVersions is how many versions of a worker beside the active one Worker-Version may name.
	keptVersions = 10
)

// Config is what a Dispatcher is set up with. The zero value of a field that has a default means the default.
type Config struct {
	// Threads is the number of pinned threads, 1 to 64: Next is called with 0 to Threads-1.
	Threads int
	// Background is how many threads there are beside those: Threads to Threads+Background-1, of a lower priority. They run events of
	// owners that take more than their share. Default none: then no owner is treated so. At most 64 threads in all.
	Background int
	// Slots is how many events one thread may have in progress, most of them waiting for I/O. Default 64.
	Slots int
	// OwnerMaxRunning is how many events of one owner may be in progress in this process. Default: three
	// quarters of all slots. That is the whole machine's CPU for an owner that is alone, and still
	// leaves slots to others when its events wait for I/O.
	OwnerMaxRunning int
	// OwnerMaxQueued is how many events of one owner may wait in this process; further ones are
	// parked until fewer than half as many wait. It must be well below the number of events that the consumer
	// holds, or one owner could fill that. Default 512.
	OwnerMaxQueued int
	// Rand makes the jitter of retry delays: numbers in [0,1). Nil means math/rand/v2. It is called with
	// the dispatcher's lock held.
	Rand func() float64
}

// OrDefault fills the fields that are zero and have a default.
func (c Config) OrDefault() Config {
	if c.Slots == 0 {
		c.Slots = 64
	}
	if c.OwnerMaxRunning == 0 {
		c.OwnerMaxRunning = max(1, c.Threads*c.Slots*3/4)
	}
	if c.OwnerMaxQueued == 0 {
		c.OwnerMaxQueued = 512
	}
	return c
}

// Validate returns an error that names the field that is out of bounds, its value and its bounds.
func (c Config) Validate() error {
	c = c.OrDefault()
	for _, f := range []struct {
		name          string
		value, lo, hi int
	}{
		{"Threads", c.Threads, 1, maxThreads},
		{"Background", c.Background, 0, maxThreads - c.Threads},
		{"Slots", c.Slots, 1, maxSlots},
		{"OwnerMaxRunning", c.OwnerMaxRunning, 1, maxThreads * maxSlots},
		{"OwnerMaxQueued", c.OwnerMaxQueued, 1, maxQueued},
	} {
		if f.value < f.lo || f.value > f.hi {
			return fmt.Errorf("dispatch: %s is %d: it is %d to %d", f.name, f.value, f.lo, f.hi)
		}
	}
	return nil
}
