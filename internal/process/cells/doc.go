// Package cells runs events in processes that may be broken into. A cell is a child process that has a pool of V8
// threads (isolates.Pool) and no credential, no file and no network. The process that starts it is its broker: it has
// consumer, dispatch, gateway, bindings and secrets.
//
// The way of an event: dispatch gives an attempt to a thread of a cell's pool (Pools.Wake, or a frame of the cell that
// says that a thread has room). The broker notes it as handed out, and sends it. The cell reports its reply and its
// end. The broker looks the attempt up among those that it handed to that cell, and passes the report on to dispatch.
//
//   - Pools: the process's own pool and those of the cells. For dispatch it is all threads, for the fleet one pool.
//   - class: owners who share a cell, and whether there is a process for it now.
//   - cell: one process, from its start to its end.
//   - receiver: takes the frames of a cell, and checks them.
//   - assigned: the attempts of a cell.
//   - given: the workers of a cell, their secrets and the policies of their owners.
//
// A cell may have been broken into. Whatever it sends that no cell sends which works is a lie: it ends the cell. The
// attempts that it had run again in the next one. What it may reach is what its class has anyway.
package cells
