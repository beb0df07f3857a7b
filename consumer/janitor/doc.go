// Package janitor maintains streams: it keeps an anchor message in the last file of a stream, so that nats-server drops
// old files, and removes acked messages that nats-server did not remove.
package janitor
