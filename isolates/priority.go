package isolates

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// threadNice is the priority of pinned threads when there are no background threads. When handlers keep all
	// processors busy, the goroutines that fetch, park and settle events run first. They need little CPU time, and
	// would otherwise wait for a time slice at each step.
	threadNice = 5
	// backgroundNice is the priority of background threads. They get a tenth of what others get on the same processor.
	// Pinned threads then have the same priority as everything else. A lower priority would be dangerous: a preempted
	// thread that holds a lock must continue.
	backgroundNice = 10
	// backgroundSlice is how long the system lets a background thread run if no other thread wakes. It is longer than
	// the slice of all other threads, so they do not wait for its end (Linux 6.12 and later; before that it makes no
	// difference).
	backgroundSlice = 20 * time.Millisecond
)

// setPriority sets the priority of the calling thread. If the system refuses, it stays as it is.
func (t *thread) setPriority() {
	cfg := &t.pool.cfg
	if cfg.Background == 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), threadNice)
	}
	if t.index < cfg.Threads {
		return
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), backgroundNice)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: backgroundNice, Runtime: uint64(backgroundSlice),
	}, 0)
}

// maxIsolatesOf returns how many isolates a thread may have. Background threads have few owners, and together an eighth
// of all isolates.
func (c Config) maxIsolatesOf(index int) int {
	all, background := c.MaxIsolates-c.prewarmed(), 0
	if c.Background > 0 {
		background = max(1, all/(8*c.Background))
	}
	if index >= c.Threads {
		return background
	}
	rest := all - c.Background*background
	n := rest / c.Threads
	if index < rest%c.Threads {
		n++
	}
	return max(1, n)
}
