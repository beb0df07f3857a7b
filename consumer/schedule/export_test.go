package schedule

import (
	"context"
	"time"
)

// Settle makes all ticks that are due by a clock, which it moves on until nothing is left to do.
func Settle(ctx context.Context, t *Ticker, now *time.Time) {
	for t.step(ctx).Sub(t.now()) <= 2*tickStandby {
		*now = now.Add(tickStandby)
	}
}
