package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// gateOwner is an owner of a limit, with a worker, without a dispatcher.
func gateOwner(l *ownerLimit) (*owner, *route) {
	o := &owner{name: "o", routes: map[string]*route{}}
	l.apply(o)
	r := &route{owner: o, name: "w"}
	o.routes["w"] = r
	return o, r
}

// An owner's runs take its places, and give them back.
func TestOwnerLimitAdmits(t *testing.T) {
	l := newOwnerLimit(Config{Threads: 2, OwnerMaxRunning: 2, OwnerMaxQueued: 9}.OrDefault())
	o, r := gateOwner(&l)
	it := &item{route: r}
	one, other := &run{owner: o, route: r}, &run{owner: o, route: r}
	require.True(t, l.admit(it))
	l.started(one)
	require.True(t, l.admit(it))
	l.started(other)
	require.False(t, l.admit(it), "two run")
	o.calling++
	require.True(t, l.admit(it), "one of them waits for a service call")
	o.calling--
	l.ended(one, nil)
	require.True(t, l.admit(it))

	l.overstays("o", true)
	l.overstays("o", true)
	l.overstays("o", false)
	require.False(t, l.admit(it), "a turn overstays")
	l.overstays("o", false)
	require.True(t, l.admit(it))
	o.away = 2
	require.False(t, l.admit(it), "as many run beside the threads as there are threads")
}

// A limit of the fleet is divided among its processes, and a removed policy restores what is configured.
func TestOwnerLimitOfPolicies(t *testing.T) {
	l := newOwnerLimit(Config{Threads: 2, OwnerMaxRunning: 8, OwnerMaxQueued: 9}.OrDefault())
	o, _ := gateOwner(&l)
	l.cfg.Catalog.SetPolicy("o", workers.Policy{FleetMaxRunning: 6, MaxQueued: 4})
	l.processes = 3
	l.apply(o)
	require.Equal(t, []int{2, 4}, []int{o.maxRunning, o.maxQueued})
	l.cfg.Catalog.SetPolicy("o", workers.Policy{})
	l.apply(o)
	require.Equal(t, []int{8, 9}, []int{o.maxRunning, o.maxQueued})
}

// A worker's runs take the places of its limit. A run that ends brings what waits for them into the owner's queue.
func TestWorkerLimitAdmits(t *testing.T) {
	owners := newOwnerLimit(Config{Threads: 2, OwnerMaxRunning: 8, OwnerMaxQueued: 9}.OrDefault())
	o, r := gateOwner(&owners)
	l := workerLimit{limited: map[*route]struct{}{}, processes: 2}
	w := &workers.Worker{Version: "1-a"}
	w.Concurrency = 2
	v := newVersion(w)
	r.versions, r.split = []*version{v}, split{base: v}
	var fx effects
	l.limit(r, &fx)
	it := item{event: &lifecycle.Delivery{}, route: r}
	require.True(t, l.admit(&it))
	x := &run{owner: o, route: r}
	l.started(x)
	require.False(t, l.admit(&it), "each of two processes has one of the two places")
	o.enqueue(it, false)
	require.Equal(t, []int{0, 1}, []int{o.queue.n, o.waiting})
	l.ended(x, &fx)
	require.Equal(t, []int{1, 0}, []int{o.queue.n, o.waiting})
	require.True(t, l.admit(&it))

	l.leases, l.processes = true, 3
	l.limit(r, &fx)
	require.False(t, l.admit(&it), "the limit is less than the processes, so it needs the lease")
	require.Equal(t, []leaseCall{{"o", "w", 0, wants}}, fx.leases)
	r.lease = held
	require.True(t, l.admit(&it))
}

// The second thread that an owner costs bans the owner. Bans of direct events leave others alone.
func TestBansRefuse(t *testing.T) {
	var b bans
	now := time.Unix(1_000_000, 0)
	w := &workers.Worker{Owner: "o", Name: "w"}
	e, other := &lifecycle.Delivery{Event: events.Event{Owner: "o",
		Worker: "w"}}, &lifecycle.Delivery{Event: events.Event{Owner: "o",
		Worker: "v"}}
	require.Nil(t, b.refuse(e, now))
	b.lost(w, now, now)
	require.Equal(t, events.ReasonCrash, b.refuse(e, now).Reason)
	require.Nil(t, b.refuse(other, now))
	now = now.Add(firstBan)
	require.Nil(t, b.refuse(e, now), "it is over")
	b.lost(w, now, now)
	require.NotNil(t, b.refuse(other, now), "the owner is banned")

	b = bans{}
	b.suspected(Suspect{Owner: "o", Worker: "w", Times: 1, Left: firstBan}, now)
	require.Nil(t, b.refuse(e, now))
	require.Zero(t, b.refused)
}

// Direct events of suspects run, those of one owner at a time.
func TestSuspectsTakeTurns(t *testing.T) {
	var of bans
	now := time.Unix(1_000_000, 0)
	a := &lifecycle.Delivery{Event: events.Event{Owner: "a", Worker: "w"}, Caller: &caller{}}
	b := &lifecycle.Delivery{Event: events.Event{Owner: "b", Worker: "w"}, Caller: &caller{}}
	for _, owner := range []string{"a", "b"} {
		of.suspected(Suspect{Owner: owner, Worker: "w", Try: true}, now)
	}
	require.Nil(t, of.refuse(a, now))
	require.Equal(t, turnFor, of.refuse(b, now).RetryAfter)
	require.Nil(t, of.refuse(&lifecycle.Delivery{Event: events.Event{Owner: "b",
		Worker: "w"}}, now), "an event of the stream")
	require.Nil(t, of.refuse(b, now.Add(turnFor)), "a is free")
	require.EqualValues(t, 1, of.refused)

	of.suspected(Suspect{Owner: "a", Worker: "w", Try: true}, now)
	of.learn(Ban{Owner: "a", Worker: "w", Times: 1, LeftMs: -1, Direct: true}, now)
	require.NotNil(t, of.refuse(a, now.Add(turnFor)), "another process's ban leaves it a suspect")
}
