// Package parking keeps the events of owners that have too many queued. It parks them in a stream of their own, at a
// pace that leaves room for others. It finds the owners that have parked events, and gives them places: the events of
// an owner with a place are pulled. It also brings events of owners that have few past the backlog of another owner
// (overtaking), and finds out whether a redelivered event was parked before.
package parking
