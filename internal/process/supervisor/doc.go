// Package supervisor runs the processes of a fleet on one machine as its children. It starts them, replaces those that
// end, passes on the signal to end, and sends requests to all of them. It does not depend on what they do.
package supervisor
