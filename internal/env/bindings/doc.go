// Package bindings carries out the calls that handlers make on their bindings: it is the half of env that knows NATS.
//
// Each owner's data is in streams of its own, whose size nats-server bounds. An owner's calls have a rate. What a call
// names was written by a handler: the stream is always that of the owner who runs.
package bindings
