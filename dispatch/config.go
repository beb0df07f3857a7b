package dispatch

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
)

// Bounds of Config.
const (
	maxThreads = 64 // of a pool: sets are bits of a word; a machine with more cores runs several processes
	maxSlots   = 10_000
	maxQueued  = 1_000_000
)

// Assumed costs where nothing was measured yet, and the sizes of steps.
const (
	// quantum is the CPU time an owner gets per round: long enough to run events of one isolate together, which is
	// several times cheaper than alternating.
	quantum = time.Millisecond
	// turn is the most expected CPU time that a thread takes at once, of one owner or of several. It is short, because
	// owners that come meanwhile wait until it is over.
	turn = quantum / 2
	// unknownCost is the expected CPU time of an event of a worker that never ended an attempt here.
	unknownCost = time.Millisecond
	// leastCost keeps events that use no measurable CPU from being free.
	leastCost = 2 * time.Microsecond
	// wakeWorth is the expected CPU time for which one more thread is woken (waking costs about 26 µs).
	wakeWorth = 200 * time.Microsecond
	// lateAfter is how long a woken thread that did not call Next is counted on.
	lateAfter = 2 * time.Millisecond
	// soonEnough is in how much time a thread must be expected to take events, so that those of owners that are warm on it
	// are left to it: in about that time another thread makes a context.
	soonEnough = 2 * time.Millisecond
	// overdue is how long events are left to a thread that should have taken them by then. The system may not let it run.
	overdue = 10 * time.Millisecond
	// worthAnother is the expected CPU time of an owner's queued events for which another thread makes a context, too.
	worthAnother = 10 * time.Millisecond
	// keepSpare is how long a context stays that was needed while another thread has one of the same version, too: what it
	// costs to make it again is then little.
	keepSpare = 30 * time.Second
	// closeAtOnce is of how many versions contexts are closed at once, and closeEvery how often while there are more. A
	// thread needs about 0.25 ms for an isolate.
	closeAtOnce = 4
	closeEvery  = 100 * time.Millisecond
	// expiryStep is how exactly deadlines of queued events are kept.
	expiryStep = 50 * time.Millisecond
	// ownAfter is how many runs of an event may be interrupted by others in its isolate before it gets an isolate of its
	// own.
	ownAfter = 2
	// parkedSlack is how many unparked events may wait above an owner's limit. The settler submits some before room is
	// reported, and none of these may be parked again, behind later ones.
	parkedSlack = 64
	// briefCPU is the CPU time up to which an attempt is cheaper than parking its event. Parking takes about as much here
	// and in nats-server.
	briefCPU = 50 * time.Microsecond
)

// Config configures a Dispatcher. The zero value of a field that has a default means the default.
type Config struct {
	// Threads is the number of pinned threads of each pool, 1 to 64: Next is called with ThreadOf(pool, 0) to
	// ThreadOf(pool, Threads-1).
	Threads int
	// Background is the number of additional threads of a lower priority of each pool: Threads to Threads+Background-1.
	// They run events of owners that take more than their share. Default 0: then no owner is heavy. At most 64 threads in
	// all.
	Background int
	// Slots is how many events one thread may have in progress, most of them waiting for I/O. Default 64.
	Slots int
	// OwnerMaxRunning is how many events of one owner may be in progress in this process. Default: three
	// quarters of all slots. That gives a single owner the whole machine's CPU, and still
	// leaves slots to others when its events wait for I/O.
	OwnerMaxRunning int
	// OwnerMaxQueued is how many events of one owner may wait in this process. Further ones are
	// parked until fewer than half as many wait. It must be well below the number of events that the consumer
	// holds, or one owner could fill that. Default 512.
	OwnerMaxQueued int
	// MaxBatch is how many events a batch has at most, whatever its worker allows: a batch must be well below the number
	// of events that the consumer holds. Default 100.
	MaxBatch int
	// Catalog has the policies of owners. The Dispatcher must follow it. Default: there are none.
	Catalog *catalog.Catalog
	// PoolOf returns the pool of an owner, 0 or more. It is asked when an owner is new here, and by PolicySet. Numbers are
	// small, and those of pools that ended are used again: what all pools together take grows with the greatest one. It is
	// called with the dispatcher's lock held, and must not call the Dispatcher. Nil means pool 0 for all.
	PoolOf func(owner string) int
	// Rand makes the jitter of retry delays: numbers in [0,1). Nil means math/rand/v2. It is called with
	// the dispatcher's lock held.
	Rand func() float64
	// Observers see events queued, started, replied, ended and settled, and direct ones delivered. Default none.
	Observers *lifecycle.Observers
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
	if c.MaxBatch == 0 {
		c.MaxBatch = workers.MaxBatch.MaxSize
	}
	if c.Catalog == nil {
		c.Catalog = &catalog.Catalog{}
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
		{"MaxBatch", c.MaxBatch, 1, workers.MaxBatch.MaxSize},
	} {
		if f.value < f.lo || f.value > f.hi {
			return fmt.Errorf("dispatch: %s is %d: it is %d to %d", f.name, f.value, f.lo, f.hi)
		}
	}
	return nil
}

// threadSet is a set of threads: bit i is thread i.
type threadSet uint64

func (s threadSet) len() int { return bits.OnesCount64(uint64(s)) }

// any is a set of one thread of s. It is the lowest numbered, so that few threads stay busy and the rest sleep.
func (s threadSet) any() threadSet { return s & -s }

// each calls f for each thread.
func (s threadSet) each(f func(thread int)) {
	for ; s != 0; s &= s - 1 {
		f(bits.TrailingZeros64(uint64(s)))
	}
}

// doubled is a time that doubles with each further of n crashes, up to the longest.
func doubled(first time.Duration, n int, longest time.Duration) time.Duration {
	return min(first<<min(max(1, n)-1, 20), longest)
}
