// Package events holds the words that the rooms of Pinwheel say to each other and the
// contract with everybody outside: Event, Attempt, Reply, Outcome, Failure, Worker and
// DeadLetter, the subjects and headers they travel under, and how each is encoded and decoded.
//
// The vocabulary has no goroutines, no clocks, no loggers and no NATS types: it imports the
// standard library only, so that every room can speak it and every program that publishes
// events can import it. Publishers in Go will want its subpackage client.
//
// The flow, in these words: package consumer pulls a message and decodes it to an Event;
// package dispatch pairs it with its Worker to an Attempt; package isolates runs the Attempt and
// tells by Reports what became of it; dispatch judges each Report to a Settlement (a Reply,
// an Outcome, or both); consumer settles it: publishes the reply, acks, retries or
// writes a DeadLetter. The contract on the wire is docs/wire.md.
package events
