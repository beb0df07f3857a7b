// Package cell is the inside of a cell: a process that runs JavaScript and has nothing else. Attempts come from its
// broker (package cells) and wait for the threads that they are for. Each thread of the pool takes its own, runs them,
// and reports.
//
// A Cell is the isolates.Source and the isolates.Host of its pool. What it tells the broker about events are frames
// (package wire). What handlers ask for are calls (package calls), which the broker answers.
//
// The broker decides everything: which attempt runs on which thread, what a binding may do, what becomes of an event. A
// cell that has been broken into may say what it likes; so nothing here protects anybody but the runs of the cell from
// one another.
package cell
