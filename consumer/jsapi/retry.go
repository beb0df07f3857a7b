package jsapi

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Retrier computes the delays between tries of something that failed: 50 ms at first, up to 5 s.
type Retrier struct{ policy *backoff.ExponentialBackOff }

// NewRetrier makes a Retrier that gives up after limit; 0 = never.
func NewRetrier(limit time.Duration) *Retrier {
	return &Retrier{backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(limit),
	)}
}

// Next is how long to wait before the next try. ok is false when there is no next try.
func (r *Retrier) Next() (wait time.Duration, ok bool) {
	wait = r.policy.NextBackOff()
	return wait, wait != backoff.Stop
}
