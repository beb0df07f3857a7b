// Package guarantees has only tests. They kill, pause, disconnect, overfill and redeploy real processes of a fleet and
// a real nats-server at random. They compare the results of random events with a small model of the promises in
// docs/development/guarantees.md.
package guarantees
