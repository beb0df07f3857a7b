package dispatch

import "time"

// PoolThreads is the distance between the numbers of the first threads of two pools: no pool has more threads.
const PoolThreads = maxThreads

// ThreadOf returns the number by which Next, Report, Running and Threads know the thread of a pool with this index,
// 0 to Config.Threads+Config.Background-1. Any goroutine may call it.
func ThreadOf(pool, index int) int { return pool*PoolThreads + index }

// PoolOfThread undoes ThreadOf. A thread below 0, which is none of a pool, is index -1 of pool 0. Any goroutine may
// call it.
func PoolOfThread(thread int) (pool, index int) {
	if thread < 0 {
		return 0, -1
	}
	return thread / PoolThreads, thread % PoolThreads
}

// pool is threads, and the owners whose events run on these and on no others. Pool 0 is the process's own threads.
// Those of another pool belong to a cell, a process that is started when one of them is woken. Each pool has threads of
// both classes, and places its owners as if there were no other pool. d.mu must be held for all methods.
type pool struct {
	number   int
	idle     idleThreads
	queues   [classes]fairQueue // of its owners of each class
	runnable [classes]int       // events in them that could start now, within the limits
	mean     time.Duration      // expected CPU time of an event, over all its workers
	running  int                // attempts that its threads have
	members  []*owner           // its owners, to be found when it ends; pool 0, which does not end, has no list
	dirty    bool               // it is in pools.dirty

	// events of the quarantine that its threads start before all others
	calls queue // service calls that were made in another phase than open
	ready queue // watched
}

// pools are all pools. A pool is made when it is first needed, and stays: its number is used again. d.mu must be held
// for all methods.
type pools struct {
	cfg   Config
	all   []*pool // by their numbers; nil = not needed yet
	dirty []*pool // in which something changed, so that a thread might be woken
	rest  rest
}

// newPools makes pool 0, whose threads do not sleep.
func newPools(cfg Config) *pools {
	n := cfg.Threads + cfg.Background
	x := &pools{cfg: cfg, rest: rest{most: n, awake: n}}
	own := x.pool(0)
	own.idle.asleep, own.idle.sleeping, own.idle.threads = 0, 0, make([]threadState, n)
	return x
}

// pool returns the pool of a number. All threads of a new one sleep.
func (x *pools) pool(number int) *pool {
	for len(x.all) <= number {
		x.all = append(x.all, nil)
	}
	if x.all[number] == nil {
		x.all[number] = &pool{number: number, idle: newIdleThreads(x.cfg), mean: unknownCost}
	}
	return x.all[number]
}

// poolOf returns the pool that an owner belongs to now.
func (x *pools) poolOf(owner string) *pool {
	if x.cfg.PoolOf == nil {
		return x.pool(0)
	}
	return x.pool(max(0, x.cfg.PoolOf(owner)))
}

// each calls f for each pool. The effort grows with their number: no event may need it.
func (x *pools) each(f func(*pool)) {
	for _, p := range x.all {
		if p != nil {
			f(p)
		}
	}
}

// touch has the threads of a pool looked at before the lock is released. All that decides whether one is woken calls
// it.
func (x *pools) touch(p *pool) {
	if !p.dirty {
		p.dirty = true
		x.dirty = append(x.dirty, p)
	}
}

// takeDirty returns the pools that were touched since its last call. The slice may be used until the next touch.
func (x *pools) takeDirty() []*pool {
	all := x.dirty
	for _, p := range all {
		p.dirty = false
	}
	x.dirty = all[:0]
	return all
}

// touchAll is for what concerns all owners.
func (x *pools) touchAll() { x.each(x.touch) }

// count notes how many events of o could start now.
func (x *pools) count(o *owner, n int) {
	o.pool.runnable[o.class] += n - o.counted
	o.counted = n
	x.touch(o.pool)
}

// place updates the place of o in its fair queue after count.
func (x *pools) place(o *owner) {
	switch {
	case o.counted > 0 && o.list == nil:
		o.pool.queues[o.class].enter(o)
	case o.counted == 0 && o.list != nil:
		o.pool.queues[o.class].leave(o)
	}
}

// move puts o, with its waiting events, into a class of a pool. What runs ends where it is.
func (x *pools) move(o *owner, to *pool, class class) {
	from, waits := o.pool, o.list != nil
	if waits {
		from.queues[o.class].leave(o)
	}
	from.queues[o.class].grant(o)
	from.runnable[o.class] -= o.counted
	to.runnable[class] += o.counted
	o.class = class
	o.account.change(to.queues[class].round)
	if from != to {
		from.leave(o)
		to.enter(o)
		to.takeUrgent(o, from)
		o.chill()
		x.touch(from)
	}
	if waits {
		to.queues[class].enter(o)
	}
	x.touch(to)
}

// enter notes that an owner, which is in no pool, belongs to p.
func (p *pool) enter(o *owner) {
	o.pool, o.nth = p, int32(len(p.members))
	if p.number > 0 {
		p.members = append(p.members, o)
	}
}

// leave undoes enter. o.pool stays, for the runs of an owner that is forgotten.
func (p *pool) leave(o *owner) {
	if p.number == 0 {
		return
	}
	last := len(p.members) - 1
	p.members[o.nth] = p.members[last]
	p.members[o.nth].nth = o.nth
	p.members[last] = nil
	p.members = p.members[:last]
	if last == 0 {
		p.members = nil
	}
}

// ended notes that the threads of the pool have gone: all sleep, and hold no context.
func (p *pool) ended(rest *rest, now time.Time) {
	p.idle.end(p.running == 0, rest, now)
	for _, o := range p.members {
		o.chill()
	}
}

// takeUrgent moves the events of an owner that wait for the threads of one pool to those of another.
func (p *pool) takeUrgent(o *owner, from *pool) {
	if o.urgent == 0 {
		return
	}
	for _, part := range [...]struct{ from, to *queue }{{&from.calls, &p.calls}, {&from.ready, &p.ready}} {
		part.from.filter(func(it *item) bool {
			if it.event.Owner != o.name {
				return true
			}
			part.to.pushBack(*it)
			return false
		})
	}
}

// home says which threads run the events of an owner: those of its pool for its class.
type home struct {
	pool  *pool
	nth   int32 // in pool.members
	class class
}

// PoolEnded reports that the process of a pool other than 0 has ended, or has not started. All its threads sleep from
// now on: they are woken when an event could start, perhaps before PoolEnded returns. Those that were woken before it
// need not call Next. No context of the pool's owners counts as warm. Every attempt that its threads had must have been
// reported before. An attempt that was not is logged, and keeps its slot until it is. Any goroutine may call it.
func (d *Dispatcher) PoolEnded(number int) {
	left := 0
	d.locked(func(now time.Time, _ *effects) {
		if number <= 0 || number >= len(d.pools.all) || d.pools.all[number] == nil {
			return
		}
		p := d.pools.all[number]
		left = p.running
		p.ended(&d.pools.rest, now)
		d.pools.touch(p)
	})
	if left > 0 {
		d.log.Error().Int("pool", number).Int("attempts", left).Msg("a pool ended before its attempts were reported")
	}
}

// PoolStats is the state of a pool other than 0 at one moment.
type PoolStats struct {
	Pool    int
	Owners  int // that belong to it
	Queued  int // events of these that wait
	Running int // attempts that its threads have
	Asleep  int // threads that sleep
}

// Pools lists the pools other than 0 that have owners, by their numbers.
func (f Figures) Pools() (list []PoolStats) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.pools.each(func(p *pool) {
		if len(p.members) == 0 {
			return
		}
		s := PoolStats{Pool: p.number, Owners: len(p.members), Running: p.running, Asleep: p.idle.asleep.len()}
		for _, o := range p.members {
			s.Queued += o.held() + o.apart()
		}
		list = append(list, s)
	})
	return list
}
