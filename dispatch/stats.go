package dispatch

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Stats is the state of a Dispatcher at one moment.
type Stats struct {
	Queued   int // events that wait
	Runnable int // of these, events that could start now if a slot is free
	Running  int // attempts in progress
	Owners   int // owners that have a worker installed
	Heavy    int // of these, owners that take more than their share of the CPU
	Asleep   int // threads that sleep
	Draining bool
}

// Flow is what has happened in a Dispatcher since it was made.
type Flow struct {
	Retried  uint64    // attempts that failed, and after which the event runs again
	Failed   uint64    // events that failed for good
	Parked   uint64    // times an event was parked
	Wait     Histogram // from the arrival of an event in this process to its start
	Duration Histogram // of attempts that started and ended, from their start to the end of their last work
}

// Histogram counts durations.
type Histogram struct {
	Count uint64
	// Buckets are how many were at most as long as the bound of the same index in Bounds, and longer than the bound
	// before. Longer ones are only in Count.
	Buckets []uint64
}

// Bounds are the upper bounds of the buckets of a Histogram, seconds.
func Bounds() []float64 { return slices.Clone(bounds[:]) }

// Flow is for people, as Stats is.
func (d *Dispatcher) Flow() Flow {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.metrics.flow()
}

// OwnerStats is the state of one owner in a Dispatcher.
type OwnerStats struct {
	Owner   string
	Queued  int
	Running int
	Parking bool // its further events are parked until its queue is half empty
}

// WorkerState says what a process has of a worker.
type WorkerState string

// The states, from the one with most of a worker to that with least.
const (
	WorkerActive    WorkerState = "active"    // events of it run
	WorkerIdle      WorkerState = "idle"      // a context waits for events
	WorkerEphemeral WorkerState = "ephemeral" // it has no context between events: its mode is oneshot
	WorkerOffline   WorkerState = "offline"   // it has no context now
)

// WorkerStats is what one worker has done in a Dispatcher since it was installed.
type WorkerStats struct {
	Owner, Worker string
	State         WorkerState
	Running       int
	Ended, Failed uint64    // attempts that started
	Duration      Histogram // of them
	Last          time.Time // end of the latest
}

// Work is what workers have done in a Dispatcher since each was installed.
type Work struct {
	OwnerStats                  // of the owner that was asked for
	Ended, Failed uint64        // attempts that started, of all workers
	Duration      Histogram     // of them
	Workers       []WorkerStats // some, those that ran most in the last minutes first
}

// BusyWorkers returns what the workers of an owner have done in a Dispatcher, and each of them that has run, at most so
// many. name "" means all owners. With the name of a worker, only that one counts, whether it has run or not. Any
// goroutine may call it.
func BusyWorkers(d *Dispatcher, name, worker string, most int) Work {
	now, sum := time.Now(), workerCounts{}
	var list busyWorkers
	work := Work{OwnerStats: OwnerStats{Owner: name}}
	d.mu.Lock()
	if o := d.owners[name]; o != nil {
		list, work.OwnerStats = list.add(o, worker, now), o.stats()
	}
	for _, o := range d.owners {
		if name == "" {
			list = list.add(o, worker, now)
		}
	}
	for _, w := range list {
		sum.ended, sum.failed = sum.ended+w.r.done.ended, sum.failed+w.r.done.failed
		sum.duration.add(&w.r.done.duration)
	}
	d.mu.Unlock()
	list.sort() // while d.mu is not locked: there may be very many
	list = list[:min(most, len(list))]
	work.Ended, work.Failed, work.Duration, work.Workers =
		sum.ended, sum.failed, sum.duration.export(), make([]WorkerStats, len(list))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, w := range list {
		work.Workers[i] = WorkerStats{
			Owner: w.o.name, Worker: w.r.name, State: w.r.state(), Running: w.r.running,
			Ended: w.r.done.ended, Failed: w.r.done.failed, Duration: w.r.done.duration.export(), Last: w.r.done.last,
		}
	}
	return work
}

// busyWorkers is a list of workers, each with what decides its place in it.
type busyWorkers []busyWorker

type busyWorker struct {
	o    *owner
	r    *route
	rate float64
}

// add appends the workers of o that have run here, or the one of that name. The dispatcher is locked.
func (l busyWorkers) add(o *owner, only string, now time.Time) busyWorkers {
	for _, r := range o.routes {
		if r.name == only || only == "" && (r.done.ended > 0 || r.running > 0) {
			l = append(l, busyWorker{o, r, r.done.rate(now)})
		}
	}
	return l
}

func (l busyWorkers) sort() {
	sort.Slice(l, func(i, j int) bool {
		return cmp.Or(cmp.Compare(l[j].rate, l[i].rate), cmp.Compare(l[i].o.name, l[j].o.name),
			cmp.Compare(l[i].r.name, l[j].r.name)) < 0
	})
}

// state is what this process has of the worker.
func (r *route) state() WorkerState {
	if r.running > 0 {
		return WorkerActive
	}
	state := WorkerOffline
	for _, v := range r.versions {
		switch {
		case v.warm != 0:
			return WorkerIdle
		case v.worker.Mode == workers.Oneshot && v == r.base:
			state = WorkerEphemeral
		}
	}
	return state
}

// Stats is for people and metrics, not for decisions: it is outdated when it returns.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats()
}

func (d *Dispatcher) stats() Stats {
	return Stats{
		Queued: d.queued, Runnable: d.runnable[light] + d.runnable[heavy], Running: d.running, Owners: len(d.owners),
		Heavy:  len(d.shares.heavy),
		Asleep: d.idle.asleep.len(), Draining: d.draining,
	}
}

// BusyOwners lists the owners that have events here. The one with the most waiting events is first.
func (d *Dispatcher) BusyOwners() []OwnerStats {
	var list []OwnerStats
	d.mu.Lock()
	for _, o := range d.owners {
		if o.held() > 0 || o.running > 0 || o.parking {
			list = append(list, o.stats())
		}
	}
	d.mu.Unlock()
	sort.Slice(list, func(i, j int) bool {
		if list[i].Queued != list[j].Queued {
			return list[i].Queued > list[j].Queued
		}
		return list[i].Owner < list[j].Owner
	})
	return list
}

func (o *owner) stats() OwnerStats {
	return OwnerStats{Owner: o.name, Queued: o.held(), Running: o.running, Parking: o.parking}
}
