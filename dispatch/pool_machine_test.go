package dispatch

import (
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// invariantPools is how many pools the machine of the invariants has.
const invariantPools = 3

// move puts an owner into another pool, while its events wait and run.
func (m *machine) move(t *rapid.T) {
	owner, to := m.owner(t), rapid.IntRange(0, invariantPools-1).Draw(t, "to")
	if m.poolOf[owner] != to {
		delete(m.warm, owner)
	}
	m.poolOf[owner] = to
	m.d.PolicySet(owner)
}

// endPool ends the process of a pool: its attempts are interrupted, and its threads sleep.
func (m *machine) endPool(t *rapid.T) {
	pool := rapid.IntRange(1, invariantPools-1).Draw(t, "pool")
	for index := range m.threads {
		var reports []lifecycle.Report
		for thread := ThreadOf(pool, index); len(m.held[thread]) > 0; {
			end := &lifecycle.End{Interrupted: true, Started: rapid.Bool().Draw(t, "started"), CPU: time.Microsecond}
			reports = append(reports, lifecycle.Report{Attempt: m.take(thread), End: end})
		}
		m.d.Report(ThreadOf(pool, index), reports)
	}
	for _, thread := range m.l.takeWoken() { // by the reports: PoolEnded has them all sleep again
		m.wakes(thread)
	}
	m.asleep[pool] = 1<<m.threads - 1
	m.d.PoolEnded(pool)
	for owner, of := range m.poolOf {
		if of == pool {
			delete(m.warm, owner)
		}
	}
}

// take takes an attempt from a thread, which reports how it ended.
func (m *machine) take(thread int) *lifecycle.Attempt {
	a := m.held[thread][0]
	m.held[thread] = m.held[thread][1:]
	if pool, index := PoolOfThread(thread); m.poolOf[a.Event.Owner] == pool {
		m.warm[a.Event.Owner] |= 1 << index
	}
	return a
}

// checkPools checks that each pool has what its owners need, and nothing of others. It returns how many events are
// ready in all.
func (m *machine) checkPools(t *rapid.T) (ready int) {
	d, members, awake := m.d, map[*pool][]*owner{}, 0
	urgent := map[string]int{}
	for name, o := range d.owners {
		require.Equal(t, m.poolOf[name], o.pool.number)
		require.Equal(t, o.list != nil, o.counted > 0)
		members[o.pool] = append(members[o.pool], o)
		for _, r := range o.routes {
			for _, v := range r.versions {
				require.Zero(t, v.warm&^m.warm[name], "warm on threads of its pool that ran it there")
			}
		}
	}
	d.pools.each(func(p *pool) {
		require.False(t, p.dirty)
		m.checkPool(t, p, members[p])
		awake += m.threads - p.idle.sleeping.len()
		ready += p.ready.n
		for _, part := range []*queue{&p.ready, &p.calls} {
			for i := range part.n {
				e := part.at(i).event
				urgent[e.Owner]++
				require.Equal(t, m.poolOf[e.Owner], p.number, "it waits for threads of its owner's pool")
			}
		}
	})
	require.Empty(t, d.pools.dirty)
	require.Equal(t, awake, d.pools.rest.awake)
	all := 0
	for name, o := range d.owners {
		require.Equal(t, urgent[name], int(o.urgent))
		all += int(o.urgent)
	}
	require.Equal(t, all, d.gates.crashes.urgent)
	return ready
}

// checkPool checks one pool with these owners.
func (m *machine) checkPool(t *rapid.T, p *pool, members []*owner) {
	d, running := m.d, 0
	var runnable, lists [classes]int
	for _, o := range members {
		runnable[o.class] += o.counted
		if o.list != nil {
			lists[o.class]++
			require.Contains(t, []*ownerList{&p.queues[o.class].newcomers, &p.queues[o.class].ring}, o.list)
		}
	}
	require.Equal(t, lists, [classes]int{p.queues[light].newcomers.n + p.queues[light].ring.n,
		p.queues[heavy].newcomers.n + p.queues[heavy].ring.n})
	require.Equal(t, runnable, p.runnable)
	if p.number > 0 {
		require.ElementsMatch(t, members, p.members)
		for i, o := range p.members {
			require.EqualValues(t, i, o.nth)
		}
	}
	for index := range m.threads {
		running += len(m.held[ThreadOf(p.number, index)])
	}
	require.Equal(t, running, p.running)
	require.Equal(t, m.asleep[p.number], p.idle.asleep)
	startable, _ := d.gates.crashes.startable(p)
	for c, n := range startable {
		left := d.gates.crashes.phase == open && n == p.runnable[c] && m.left(p, class(c))
		require.True(t, n == 0 || p.idle.asleep&d.of[c] == 0 || p.idle.waking&d.of[c] != 0 || left,
			"something could run, and all threads of the pool sleep")
	}
	for i := range p.ready.n {
		if r := routeOf(d.owners, p.ready.at(i).event); r != nil && r.limit > 0 {
			require.NotEqual(t, unwanted, r.lease, "who is ready wants the lease")
		}
	}
}
