// Package attempts records the runs of events that did not end with their first run: how many runs failed, how many
// ended with their process, and whether one is running. The bucket PINWHEEL_ATTEMPTS has one record for each such
// event. Any process of the fleet reads it.
package attempts
