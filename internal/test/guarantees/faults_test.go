package guarantees_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
)

func asAPIError(err error, api **jetstream.APIError) bool { return errors.As(err, api) }

// breaker injects faults, one or several at a time. Only one goroutine at a time breaks a process or the server.
type breaker struct {
	*testFleet
	random    *rand.Rand
	faults    []chance
	running   sync.WaitGroup
	busy      []sync.Mutex // one for each process
	serving   sync.Mutex   // for the servers
	replaying sync.Mutex   // for dead letters
	assets    int          // largest number of streams and consumers of a cluster that was seen
}

// act breaks something of one process, or of all, and repairs it.
type act = func(kind string, who int, long time.Duration)

// chance is how often a fault happens, relative to others.
type chance struct {
	kind  string
	times int
	do    act // nil: it breaks nothing
}

// ofOneServer returns the faults of a fleet with one server. Faults that stop the whole fleet are rarer than most
// others.
func (b *breaker) ofOneServer() []chance {
	return append(b.remakes(), []chance{
		{"kill fleet", 3, b.killFleet}, {"kill fleet, all", 1, b.killAll}, {"drain", 2, b.drain},
		{"pause fleet", 2, b.pauseFleet}, {"cut", 2, b.network}, {"part", 2, b.network},
		{"stall", 2, b.network}, {"kill server", 2, b.killServer}, {"pause server", 1, b.pauseServer},
		{"redeploy", 2, b.redeploy}, {"replay", 2, b.replay}, {"fill", 1, b.fill}, {"step clock", 3, b.stepClock},
		{"calm", 2, nil},
	}...)
}

// breakSomething starts a fault, which ends by itself.
func (b *breaker) breakSomething() {
	all := 0
	for _, c := range b.faults {
		all += c.times
	}
	n := b.random.IntN(all)
	who := b.random.IntN(len(b.fleet))
	long := time.Duration(100+b.random.IntN(4000)) * time.Millisecond
	for _, c := range b.faults {
		if n -= c.times; n >= 0 {
			continue
		}
		b.count("fault: " + c.kind)
		if c.do != nil {
			b.running.Go(func() { c.do(c.kind, who, long) })
		}
		return
	}
}

func (b *breaker) killFleet(kind string, who int, long time.Duration) {
	if !b.busy[who].TryLock() {
		return
	}
	defer b.busy[who].Unlock()
	defer b.model.broken(kind)()
	b.fleet[who].kill()
	pause(long / 4)
	b.again(who)
}

func (b *breaker) killAll(kind string, _ int, long time.Duration) {
	var all sync.WaitGroup
	for who := range b.fleet {
		all.Go(func() { b.killFleet(kind, who, long) })
	}
	all.Wait()
}

// again starts a process that has ended.
func (b *breaker) again(who int) {
	p := b.fleet[who]
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); {
		p.start()
		select {
		case <-p.ready:
			return
		case <-p.ended: // NATS was unreachable
			b.count("starts that failed because NATS was away")
			b.t.Logf("%s did not start: %s", p.name, p.last)
			pause(100 * time.Millisecond)
		case <-time.After(startPatience):
			b.t.Errorf("%s does not get ready", p.name)
			return
		}
	}
	b.t.Errorf("%s has not started within %s", p.name, startPatience)
}

func (b *breaker) drain(kind string, who int, long time.Duration) {
	if !b.busy[who].TryLock() {
		return
	}
	defer b.busy[who].Unlock()
	defer b.model.broken(kind)()
	p := b.fleet[who]
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		if p.err != nil {
			b.t.Errorf("%s drained and ended with %v", p.name, p.err)
		}
	case <-time.After(patience / 2):
		b.t.Errorf("%s does not end after SIGTERM", p.name)
		p.signal(syscall.SIGQUIT)
		<-p.ended
	}
	pause(long / 4)
	b.again(who)
}

func (b *breaker) pauseFleet(kind string, who int, long time.Duration) {
	if !b.busy[who].TryLock() {
		return
	}
	defer b.busy[who].Unlock()
	defer b.model.broken(kind)()
	b.fleet[who].signal(syscall.SIGSTOP)
	pause(long)
	b.fleet[who].signal(syscall.SIGCONT)
}

func (b *breaker) network(kind string, who int, long time.Duration) {
	defer b.model.broken(kind)()
	switch p := b.proxies[who]; kind {
	case "cut":
		p.cut()
		return
	case "part":
		p.stall() // what is sent now is lost
		pause(long / 8)
		p.part()
	case "stall":
		p.stall()
	}
	pause(long)
	b.proxies[who].heal()
}

func (b *breaker) killServer(kind string, _ int, long time.Duration) {
	if !b.serving.TryLock() {
		return
	}
	defer b.serving.Unlock()
	defer b.model.broken(kind)()
	b.server.kill()
	pause(long / 4)
	b.server.start()
	select {
	case <-b.server.ready:
	case <-time.After(patience):
		b.t.Errorf("the server does not come back")
	}
}

func (b *breaker) pauseServer(kind string, _ int, long time.Duration) {
	if !b.serving.TryLock() {
		return
	}
	defer b.serving.Unlock()
	defer b.model.broken(kind)()
	b.server.signal(syscall.SIGSTOP)
	pause(long / 2)
	b.server.signal(syscall.SIGCONT)
}

func (b *breaker) redeploy(_ string, who int, _ time.Duration) {
	owner := owners[who%len(owners)]
	if !b.deploying.TryLock() {
		return
	}
	defer b.deploying.Unlock()
	workers := workersOf(owner)
	if err := b.deploy(owner, workers[int(time.Now().UnixNano()/1000)%len(workers)],
		int(time.Now().UnixNano()%1e9)); err != nil {
		b.count("deploys that failed because NATS was away")
	}
}

// replay replays a few dead letters of events that will fail again.
func (b *breaker) replay(string, int, time.Duration) {
	b.replaying.Lock()
	defer b.replaying.Unlock()
	dead := deadletter.NewStore(b.js, subjects)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n := 0
	for l, err := range dead.List(ctx, deadletter.Filter{Reason: events.ReasonException}) {
		if err != nil || n == 5 {
			return
		}
		b.model.mu.Lock()
		o := b.model.orders[l.EventID]
		b.model.mu.Unlock()
		if o == nil || o.call {
			continue
		}
		n++
		err := dead.Replay(ctx, l, deadletter.ReplayOptions{})
		b.model.mu.Lock()
		// otherwise it was listed again before its end was known everywhere, and its replay is the same
		if l.Seq != o.letter {
			o.replays++
			o.letter = l.Seq
		}
		// The ack of its event may not be confirmed yet. Then the event runs again: docs/development/guarantees.md. In
		// a cluster this takes longer.
		if err != nil || b.model.loose { // it may have been stored nevertheless
			o.unsure = true
		}
		b.model.mu.Unlock()
		b.count("replays")
	}
}

// fill publishes more than the stream accepts.
func (b *breaker) fill(_ string, who int, _ time.Duration) {
	defer b.model.broken("fill")()
	padding := strings.Repeat("x", 12<<10)
	owner := owners[who%(len(owners)-1)]
	for range 120 {
		id := b.nextID()
		o := &order{id: id, kind: events.Task, owner: owner, worker: "job", what: "ok"}
		o.body = fmt.Sprintf(`{"id":%q,"what":"ok","padding":%q}`, id, padding)
		b.running.Go(func() { b.publish(o) })
	}
}

// starvation is the fault that the machine gave the processes, or the server, too little CPU time or disk. Then leases
// end while their events run.
const starvation = "starvation"

// watchForStarvation records, until ctx is done, when this process or the server was late by a good part of a lease. It
// asks the server directly: whether the fleet got its answers does not matter here.
func (h *testFleet) watchForStarvation(ctx context.Context) {
	for {
		asked := time.Now()
		once, cancel := context.WithTimeout(ctx, ackWait)
		_, _ = h.js.Stream(once, events.StreamEvents) // a server that is away is another fault
		cancel()
		late := time.Since(asked) > ackWait/4
		asked = time.Now()
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		if late || time.Since(asked) > ackWait/4 {
			h.model.moment(starvation)
		}
	}
}

// mendAll waits until every fault has ended, and makes sure that everything runs.
func (b *breaker) mendAll() {
	b.running.Wait()
	for _, p := range b.proxies {
		p.heal()
	}
	all := slices.Clone(b.fleet)
	if b.server != nil {
		all = append(all, b.server)
	}
	for _, p := range all {
		require.True(b.t, p.alive(), "%s has ended by itself: %v", p.name, p.err)
	}
}
