// Package tail sends log lines and ended events of an owner's workers to those who ask for them, while they ask. It
// filters in the process where the lines are made, so that NATS carries only what somebody wants to see.
package tail
