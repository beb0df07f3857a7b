package dispatch

import "sort"

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
