// Package wire is what a cell and its broker say to each other about events: frames on a stream socket. Attempts go to
// the cell, reports come back. Calls of handlers go another way (package calls).
//
// A frame is its length, four bytes, the low ones first; a byte with its kind; and the fields of the message, one after
// the other, as Writer and Reader have them. The length counts the kind and the fields. A message has no fields of
// another release: both sides are the same program, and Hello and Ready say so.
//
// What a cell sends may be anything. Each function Read… returns an error for what no cell sends that works, and takes
// memory only for bytes that have come. What a message names, for example an attempt, its reader has to look up among
// what it gave to the cell.
package wire

// Version is that of the protocol. Both sides must have the same.
const Version = 2

// Kind is the kind of a frame.
type Kind uint8

// The kinds of frames to a cell.
const (
	Hello         Kind = iota + 1 // Version, and the configuration of its pool as JSON
	Worker                        // number of a worker, and the worker as JSON
	Secrets                       // number of a worker, its secrets, or why there are none
	Policy                        // owner, its policy as JSON
	Attempts                      // thread, and attempts for it: empty = there are none
	Yield                         // thread: others wait for it
	Halt                          // number of an attempt that must end
	Gone                          // number of an attempt whose requester has gone
	Grant                         // number of an attempt, bytes that its body may have in all
	Cancel                        // number of an attempt whose body is not wanted, and why
	Serve                         // number of a WebSocket, and the number of the client's end; 0 = there is none
	Unserve                       // number of a WebSocket: the process ends
	CloseContexts                 // thread, number of a worker
	Retire                        // owner, name of a worker that was removed
	Renew                         // owner, name of a worker whose secrets were replaced
	Reset                         // owner, name of a worker
	Ask                           // number of a question, and what is asked
	End                           // nothing: the cell ends
	CancelEvent                   // number of an attempt whose event somebody cancels
)

// The kinds of frames from a cell.
const (
	Ready     Kind = iota + 64 // Version: it is confined and takes attempts
	Next                       // thread, free slots
	Report                     // a report
	Closed                     // thread, number of a worker
	Chunk                      // number of an attempt, a piece of its body
	Running                    // thread or -1, number of an attempt or 0, its CPU time
	Charge                     // owner, CPU time
	Away                       // number of an attempt, whether it left its thread
	Calling                    // number of an attempt, whether it calls a service
	Overstays                  // number of a worker, whether a turn of it does
	Lost                       // number of a worker, when its run began
	Log                        // a line of output as JSON
	Span                       // an operation of an attempt that is over
	Answer                     // number of a question, the answer as JSON
	Unhealthy                  // why the cell should be replaced: V8 has lost threads
)
