// Package modulecheck loads modules before they are deployed, each in a process of its own. What a module does to V8,
// to memory or to a thread there ends with that process, and no process of the fleet notices.
//
//	control → Checks.Open → Checker → this binary again → isolates.Checker
//
// A child of a supervisor starts no process: its Checker has the supervisor do it (spawn), confined.
//
// The process gets one request on its standard input and writes its answer to its standard output. Its environment has
// nothing but the variable that makes it one, so it has no credentials, and it has no connection to NATS. Where no
// process can be made, a thread of this one does the same.
package modulecheck
