// Package workerlease decides which process of a fleet runs the events of a worker whose concurrency is exact. That
// process has the worker's key in the KV bucket PINWHEEL_LEASES, and renews it. Processes take turns: one that has
// events waiting asks, and the holder lets go after its turn.
package workerlease
