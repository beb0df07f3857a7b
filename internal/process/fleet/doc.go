// Package fleet is one process of a fleet. It creates and connects the rooms (consumer, dispatch, isolates, deploy,
// control), fills the catalog of active versions, knows the other processes, and reports whether the process is
// healthy. Supervise runs several processes on one machine.
package fleet
