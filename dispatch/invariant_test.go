package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// machine drives a Dispatcher from one goroutine, in any order that threads and a consumer could.
type machine struct {
	d       *Dispatcher
	l       *ledger
	threads int                          // of a pool
	held    map[int][]*lifecycle.Attempt // by the numbers of their threads
	asleep  [invariantPools]threadSet    // threads that got nothing and were not woken
	poolOf  map[string]int               // pools of owners; 0 = none is named
	warm    map[string]threadSet         // threads of its pool on which an owner may have contexts
	settled map[*lifecycle.Delivery]bool
	watched []*lifecycle.Delivery // that the settler has to submit again
	sent    int
	n       int
	leases  map[string]*leaseOf // by owner/worker
	term    uint64
	lessee  Lessee
	called  map[string]bool            // owners of which a run made a call
	calls   map[*lifecycle.Attempt]int // calls under way
}

// leaseOf is what Leases knows of a worker.
type leaseOf struct {
	owner, worker string
	wanted        bool
	term          uint64 // 0 = another process has it
}

func (m *machine) lease(owner, worker string) *leaseOf {
	name := owner + "/" + worker
	if m.leases[name] == nil {
		m.leases[name] = &leaseOf{owner: owner, worker: worker}
	}
	return m.leases[name]
}

func (m *machine) Want(owner, worker string) { m.lease(owner, worker).wanted = true }

func (m *machine) Idle(string, string, uint64) {}

func (m *machine) GivenBack(owner, worker string, term uint64) {
	if l := m.lease(owner, worker); l.term == term {
		l.term = 0
	}
}

// any draws a lease.
func (m *machine) anyLease(t *rapid.T, may func(*leaseOf) bool) *leaseOf {
	var list []*leaseOf
	for _, name := range slices.Sorted(maps.Keys(m.leases)) {
		if may(m.leases[name]) {
			list = append(list, m.leases[name])
		}
	}
	if len(list) == 0 {
		t.Skip("no such lease")
	}
	return rapid.SampledFrom(list).Draw(t, "lease")
}

func (m *machine) grant(t *rapid.T) {
	l := m.anyLease(t, func(l *leaseOf) bool { return l.wanted && l.term == 0 })
	m.term++
	l.wanted = false
	l.term = m.term // before Grant: it may be given back at once
	if !m.lessee.Grant(l.owner, l.worker, l.term) {
		l.term = 0
	}
}

func (m *machine) withdraw(t *rapid.T) {
	l := m.anyLease(t, func(l *leaseOf) bool { return l.term != 0 })
	if m.lessee.Withdraw(l.owner, l.worker, l.term, rapid.Bool().Draw(t, "if idle")) {
		require.Zero(t, m.runsOf(l), "it said that none runs")
		l.term = 0
	}
}

func (m *machine) lapse(t *rapid.T) {
	l := m.anyLease(t, func(l *leaseOf) bool { return l.term != 0 })
	m.lessee.Lapse(l.owner, l.worker, l.term)
	l.term = 0
	for _, h := range m.held {
		for _, a := range h {
			if a.Worker.Owner == l.owner && a.Worker.Name == l.worker && a.Halt != nil {
				require.True(t, a.Halt.Fired(), "its runs end")
			}
		}
	}
}

func (m *machine) runsOf(l *leaseOf) (n int) {
	for _, h := range m.held {
		for _, a := range h {
			if a.Worker.Owner == l.owner && a.Worker.Name == l.worker {
				n++
			}
		}
	}
	return n
}

func (m *machine) processes(t *rapid.T) { m.d.SetProcesses(rapid.IntRange(1, 3).Draw(t, "processes")) }

// watch submits again what was to be watched.
func (m *machine) watch(t *rapid.T) {
	n := rapid.IntRange(0, len(m.watched)).Draw(t, "n")
	var batch []*lifecycle.Delivery
	for _, e := range m.watched[:n] {
		e.Watched = true
		batch = append(batch, e)
	}
	m.watched = m.watched[n:]
	m.d.Submit(batch)
}

func (m *machine) tick(t *rapid.T) {
	m.d.lockedAt(time.Now().Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "s"))*time.Second), m.d.tick)
}

func (m *machine) owner(t *rapid.T) string {
	return fmt.Sprint("o", rapid.IntRange(0, 4).Draw(t, "owner"))
}

func (m *machine) install(t *rapid.T) {
	m.n++
	w := worker(m.owner(t), rapid.SampledFrom([]string{"v", "w"}).Draw(t, "worker"))
	w.Version, w.Number = fmt.Sprint(m.n), m.n
	w.Concurrency = rapid.SampledFrom([]int{0, 0, 1, 2, 4}).Draw(t, "concurrency")
	if w.Queue = rapid.IntRange(0, 2).Draw(t, "queue") == 0; w.Queue {
		w.Batch = &workers.Batch{MaxSize: rapid.IntRange(1, 5).Draw(t, "size"),
			MaxWait: new(rapid.SampledFrom([]workers.Millis{0, 1e9, 6e10}).Draw(t, "wait"))}
	}
	m.d.Install(workers.Only(w))
}

// pause pauses workers of an owner, or resumes them.
func (m *machine) pause(t *rapid.T) {
	p := workers.Policy{Paused: map[string]workers.Pause{}}
	for _, worker := range []string{workers.EveryWorker, "v", "w"} {
		if rapid.IntRange(0, 2).Draw(t, worker) == 0 {
			p.Paused[worker] = workers.Pause{}
		}
	}
	setPolicy(m.d, m.owner(t), p)
}

func (m *machine) ripen(t *rapid.T) {
	m.d.lockedAt(time.Now().Add(time.Duration(rapid.IntRange(0, 61).Draw(t, "s"))*time.Second), m.d.gatherer.ripen)
}

func (m *machine) remove(t *rapid.T) {
	m.d.Remove(m.owner(t), rapid.SampledFrom([]string{"v", "w"}).Draw(t, "worker"))
}

func (m *machine) submit(t *rapid.T) {
	var batch []*lifecycle.Delivery
	for range rapid.IntRange(1, 12).Draw(t, "n") {
		e := task(m.owner(t), rapid.SampledFrom([]string{"v", "w"}).Draw(t, "worker"), m.sent)
		e.Attempt = rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "attempt")
		e.Asked = e.Attempt > 1 && rapid.Bool().Draw(t, "asked")
		if rapid.IntRange(0, 5).Draw(t, "deadline") == 0 {
			e.Deadline = time.Now().Add(time.Duration(rapid.IntRange(-1, 2).Draw(t, "in")) * time.Hour)
		}
		if rapid.IntRange(0, 7).Draw(t, "crashed") == 0 {
			e.Attempt, e.Crashes = 2, rapid.IntRange(1, 4).Draw(t, "crashes")
			e.CrashedAlone = rapid.IntRange(0, 9).Draw(t, "alone") == 0
		}
		if e.Attempt == 1 && rapid.IntRange(0, 3).Draw(t, "direct") == 0 {
			e.Caller, e.ReplyTo = &directCall{m: m, t: t, event: e}, ""
		}
		batch = append(batch, e)
		m.sent++
	}
	m.d.Submit(batch)
}

// call has a run call a worker of its owner.
func (m *machine) call(t *rapid.T) {
	thread := m.thread(t)
	if len(m.held[thread]) == 0 {
		return
	}
	from := rapid.SampledFrom(m.held[thread]).Draw(t, "from")
	if from.Batch != nil {
		return
	}
	c, err := new(events.ServiceTree).Begin(from.Event.Service, from.Worker.Name, events.ServiceTarget{}, "")
	if err != nil {
		return
	}
	e := task(from.Worker.Owner, rapid.SampledFrom([]string{"v", "w"}).Draw(t, "worker"), m.sent)
	e.Service, e.ReplyTo = c, ""
	e.Caller = &directCall{m: m, t: t, event: e, end: func() {
		c.End()
		m.d.Calling(from, false)
		if m.calls[from]--; m.calls[from] == 0 {
			delete(m.calls, from)
		}
	}}
	m.sent++
	m.called[e.Owner] = true
	m.calls[from]++
	m.wakes(thread) // it calls Next soon
	m.d.Calling(from, true)
	m.d.Submit([]*lifecycle.Delivery{e})
}

// callingOn is how many runs of a thread wait for calls.
func (m *machine) callingOn(thread int) (n int) {
	for _, a := range m.held[thread] {
		if m.calls[a] > 0 {
			n++
		}
	}
	return n
}

// wakes notes that a thread does not sleep.
func (m *machine) wakes(thread int) {
	pool, index := PoolOfThread(thread)
	m.asleep[pool] &^= 1 << index
}

func (m *machine) thread(t *rapid.T) int {
	pool := rapid.IntRange(0, invariantPools-1).Draw(t, "pool")
	return ThreadOf(pool, rapid.IntRange(0, m.threads-1).Draw(t, "thread"))
}

func (m *machine) next(t *rapid.T) {
	thread, free := m.thread(t), rapid.IntRange(0, 6).Draw(t, "free")
	pool, index := PoolOfThread(thread)
	room := max(0, m.d.cfg.Slots-len(m.held[thread])+m.callingOn(thread))
	m.wakes(thread)
	d, were := m.d, make(map[*owner]class)
	for _, o := range d.owners {
		were[o] = o.class
	}
	batch := d.Next(thread, free)
	require.LessOrEqual(t, len(batch), min(free, room))
	sum := time.Duration(0)
	for i, a := range batch {
		r := a.Slot.(*run)
		require.True(t, a.Event.Watched || a.Event.Service != nil || d.of[were[r.owner]]&(1<<index) != 0,
			"of an owner that this thread runs")
		require.Equal(t, pool, m.poolOf[a.Event.Owner], "of an owner of this pool")
		m.warm[a.Event.Owner] |= 1 << index
		require.True(t, r.version.coldCost.known || r.version.warmCost.known || len(batch) == 1,
			"an unknown worker comes alone")
		sum += r.cost
		m.checkBatch(t, r)
		for _, it := range r.items() {
			require.False(t, m.d.gates.owners.holds(r.owner, it.event), "its worker is not paused")
		}
		if of := r.route; of.limit > 0 {
			require.LessOrEqual(t, of.running, of.share)
			require.Contains(t, []leaseState{noLease, held}, of.lease)
		}
		if of := r.route; of.lease != noLease {
			l := m.lease(a.Worker.Owner, a.Worker.Name)
			require.Equal(t, of.term, l.term, "it starts under the lease that this process has")
			require.NotZero(t, l.term)
			require.NotNil(t, a.Halt)
		}
		for _, before := range batch[:i] {
			require.True(t, before.Worker != a.Worker || batch[i-1].Worker == a.Worker, "same workers are together")
		}
	}
	require.True(t, len(batch) == 1 || sum <= quantum, "several only if they are short")
	m.held[thread] = append(m.held[thread], batch...)
	if len(batch) == 0 && min(free, room) > 0 {
		m.asleep[pool] |= 1 << index
	}
}

func (m *machine) report(t *rapid.T) {
	thread := m.thread(t)
	var reports []lifecycle.Report
	for range rapid.IntRange(0, len(m.held[thread])).Draw(t, "n") {
		a := m.take(thread)
		cpu := time.Duration(rapid.SampledFrom([]int{0, 10_000, 100_000, 700_000, 900_000_000}).Draw(t, "cpu"))
		switch rapid.IntRange(0, 3).Draw(t, "end") {
		case 0:
			reports = append(reports, notStarted(a))
		case 1:
			end := &lifecycle.End{Started: true, CPU: cpu, Failure: events.Fail(events.ReasonCPU, "x"),
				Lost: rapid.IntRange(0, 9).Draw(t, "lost") == 0}
			for range a.Batch {
				end.Items = append(end.Items,
					lifecycle.Item{Decision: lifecycle.Decision(rapid.IntRange(0, int(lifecycle.Again)).Draw(t, "decision"))})
			}
			reports = append(reports, lifecycle.Report{Attempt: a, End: end})
		default:
			reports = append(reports, done(a, cpu))
		}
	}
	m.d.Report(thread, reports)
}

// checkBatch checks a run that was just started.
func (m *machine) checkBatch(t *rapid.T, r *run) {
	require.Equal(t, r.Worker.Queue, r.Batch != nil, "a queue handler gets batches, and no other one")
	for i, e := range r.Batch {
		v, f := r.route.resolve(e)
		require.Nil(t, f)
		require.Same(t, r.version, v, "a batch is of one version")
		require.True(t, len(r.Batch) == 1 || e.Crashes == 0 && !e.Direct() && (e.Attempt == 1 || e.Asked), "it runs alone")
		require.NotContains(t, r.Batch[:i], e)
	}
	require.LessOrEqual(t, len(r.Batch), r.version.batch.MaxSize)
	require.True(t, r.Batch == nil || r.Batch[0] == r.Event)
}

// directCall is the caller of a direct event.
type directCall struct {
	m       *machine
	t       *rapid.T
	event   *lifecycle.Delivery
	replies int
	end     func() // nil = nothing follows
}

func (c *directCall) Reply(*events.Reply) { c.replies++ }

func (c *directCall) End() {
	require.False(c.t, c.m.settled[c.event], "ended twice")
	require.Equal(c.t, 1, c.replies, "it has one reply before its end")
	c.m.settled[c.event] = true
	if c.end != nil {
		c.end()
	}
}

// window ends the time over which shares are counted.
func (m *machine) window(*rapid.T) {
	m.d.locked(func(time.Time, *effects) { m.d.shares.start = m.d.shares.start.Add(-shareWindow) })
}

func (m *machine) expire(t *rapid.T) {
	m.d.lockedAt(time.Now().Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "hours"))*time.Hour), m.d.expire)
}

// startOf is when an event that a thread has was started.
func startOf(m *machine, e *lifecycle.Delivery) time.Time {
	for _, h := range m.held {
		for _, a := range h {
			if a.Event == e {
				return a.Start
			}
		}
	}
	return time.Time{}
}

// left reports whether all events that could start in a pool are left to threads that work.
func (m *machine) left(p *pool, c class) bool {
	q := &p.queues[c]
	for o := q.next(); o != nil; o = q.after(o) {
		if q.grant(o); o.credit > 0 && o.first().warm&m.d.of[c]&^p.idle.asleep == 0 {
			return false
		}
	}
	return true
}

// check holds after every step.
func (m *machine) check(t *rapid.T) {
	d := m.d
	for _, thread := range m.l.takeWoken() {
		pool, index := PoolOfThread(thread)
		require.NotZero(t, m.asleep[pool]&(1<<index), "only sleeping threads are woken, once")
		m.wakes(thread)
	}
	ready := m.checkPools(t)
	for _, s := range m.l.take() {
		require.False(t, m.settled[s.Event], "settled twice")
		require.False(t, s.Event.Direct(), "the settler never gets a direct event")
		require.False(t, s.ReplyOnly(), "no reply is early here")
		require.True(t, s.Order == lifecycle.NoOrder || s.Outcome == lifecycle.Outcome{}, "an outcome or an order")
		switch s.Order {
		case lifecycle.Watch, lifecycle.WatchAlone:
			require.False(t, s.Event.Watched, "watched once")
			require.True(t, s.Order == lifecycle.Watch || d.running == 0)
			m.watched = append(m.watched, s.Event)
			continue
		case lifecycle.Share:
			require.Positive(t, d.running)
			continue
		}
		m.settled[s.Event] = true
	}
	held, queued, running, waiting, heavies := 0, 0, 0, 0, 0
	others := 0 // events of running batches, beside one of each
	q := &d.gates.crashes
	suspects := len(m.watched) + ready
	_, waits := q.noted[q.event]
	for i, h := range m.held {
		for _, a := range h {
			others += max(0, len(a.Batch)-1)
			if a.Event.Crashes > 0 {
				suspects++
			}
			require.False(t, q.event != nil && !waits && a.Event.Crashes == 0 && a.Event.Service == nil &&
				a.Start.After(startOf(m, q.event)), "nothing starts beside an event that runs alone")
		}
		pool, index := PoolOfThread(i)
		if len(h) > 0 {
			require.Len(t, h, d.pools.pool(pool).idle.threads[index].attempts+m.callingOn(i))
		}
		held += len(h)
	}
	for name, o := range d.owners {
		require.Equal(t, name, o.name)
		require.True(t, m.called[name] || o.running <= d.cfg.OwnerMaxRunning)
		calling := 0
		for i := range m.held {
			for _, a := range m.held[i] {
				if a.Worker.Owner == name && m.calls[a] > 0 {
					calling++
				}
			}
		}
		require.Equal(t, calling, o.calling)
		require.LessOrEqual(t, o.credit, quantum)
		require.Equal(t, o.counted > 0, o.list != nil, "who can start something has a turn")
		require.Equal(t, max(0, min(o.queue.n, d.cfg.OwnerMaxRunning-o.running+o.calling)), o.counted)
		m.checkRoutes(t, o)
		require.True(t, len(o.routes)+o.held()+o.apart()+o.running > 0, "who has nothing is forgotten")
		queued, running, waiting = queued+o.held(), running+o.running, waiting+int(o.suspects)
		if o.class == heavy {
			heavies++
			require.Contains(t, d.shares.heavy, o)
		}
	}
	require.Equal(t, q.suspects.n+q.waiting.n, waiting)
	require.GreaterOrEqual(t, suspects, q.watched, "each that is counted is somewhere")
	require.Len(t, q.noted, len(m.watched)+ready, "who is about to run is with the settler or ready")
	require.True(t, q.phase == open || q.event != nil || q.phase == clearing)
	require.Len(t, d.shares.heavy, heavies)
	queued += d.gates.crashes.queued() - others
	require.Equal(t, []int{queued, held, running}, []int{d.queued, d.running, d.running})
	require.Empty(t, d.gatherer.immediate)
	require.Equal(t, m.sent, queued+running+others+len(m.settled)+len(m.watched), "no event is lost")
}

// checkRoutes checks what is counted of an owner's workers.
func (m *machine) checkRoutes(t *rapid.T, o *owner) {
	queued, running := map[*route]int{}, map[*route]int{}
	gathered := 0
	extra, ripe := 0, map[*version]bool{}
	for i := range o.queue.n {
		for _, e := range o.queue.at(i).events() {
			require.False(t, m.d.gates.owners.holds(o, e), "an event of a paused worker does not wait here")
		}
		queued[o.queue.at(i).route]++
		extra += o.queue.at(i).n() - 1
	}
	for i, g := range o.gathers {
		require.Same(t, g, g.version.gathering)
		require.Equal(t, i, g.nth)
		require.Same(t, g, m.d.gatherer.waiting[g.index])
		require.False(t, g.due.Before(m.d.gatherer.due), "none is forgotten")
		require.Same(t, o.routes[g.route.name], g.route)
		require.Contains(t, g.route.versions, g.version)
		require.False(t, ripe[g.version])
		ripe[g.version] = true
		extra += len(g.items)
		gathered += len(g.items)
	}
	require.Equal(t, gathered, o.gathered)
	require.LessOrEqual(t, gathered, max(1, o.maxQueued/2))
	for _, h := range m.held {
		for _, a := range h {
			if r := a.Slot.(*run); r.owner == o {
				running[r.route]++
				extra += max(0, len(a.Batch)-1)
			}
		}
	}
	waiting := 0
	for _, routes := range []map[string]*route{o.routes, o.removed} {
		for name, r := range routes {
			require.Equal(t, name, r.name)
			require.Equal(t, []int{queued[r], running[r]}, []int{r.queued, r.running})
			require.True(t, r.waiting.n == 0 || r.room() <= 0, "who waits has no room")
			require.False(t, r.lease == unwanted && r.waiting.n > 0, "who waits for a lease wants it")
			require.Equal(t, r.gone, o.routes[name] != r)
			require.False(t, r.gone && r.empty(), "who is gone and has nothing is forgotten")
			waiting += r.waiting.n
			for i := range r.waiting.n {
				extra += r.waiting.at(i).n() - 1
			}
			delete(queued, r)
			delete(running, r)
		}
	}
	require.Empty(t, queued, "each event is of a worker that is known")
	require.Empty(t, running)
	require.Equal(t, waiting, o.waiting)
	require.Equal(t, extra, o.extra)
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		background := rapid.IntRange(0, 4).Draw(rt, "background")
		poolOf := map[string]int{"o3": 1, "o4": 2}
		d, l := newDispatcher(t, Config{Threads: 3, Background: background, Slots: 4, OwnerMaxRunning: 5, OwnerMaxQueued: 8,
			Rand: half, PoolOf: func(owner string) int { return poolOf[owner] }})
		m := &machine{d: d, l: l, threads: 3 + background, held: make(map[int][]*lifecycle.Attempt),
			poolOf: poolOf, warm: make(map[string]threadSet), settled: make(map[*lifecycle.Delivery]bool),
			called: make(map[string]bool), calls: make(map[*lifecycle.Attempt]int), leases: make(map[string]*leaseOf)}
		for pool := 1; pool < invariantPools; pool++ {
			m.asleep[pool] = 1<<m.threads - 1
		}
		m.lessee = d.SetLeases(m)
		for range 6 {
			m.install(rt)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"install": m.install, "remove": m.remove, "expire": m.expire, "": m.check, "ripen": m.ripen, "watch": m.watch,
			"pause": m.pause,
			"tick":  m.tick, "window": m.window, "move": m.move, "move again": m.move, "end pool": m.endPool,
			"grant": m.grant, "grant again": m.grant, "withdraw": m.withdraw, "lapse": m.lapse, "processes": m.processes,
			"call": m.call, "call again": m.call, "submit": m.submit, "submit more": m.submit,
			"next": m.next, "next again": m.next, "next once more": m.next, "report": m.report, "report again": m.report,
		})
	})
}
