package dispatch

// ownerLimit is the gate of owners: how many events of an owner may run in this process. A run that waits for a service
// call does not count.
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
	o.overflow.paused = len(p.Paused) > 0
	o.account.setWeight(p.Weight)
	o.places.fleet = p.FleetMaxRunning
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
