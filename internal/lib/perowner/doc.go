// Package perowner shares what a process does among owners. Rates limits how much of something an owner may use in a
// second: requests, lines of a log, or CPU time of Go. Queue keeps the work of each owner apart, within bounds, and
// does it in turn, so that one owner's flood delays and displaces only that owner's own work. Lines is the order of
// such a queue alone, without bounds or goroutines. Turns lets callers work when it is their owner's turn, and charges
// owners for the time.
//
// An owner is a name in a subject. It need not exist, so no type keeps anything for an owner that asks for nothing.
//
// Some limits of owners stand elsewhere, because they keep something else for an owner than what it used lately:
// consumer/limit and internal/env/bindings its policy, for as long as the policy lasts; consumer/storage what it has
// stored; internal/http/gateway and internal/http/certificates what it has under way.
package perowner
