// Package client publishes events to Pinwheel and waits for replies.
//
// Call publishes an event and returns the answer of its handler. Publish only waits until the event is stored. Both
// need only the subjects and headers of package events. What they do over a NATS connection is described for any
// language in docs/reference/wire.md.
//
// A Client has one inbox for all its calls. Both the PubAck and the reply of an event come to <inbox>.<n>. A PubAck
// means that the event is stored. A PubAck with an error ends the call. The reply ends the call, also when it comes
// before the PubAck. So a call costs one message out and two back, and any number of calls may be in flight.
package client
