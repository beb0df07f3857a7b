// Package consumer takes events from JetStream and carries out their outcomes. It pulls messages, decodes them, passes
// them to a Dispatcher in batches, and renews their leases. To settle an event it publishes the reply, and acks,
// retries or gives back the event.
//
// It knows nothing about JavaScript, threads, or which event runs next.
//
// # How it fits together
//
// puller.go asks the server for exactly as many messages as the Window has room for (ADR 0003); pump.go says how many
// of them each lane asks for. deliver.go makes an entry of each. inflight.go has the list of all events that this
// process is responsible for, and the state of each. One function changes that state. check.go looks up what must be
// known before a redelivered event may run. lease.go renews leases. settle.go is the only file that ends events: it
// alone acks, gives back and publishes replies. acks.go confirms acks in groups. dead.go queues dead letters, and
// outside.go lets the events that wait for them leave the window. overdue.go gives back what could not be settled for
// long, by the clock of settletime.go. again.go has events run again: at once, or after they waited in retries.go.
// settleloop.go is the goroutine on which all this happens. maintenance.go creates missing streams.
//
// The packages below store, find and park events. They know JetStream, but not the events in flight: they take an event
// and a function that they call when they are done. Imports go one way: jsapi and limit import none of the others;
// storage and janitor import jsapi; attempts, results, bodies, bridge, deadletter, parking and schedule import these;
// and consumer imports all.
//
// No goroutine waits on the network for a single event: every exchange is a message sent and a callback when its answer
// arrives.
package consumer
