// Package pipe moves a body from where it comes from to where it goes, when no JavaScript reads it: the parts of a
// request's body, or the response to a subrequest, to a reply, to another subrequest, or to one value. The slower side
// sets the pace. A pipe keeps no more than the piece that it moves.
//
// The package knows no V8 and no runs.
package pipe
