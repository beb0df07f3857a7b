package resources

import (
	"context"
	"errors"
	"time"
)

const (
	// firstTimeout bounds the first try. Each further try may take twice as long.
	firstTimeout = time.Second
	tries        = 5
)

// retry calls f until it gets an answer. When two processes create the same stream of a cluster at once, nats-server
// 2.15.2 may answer neither. The next request finds the stream.
func retry[T any](ctx context.Context, f func(context.Context) (T, error)) (v T, err error) {
	for try := range tries {
		limit, cancel := context.WithTimeout(ctx, firstTimeout<<try)
		v, err = f(limit)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return v, err
		}
	}
	return v, err
}
