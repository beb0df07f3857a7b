// Package sources brings messages of other streams, of core subjects, KV buckets and object stores to the workers that
// name them as sources. Each message is stored as a task event of the worker, and acked at its source afterwards. So
// whatever becomes of an event becomes of it. A source has one durable consumer for all processes of the fleet; the
// bucket PINWHEEL_SOURCES says which consumers are the fleet's own. Nothing is ever written to a source.
package sources
