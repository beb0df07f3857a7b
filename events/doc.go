// Package events is the contract of Pinwheel with publishers and operators: Event, Reply, Failure, DeadLetter,
// the subjects and headers of their messages, and how each is encoded and decoded. The contract on the wire is
// docs/reference/wire.md. What runs, a Worker and its Spec, is in its subpackage workers.
//
// The package has no goroutines, no clocks, no loggers and no NATS types, and imports the standard library only. So
// each room of Pinwheel and each program that publishes events can import it. Publishers in Go use its subpackage
// client. What only rooms of Pinwheel say to each other is in its subpackage lifecycle.
//
// An event flows through the rooms like this: package consumer pulls a message and decodes it to an Event, in a
// lifecycle.Delivery. Package dispatch adds the Worker and makes an Attempt. Package isolates runs the Attempt and
// makes Reports of it. Package dispatch decides what each Report means: a Settlement, which has a Reply, an Outcome, or
// both. Package consumer settles it: it publishes the reply, then acks, retries, or writes a DeadLetter.
package events
