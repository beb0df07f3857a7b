package dispatch

// leastLimit is the limit of a worker: the least one of the versions that run its events. 0 = none.
func (r *route) leastLimit() (least int) {
	for _, v := range []*version{r.base, r.candidate, r.before.base, r.before.candidate} {
		if v == nil || v.worker.Concurrency == 0 {
			continue
		}
		if n := v.worker.Concurrency; least == 0 || n < least {
			least = n
		}
	}
	return least
}

// workerLimit is the gate of workers that have a limit of events at once. Where the limit is exact, it starts events
// only while this process has the lease.
type workerLimit struct {
	limited   map[*route]struct{} // workers that have a limit
	processes int                 // of the fleet, 1 or more
	leases    bool                // somebody decides about exact limits
}

func (l *workerLimit) admit(it *item) bool { return it.route.mayStart() }

func (l *workerLimit) started(r *run) { r.Halt = r.route.joins() }

func (l *workerLimit) ended(r *run, fx *effects) {
	r.route.leaves(r.Halt)
	r.owner.leaveRoute(r.route, fx)
}

// limit applies the limit of a worker and the number of processes.
func (l *workerLimit) limit(r *route, fx *effects) {
	n := r.leastLimit()
	if n == 0 {
		delete(l.limited, r)
	} else {
		l.limited[r] = struct{}{}
	}
	had := r.lease == held || r.lease == givenBack
	if r.divide(n, l.processes, l.leases); had && r.lease == noLease {
		fx.lease(r, givesBack)
	}
	r.owner.admitWaiting(r, fx)
}

// enqueue puts an event into its owner's queue, or behind the others of its worker that wait for room.
func (o *owner) enqueue(it item, front bool) {
	r := it.route
	switch {
	case r.room() <= 0 && front && it.event.Service == nil:
		r.waiting.pushFront(it)
		o.waiting++
	case r.room() <= 0 || r.waiting.n > 0 && (!front || it.event.Service != nil):
		r.waiting.pushBack(it)
		o.waiting++
	case front && it.event.Service != nil:
		r.queued++
		o.queue.insert(it)
	case front:
		r.queued++
		o.queue.pushFront(it)
	default:
		r.queued++
		o.queue.pushBack(it)
	}
}

// dequeue takes the first event out of the owner's queue.
func (o *owner) dequeue() item {
	it := o.queue.popFront()
	it.route.queued--
	return it
}

// admitWaiting moves events of a worker into the owner's queue while there is room, and wants the lease if they need
// it.
func (o *owner) admitWaiting(r *route, fx *effects) {
	for r.waiting.n > 0 && r.room() > 0 {
		it := r.waiting.popFront()
		o.waiting--
		r.queued++
		o.queue.insert(it)
	}
	o.seeLease(r, fx)
}

// seeLease reports a change in whether this process needs the lease of a worker.
func (o *owner) seeLease(r *route, fx *effects) {
	needs := r.waiting.n > 0 || r.queued > 0 || r.asked
	if r.lease == givenBack && r.running == 0 {
		r.lease = unwanted
		fx.lease(r, givesBack)
	}
	switch {
	case r.lease == unwanted && needs:
		r.lease = wanted
		fx.lease(r, wants)
	case r.lease == held && !needs && r.running == 0:
		fx.lease(r, idles)
	}
}

// askLease wants the lease for a watched event.
func (o *owner) askLease(r *route, fx *effects) {
	r.asked = r.lease != noLease && r.lease != held
	o.seeLease(r, fx)
}

// holdBack takes the first event of the owner's queue out of it if its worker may start none now.
func (o *owner) holdBack() bool {
	if o.queue.front().route.mayStart() {
		return false
	}
	it := o.dequeue()
	it.route.waiting.pushFront(it)
	o.waiting++
	return true
}

// leaveRoute updates the limit of a worker after one of its events left the owner's queue or ended.
func (o *owner) leaveRoute(r *route, fx *effects) {
	if r.limit > 0 {
		o.admitWaiting(r, fx)
	}
	if r.gone && r.empty() && o.removed[r.name] == r {
		delete(o.removed, r.name)
	}
}
