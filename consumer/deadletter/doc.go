// Package deadletter keeps events that failed permanently. It writes their dead letters, notifies the worker or subject
// that a worker names for them, and lists, edits, replays, removes, exports and imports them. It also decides which
// replay may run, and records how each replay ended.
//
// A Store needs no running consumer. The consumer uses Writer, Notifier and Claims.
package deadletter
