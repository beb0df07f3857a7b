// Package guarantees has only tests: real processes of a fleet and a real nats-server are killed, paused, cut off, filled up and
// redeployed at random, and what becomes of random events is compared with a small model of what docs/guarantees.md promises.
package guarantees
