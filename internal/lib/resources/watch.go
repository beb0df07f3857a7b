package resources

import "github.com/nats-io/nats.go/jetstream"

// StopWatch ends a watch of a KV bucket. Its goroutine may be about to hand over an entry, so the channel is read to
// its end.
func StopWatch(w jetstream.KeyWatcher) {
	_ = w.Stop() // an error means that it is stopped
	go func() {
		for range w.Updates() {
		}
	}()
}
