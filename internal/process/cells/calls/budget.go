package calls

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// What the calls of a cell may have in the memory of its broker, beside the windows and buffers of their streams. A
// call waits until there is room for its arguments. It waits for its answer only while it holds nothing of one: so no
// two calls wait for each other. Nothing waits for room for the event of a service call, which another event of the
// same cell may hold until it has answered. A message waits no longer than its client has to take it.
const (
	argumentBytes = 64 << 20 // of heads and of bodies that come as a whole
	answerBytes   = 64 << 20 // of answers that are not written yet
	eventBytes    = 64 << 20 // of the events of service calls
	messageBytes  = 64 << 20 // of messages of WebSockets that clients have not taken
)

// budget is a number of bytes that calls share.
type budget struct {
	places *semaphore.Weighted
	size   int
}

func newBudget(size int) budget { return budget{semaphore.NewWeighted(int64(size)), size} }

// held are the bytes that a call has of a budget. One goroutine uses it at a time.
type held struct {
	of *budget
	n  int
}

// try takes n bytes more if they are there.
func (h *held) try(n int) error {
	if n < 0 || !h.of.places.TryAcquire(int64(n)) {
		return fmt.Errorf("the calls of a cell have more than %d bytes under way", h.of.size)
	}
	h.n += n
	return nil
}

// take takes n bytes more. It waits for them if the call has none yet.
func (h *held) take(ctx context.Context, n int) error {
	if n < 0 || n > h.of.size-h.n {
		return fmt.Errorf("it has %d bytes: the calls of a cell may have %d under way", h.n+n, h.of.size)
	}
	if h.n > 0 {
		return h.try(n)
	}
	if err := h.of.places.Acquire(ctx, int64(n)); err != nil {
		return err
	}
	h.n = n
	return nil
}

// free gives all bytes back.
func (h *held) free() {
	h.of.places.Release(int64(h.n))
	h.n = 0
}
