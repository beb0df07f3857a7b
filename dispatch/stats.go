package dispatch

import (
	"slices"
	"sort"
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

// Stats is for people and metrics, not for decisions: it is outdated when it returns.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats()
}

func (d *Dispatcher) stats() Stats {
	return Stats{
		Queued: d.queued, Runnable: d.runnable[light] + d.runnable[heavy], Running: d.running, Owners: len(d.owners), Heavy: len(d.shares.heavy),
		Asleep: d.idle.asleep.len(), Draining: d.draining,
	}
}

// BusyOwners lists the owners that have events here. The one with the most waiting events is first.
func (d *Dispatcher) BusyOwners() []OwnerStats {
	var list []OwnerStats
	d.mu.Lock()
	for _, o := range d.owners {
		if o.held() > 0 || o.running > 0 || o.parking {
			list = append(list, OwnerStats{Owner: o.name, Queued: o.held(), Running: o.running, Parking: o.parking})
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
