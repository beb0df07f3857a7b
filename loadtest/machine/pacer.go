package machine

import (
	"context"
	"runtime"
	"time"

	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// Pace calls send(0) to send(n-1) at a fixed rate. Call i is due i intervals after start, whatever happened to the
// earlier calls. When it is late, it sends all calls that are due and does not move the times of the rest. lag records
// how late each call was.
func Pace(ctx context.Context, start time.Time, interval time.Duration, n int, lag *report.Recorder,
	send func(i int) error) error {
	// Go's timers are 1 ms late when the process is idle. The kernel's timers for a thread of its own are 50 µs late,
	// or less if configured.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer exactTimers()()
	for i := range n {
		due := start.Add(time.Duration(i) * interval)
		for d := time.Until(due); d > 0; d = time.Until(due) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			rest(min(d, 100*time.Millisecond))
		}
		lag.Record(time.Since(due))
		if err := send(i); err != nil {
			return err
		}
	}
	return ctx.Err()
}
