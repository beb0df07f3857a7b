// Package bridge turns plain NATS requests into events. It stores each call in the stream of events, with the
// requester's inbox as Reply-To, and refuses calls beyond their owner's limits.
package bridge
