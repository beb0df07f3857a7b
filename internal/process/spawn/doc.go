// Package spawn starts processes of this program that run JavaScript and have next to nothing: one that checks a
// module, and one that is a cell. They end with the process that wanted them.
//
//	Spawner → Starter → confine → this program again
//
// A process of the fleet is confined, and may start none. Its Spawner asks the Starter of its supervisor, by a byte on
// a pair of sockets, and gets descriptors. Where no supervisor is, the Spawner has a Starter of its own.
//
// The process of a check gets pipes for its input and output. A cell gets two connections and the note of crashes. What
// else a process has is an environment with one variable.
package spawn
