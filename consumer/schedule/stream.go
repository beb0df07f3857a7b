package schedule

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// Stream is the configuration of the stream of schedules. It holds events that wait, events that are due, and the last
// ticks of schedules. A client that may publish there can, with headers, run anything at any time and delete
// everything, so only the fleet may publish there. JetStream does not let a stream with schedules refuse new messages,
// so the stream has no size limit of its own: the account's storage limits it. remembers is for how long JetStream
// remembers the ids of delayed events. A process that dies between delaying an event and its ack leaves both. The
// process that gets the event then delays it again within this time, which has no effect.
func Stream(prefix events.Subjects, replicas int, remembers time.Duration) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: events.StreamSchedules, Description: "What is to run at a time", Subjects: []string{prefix.AllSchedules()},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: replicas, Duplicates: remembers,
		AllowDirect:       true,
		AllowMsgSchedules: true, AllowRollup: true, AllowAtomicPublish: true, AllowMsgTTL: true,
	}
}
