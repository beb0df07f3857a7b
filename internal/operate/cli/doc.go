// Package cli is the pinwheel command: it parses flags and prints tables. Other packages do the work of the commands:
// control has the operations on a fleet, and fleet has the processes.
package cli
