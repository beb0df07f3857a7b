// Package jsapi is how the packages under consumer use JetStream: requests without a goroutine for each, the meaning of
// answers (stored, duplicate, full, refused), reads of stored messages from the leader of a stream, retries with
// backoff, and the time of the server.
//
// It knows no events in flight and no other package under consumer. A Client calls back on one goroutine, that of its
// Loop, so that callers need no lock.
package jsapi
