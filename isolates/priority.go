package isolates

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// threadNice is the priority of pinned threads where there are no background threads. Where all processors are busy with handlers, what brings,
	// parks and settles events goes first: it takes a little, and else each of its steps would wait for a time slice.
	threadNice = 5
	// backgroundNice is that of background threads: a tenth of what others get where they want the same processor. Those others, pinned threads and what
	// brings events, are equal then. Less would be dangerous: a thread that is put aside with a lock in its hands must get on.
	backgroundNice = 10
	// backgroundSlice is how long the system lets a background thread run if nobody wakes up that it had better run. It is longer than the slice of all
	// others, which therefore do not wait for the end of it (Linux 6.12 and later; before that it makes no difference).
	backgroundSlice = 20 * time.Millisecond
)

// setPriority sets that of the calling thread. Where that is refused it stays as it was.
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

// maxIsolatesOf is how many isolates a thread may have. Background threads have few owners, and an eighth of all.
func (c Config) maxIsolatesOf(index int) int {
	all, background := c.MaxIsolates-c.spares(), 0
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
