package assets

import (
	"context"
	"errors"
	"time"
)

// firstPatience is how long the first try may take. Each further one may take twice as long.
const firstPatience = time.Second

// tries is how many there are.
const tries = 5

// patiently tries f until it gets an answer. Of two processes that make the same stream of a cluster at once, nats-server 2.15.2 may answer
// neither; who asks again finds the stream made.
func patiently[T any](ctx context.Context, f func(context.Context) (T, error)) (v T, err error) {
	for try := range tries {
		limit, cancel := context.WithTimeout(ctx, firstPatience<<try)
		v, err = f(limit)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return v, err
		}
	}
	return v, err
}
