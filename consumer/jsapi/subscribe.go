package jsapi

import (
	"time"

	"github.com/nats-io/nats.go"
)

// Queue is the queue group of the processes of a fleet. One of them takes each request.
const Queue = "pinwheel"

// drainWait is the maximum time to handle messages that have arrived.
const drainWait = 2 * time.Second

// Drain ends a subscription (nil: none), and waits until the messages that have arrived are handled.
func Drain(sub *nats.Subscription) {
	if sub == nil {
		return
	}
	closed := sub.StatusChanged(nats.SubscriptionClosed)
	if err := sub.Drain(); err != nil {
		return // not connected: nothing arrives
	}
	select {
	case <-closed:
	case <-time.After(drainWait):
	}
}
