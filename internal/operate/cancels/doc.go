// Package cancels takes events that have not ended out of the queue: it cancels single events wherever they wait or run
// in a fleet, and purges those that wait.
//
// An event ends as cancelled exactly once, and then never runs again. For that, three things are done in this order:
//
//  1. All processes are asked (fleet.go). One that has the event ends it, and answers for it: it publishes the reply,
//     has the run history note it, and acks the message. One that does not have it does not start it from then on.
//  2. If none has it, its message is deleted. JetStream says who of several deleted it.
//  3. All processes are told. If still none has it, who deleted it answers for it.
//
// A process that is stopped or cut off does not answer. It may run an event once more that it had begun.
package cancels
