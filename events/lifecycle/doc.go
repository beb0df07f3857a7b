// Package lifecycle is what the rooms of a process say to each other about an event: the attempt that a thread gets,
// the report of how it ended, and the settlement that the consumer carries out. It is not part of the contract with
// publishers, which is package events.
package lifecycle
