package resources

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// firstTimeout bounds the first try. Each further try may take twice as long.
	firstTimeout = time.Second
	tries        = 5
)

// retry calls f until it gets an answer. When two processes create the same stream of a cluster at once, nats-server
// 2.15.2 may answer neither. The next request finds the stream. A request that the user may not send is never answered.
func retry[T any](ctx context.Context, nc *nats.Conn, f func(context.Context) (T, error)) (v T, err error) {
	for try := range tries {
		limit, cancel := context.WithTimeout(ctx, firstTimeout<<try)
		v, err = f(limit)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || Denied(nc) != nil {
			return v, err
		}
	}
	return v, err
}

// Denied is the last error of a connection if it says that the user may not send a request to JetStream, or nil.
func Denied(nc *nats.Conn) error {
	err := nc.LastError()
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "permissions violation") ||
		!strings.Contains(err.Error(), "$JS.API.") {
		return nil
	}
	return err
}
