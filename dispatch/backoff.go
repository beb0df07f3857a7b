package dispatch

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/pinwheel-run/pinwheel/events"
)

// retryDelay returns how long to wait after the given attempt failed, by a policy from OrDefault. It is
// at most r.Max and at least a millisecond. rand gives the jitter: at 0.5 there is none.
func retryDelay(r events.Retries, attempt int, rand func() float64) time.Duration {
	b := backoff.ExponentialBackOff{
		InitialInterval: r.Initial.Duration(),
		Multiplier:      r.Factor,
		// Room for jitter above the exact delay, so that many at their maximum still spread.
		MaxInterval: time.Duration(float64(r.Max.Duration()) / (1 + *r.Jitter)),
		Stop:        backoff.Stop,
		Clock:       backoff.SystemClock,
		// The library's own jitter (RandomizationFactor) cannot be seeded.
	}
	b.Reset()
	delay := b.NextBackOff()
	for n := 1; n < attempt && delay < b.MaxInterval; n++ {
		delay = b.NextBackOff()
	}
	delay = min(delay, b.MaxInterval) // the library does not bound the first
	delay = time.Duration(float64(delay) * (1 + *r.Jitter*(2*rand()-1)))
	return max(min(delay, r.Max.Duration()), time.Millisecond)
}
