// Package client publishes events to Pinwheel and, for those that want one, waits for the reply.
//
// Call publishes an event and returns what its handler answered; Publish only waits until the event is
// stored. Both need nothing of Pinwheel but the subjects and headers of package events: what
// they do over a NATS connection is what docs/wire.md describes for any language.
//
// A Client has one inbox for all its calls. An event is published with a PubAck asked for on
// <inbox>.<n> and its reply on the same subject, and whichever comes says how it stands: a
// PubAck means the event is stored, an error PubAck ends the call, and the reply ends it even when it
// overtakes the PubAck. So a call costs one message out and two back, and any number may be in flight.
package client
