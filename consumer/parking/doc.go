// Package parking keeps the events of owners that have too many queued. It parks them in a stream of their own, at a
// pace that leaves room for others. It finds the owners that have parked events, and gives them places: the events of
// an owner with a place are pulled. It also lets events of owners with few events overtake the backlog of another
// owner in their lane, and finds out whether a redelivered event was parked before.
package parking
