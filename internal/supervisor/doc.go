// Package supervisor runs the processes of a fleet on one machine as its children: it starts them,
// replaces those that end, passes on the signal to end, and asks all of them what one of them would
// have been asked. It knows nothing of what they do.
package supervisor
