package dispatch

// ownerLimit is the gate of owners: how many events of an owner may run in this process. A run that waits for a service
// call does not count (calls.go).
type ownerLimit struct {
	cfg       Config
	processes int            // of the fleet, 1 or more
	overstay  map[string]int // turns that continue in V8 although they were told to end, by owner
}

func newOwnerLimit(cfg Config) ownerLimit {
	return ownerLimit{
		cfg:       cfg,
		processes: 1,
		overstay:  make(map[string]int),
	}
}

func (l *ownerLimit) admit(it *item) bool { return l.places(it.route.owner) > 0 }

func (l *ownerLimit) started(r *run) { r.owner.places.running++ }

func (l *ownerLimit) ended(r *run, _ *effects) { r.owner.places.running-- }

// places is how many more events of o may start. An owner with a turn that overstays gets none: another event may do
// the same, and there would be no thread left. Nor does one with as many runs beside the threads as there are threads.
func (l *ownerLimit) places(o *owner) int {
	if o.away >= l.cfg.Threads || len(l.overstay) > 0 && l.overstay[o.name] > 0 {
		return 0
	}
	return o.places.free()
}

// places are those of an owner, and the attempts that take them. d.mu must be held for all methods.
type places struct {
	maxRunning int
	running    int
	calling    int // of running, how many wait for service calls
	away       int // of running, how many run beside their threads
}

// free is how many attempts more there are places for.
func (p *places) free() int { return max(0, p.maxRunning-(p.running-p.calling)) }

// setCalling notes that an attempt waits for service calls, or that this is over. Meanwhile others may have its place.
// It gets the place back whether one is free or not.
func (p *places) setCalling(is bool) {
	if is {
		p.calling++
	} else {
		p.calling--
	}
}

// leave notes that an attempt runs beside its thread, or that this is over.
func (p *places) leave(is bool) {
	if is {
		p.away++
	} else {
		p.away--
	}
}

// overstays counts the turns of an owner that overstay.
func (l *ownerLimit) overstays(owner string, is bool) {
	if is {
		l.overstay[owner]++
	} else if l.overstay[owner]--; l.overstay[owner] <= 0 {
		delete(l.overstay, owner)
	}
}

// apply sets the limits of an owner from its policy.
func (l *ownerLimit) apply(o *owner) {
	p := l.cfg.Catalog.Policy(o.name)
	o.account.setWeight(p.Weight)
	o.places.maxRunning = l.share(p.MaxRunning, l.cfg.OwnerMaxRunning, p.FleetMaxRunning)
	o.overflow.maxQueued = l.share(p.MaxQueued, l.cfg.OwnerMaxQueued, p.FleetMaxQueued)
}

// share returns a limit of this process: the owner's own or the configured one, and at most its part of the limit of
// the fleet.
func (l *ownerLimit) share(own, configured, fleet int) int {
	n := configured
	if own > 0 {
		n = own
	}
	if fleet > 0 {
		n = min(n, max(1, fleet/l.processes))
	}
	return n
}
